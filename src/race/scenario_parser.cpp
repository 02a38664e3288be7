// A recursive-descent parser; the grammar is isolationtester's (specparse.y) with rowlock's additions.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "race/scenario.hpp"
#include "race/scenario_lexer.hpp"
#include "race/sql_tokens.hpp"
#include "race/step_program.hpp"

namespace rowlock::race {

namespace {

constexpr int copies_max = 16;
constexpr int retries_max = 20;
constexpr int retries_default = 3;

/// A name of a permutation, before it is known which step it means.
struct NamedElement {
    std::string name;
    std::size_t begin;
    struct NamedMarker {
        Marker::Kind kind;
        std::string name;
        std::size_t begin;
        int notices = 0;
    };
    std::vector<NamedMarker> markers{};
};

class ScenarioParser {
  public:
    ScenarioParser(std::string_view text, std::string_view name) : source_(text, name), lexer_(source_) {
        scenario_.name = std::string(name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1));
    }

    Scenario parse() {
        while (current().kind != TokenKind::end) parse_top_level();
        if (scenario_.sessions.empty()) source_.fail(source_.text().size(), "there is no session");
        for (const auto& elements : named_permutations_) resolve_permutation(elements);
        return std::move(scenario_);
    }

  private:
    [[nodiscard]] const Token& current() const { return lexer_.current(); }
    [[nodiscard]] bool at_word(std::string_view word) const {
        return current().kind == TokenKind::identifier && current().text == word;
    }
    [[nodiscard]] bool at_symbol(char symbol) const {
        return current().kind == TokenKind::symbol && current().text.front() == symbol;
    }
    [[nodiscard]] bool at_name() const {
        return current().kind == TokenKind::identifier || current().kind == TokenKind::quoted;
    }
    [[noreturn]] void fail_here(const std::string& message) const { source_.fail(current().begin, message); }

    Token take_name(std::string_view what) {
        if (!at_name()) fail_here(fmt::format("here the name of {} is missing", what));
        return lexer_.take();
    }
    Token take_block(std::string_view what) {
        if (current().kind != TokenKind::sql_block) fail_here(fmt::format("{} needs its SQL in braces", what));
        return lexer_.take();
    }
    int take_integer(int max) {
        if (current().kind != TokenKind::integer) fail_here("a number is missing here");
        if (current().text.size() > 6 || std::stoi(current().text) > max || std::stoi(current().text) < 1) {
            fail_here(fmt::format("a number from 1 to {} is needed here", max));
        }
        return std::stoi(lexer_.take().text);
    }

    void parse_top_level() {
        if (at_word("setup")) {
            lexer_.take();
            Token block = take_block("setup");
            scenario_.setups.push_back(std::move(block.text));
            scenario_.setup_offsets.push_back(block.text_begin);
        } else if (at_word("teardown")) {
            lexer_.take();
            Token block = take_block("teardown");
            scenario_.teardown = std::move(block.text);
            scenario_.teardown_offset = block.text_begin;
        } else if (at_word("session")) {
            parse_session();
        } else if (at_word("permutation")) {
            parse_permutation();
        } else if (at_word("invariant")) {
            parse_invariant();
        } else if (at_word("isolation")) {
            parse_isolation();
        } else if (at_word("oracle")) {
            parse_oracle();
        } else {
            fail_here(
                fmt::format("'{}' is unknown here: a file has setup, teardown, session, step, permutation, "
                            "invariant, isolation and oracle",
                            current().text));
        }
    }

    void parse_session() {
        lexer_.take();
        const Token name = take_name("the session");
        SessionScript session;
        session.name = name.text;
        session.where = source_.position(name.begin);
        session.group = groups_++;
        int copies = 1;
        if (at_symbol('*')) {
            lexer_.take();
            copies = take_integer(copies_max);
        }
        while (parse_session_part(session)) {
        }
        if (session.steps.empty()) source_.fail(name.begin, fmt::format("session {} has no step", session.name));
        check_variables(session);
        add_copies(session, copies, name.begin);
    }

    bool parse_session_part(SessionScript& session) {
        if (at_word("setup")) {
            lexer_.take();
            Token block = take_block("setup");
            session.setup = std::move(block.text);
            session.setup_offset = block.text_begin;
        } else if (at_word("teardown")) {
            // A file's own teardown may follow a session only before the first step: isolationtester's grammar.
            lexer_.take();
            Token block = take_block("teardown");
            session.teardown = std::move(block.text);
            session.teardown_offset = block.text_begin;
        } else if (at_word("step")) {
            parse_step(session);
        } else if (at_word("on_error")) {
            lexer_.take();
            session.on_error = parse_error_policy();
        } else if (at_word("role")) {
            lexer_.take();
            session.role = take_name("the role").text;
        } else {
            return false;
        }
        return true;
    }

    ErrorPolicy parse_error_policy() {
        const Token word = take_name("what to do: stop, retry N or ignore");
        if (word.text == "stop") return {OnError::stop, 0};
        if (word.text == "ignore") return {OnError::ignore, 0};
        if (word.text != "retry") source_.fail(word.begin, "on_error takes stop, retry N or ignore");
        return {OnError::retry, current().kind == TokenKind::integer ? take_integer(retries_max) : retries_default};
    }

    void parse_step(SessionScript& session) {
        lexer_.take();
        const Token name = take_name("the step");
        const bool is_known = std::ranges::any_of(session.steps, [&](const Step& s) { return s.name == name.text; });
        if (is_known)
            source_.fail(name.begin, fmt::format("session {} has a step {} already", session.name, name.text));
        const Token block = take_block("a step");
        const auto fail = [&](std::size_t offset, const std::string& message) {
            source_.fail(block.text_begin + offset, message);
        };
        session.steps.push_back(
            {name.text, block.text, parse_step_program(block.text, fail), source_.position(name.begin)});
        step_texts_.push_back(block.text_begin);
    }

    void parse_invariant() {
        lexer_.take();
        Invariant invariant;
        if (at_word("always")) {
            lexer_.take();
            invariant.always = true;
        }
        const Token name = take_name("the invariant");
        invariant.name = name.text;
        invariant.where = source_.position(name.begin);
        const bool is_known =
            std::ranges::any_of(scenario_.invariants, [&](const Invariant& other) { return other.name == name.text; });
        if (is_known) source_.fail(name.begin, fmt::format("there is an invariant \"{}\" already", name.text));
        invariant.sql = take_block("an invariant").text;
        if (sql_statements(invariant.sql).size() != 1) source_.fail(name.begin, "an invariant is one query");
        scenario_.invariants.push_back(std::move(invariant));
    }

    void parse_isolation() {
        static const std::set<std::string, std::less<>> levels{"read uncommitted", "read committed", "repeatable read",
                                                               "serializable"};
        lexer_.take();
        do {
            const Token level = take_name("the isolation level");
            if (!levels.contains(level.text)) {
                source_.fail(level.begin,
                             "an isolation level is \"read uncommitted\", \"read committed\", "
                             "\"repeatable read\" or \"serializable\"");
            }
            scenario_.isolations.push_back(level.text);
        } while (current().kind == TokenKind::quoted);
    }

    void parse_oracle() {
        lexer_.take();
        const Token unit = take_name("the oracle's unit");
        if (unit.text == "session") {
            scenario_.oracle = OracleUnit::session;
        } else if (unit.text == "transaction") {
            scenario_.oracle = OracleUnit::transaction;
        } else if (unit.text == "off") {
            scenario_.oracle = OracleUnit::off;
        } else {
            source_.fail(unit.begin, "oracle takes session, transaction or off");
        }
    }

    void parse_permutation() {
        std::vector<NamedElement> elements;
        permutation_begins_.push_back(lexer_.take().begin);
        while (at_name() && !is_keyword()) elements.push_back(parse_element());
        if (elements.empty()) fail_here("this permutation names no step");
        named_permutations_.push_back(std::move(elements));
    }

    /// A step may be called "session" only in quotes.
    [[nodiscard]] bool is_keyword() const {
        static const std::set<std::string, std::less<>> keywords{"setup",     "teardown",  "session", "permutation",
                                                                 "invariant", "isolation", "oracle"};
        return current().kind == TokenKind::identifier && keywords.contains(current().text);
    }

    Token take_step_name() {
        Token name = take_name("the step");
        if (!at_symbol('.')) return name;
        lexer_.take();
        name.text += "." + take_name("the step").text;
        return name;
    }

    NamedElement parse_element() {
        const Token name = take_step_name();
        NamedElement element{name.text, name.begin};
        if (!at_symbol('(')) return element;
        do {
            lexer_.take();
            element.markers.push_back(parse_marker());
        } while (at_symbol(','));
        if (!at_symbol(')')) fail_here("a ')' is missing here");
        lexer_.take();
        return element;
    }

    NamedElement::NamedMarker parse_marker() {
        if (at_symbol('*')) return {Marker::Kind::any_session, {}, lexer_.take().begin};
        const Token name = take_step_name();
        if (!at_word("notices")) return {Marker::Kind::step_done, name.text, name.begin};
        lexer_.take();
        return {Marker::Kind::notices, name.text, name.begin, take_integer(1000)};
    }

    std::vector<std::pair<std::size_t, std::size_t>> steps_named(const std::string& name) const {
        std::vector<std::pair<std::size_t, std::size_t>> found;
        for (std::size_t s = 0; s < scenario_.sessions.size(); ++s) {
            const SessionScript& session = scenario_.sessions[s];
            for (std::size_t i = 0; i < session.steps.size(); ++i) {
                const std::string& step = session.steps[i].name;
                if (name == step || name == session.name + "." + step) found.emplace_back(s, i);
            }
        }
        return found;
    }

    std::pair<std::size_t, std::size_t> resolve_step(const std::string& name, std::size_t begin) const {
        const auto found = steps_named(name);
        if (found.empty()) source_.fail(begin, fmt::format("there is no step {}", name));
        if (found.size() > 1) {
            source_.fail(begin, fmt::format("several sessions have a step {}: write it as session.step", name));
        }
        return found.front();
    }

    void resolve_permutation(const std::vector<NamedElement>& elements) {
        Permutation permutation;
        permutation.where = source_.position(permutation_begins_[scenario_.permutations.size()]);
        for (const NamedElement& named : elements) {
            // PostgreSQL's own specs have steps of that name.
            if (named.name == "check" && steps_named(named.name).empty()) {
                permutation.elements.push_back({});
                continue;
            }
            const auto [session, step] = resolve_step(named.name, named.begin);
            PermutationElement element{session, step};
            for (const auto& marker : named.markers) {
                Marker resolved{marker.kind, 0, 0, marker.notices};
                if (marker.kind != Marker::Kind::any_session) {
                    std::tie(resolved.session, resolved.step) = resolve_step(marker.name, marker.begin);
                }
                element.markers.push_back(resolved);
            }
            permutation.elements.push_back(std::move(element));
        }
        scenario_.permutations.push_back(std::move(permutation));
    }

    /// A variable can only come from a \gset; where none of the session's could set it, that is a slip of the pen.
    /// Column names are not known here, so any word of the statement before a \gset may be one, and `*` is all of them.
    void check_variables(const SessionScript& session) {
        std::set<std::string, std::less<>> settable;
        bool any = false;
        for (const Step& step : session.steps) {
            for (std::size_t i = 1; i < step.program.size(); ++i) {
                if (step.program[i].kind != Instruction::Kind::keep_row) continue;
                const std::string& sql = step.program[i - 1].text;
                any = any || sql.find('*') != std::string::npos;
                for (const std::string& word : sql_words(sql)) settable.insert(step.program[i].text + word);
            }
        }
        for (std::size_t i = 0; i < session.steps.size() && !any; ++i) {
            for (const VariableUse& use : variable_uses(session.steps[i].sql)) {
                if (settable.contains(lower_case(use.name))) continue;
                source_.fail(step_texts_[step_texts_.size() - session.steps.size() + i] + use.begin,
                             fmt::format("the variable {} is never set: no \\gset of session {} names it", use.name,
                                         session.name));
            }
        }
    }

    void add_copies(const SessionScript& session, int copies, std::size_t begin) {
        for (int copy = 1; copy <= copies; ++copy) {
            SessionScript added = session;
            if (copies > 1) added.name = fmt::format("{}_{}", session.name, copy);
            const bool is_known = std::ranges::any_of(
                scenario_.sessions, [&](const SessionScript& other) { return other.name == added.name; });
            if (is_known) source_.fail(begin, fmt::format("there is a session {} already", added.name));
            scenario_.sessions.push_back(std::move(added));
        }
    }

    SourceText source_;
    ScenarioLexer lexer_;
    Scenario scenario_;
    std::size_t groups_ = 0;
    std::vector<std::vector<NamedElement>> named_permutations_;
    std::vector<std::size_t> permutation_begins_;
    std::vector<std::size_t> step_texts_;  ///< Where each step's SQL starts, in the order of the file.
};

}  // namespace

std::string step_label(const Scenario& scenario, std::size_t session, std::size_t step) {
    const SessionScript& owner = scenario.sessions.at(session);
    return owner.name + "." + owner.steps.at(step).name;
}

Scenario parse_scenario(std::string_view text, std::string_view name) {
    return ScenarioParser(text, name).parse();
}

}  // namespace rowlock::race
