#include "race/pgbench_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "race/scenario_lexer.hpp"
#include "race/sql_tokens.hpp"
#include "race/step_program.hpp"

namespace rowlock::race {

namespace {

class PgbenchScript {
  public:
    PgbenchScript(std::string_view text, std::string_view name) : source_(text, name), text_(text) {
        std::string_view stem = name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
        stem = stem.substr(0, stem.rfind('.'));
        session_.name = stem.empty() ? std::string("session") : std::string(stem);
    }

    SessionScript parse() {
        std::size_t at = 0;
        while (at < text_.size()) at = take_token(at);
        if (depth_ > 0) source_.fail(begin_, "this \\if has no \\endif");
        end_step(text_.size());
        if (session_.steps.empty()) source_.fail(0, "there is no statement in this script");
        return std::move(session_);
    }

  private:
    std::size_t take_token(std::size_t at) {
        const SqlToken token = sql_token_at(text_, at);
        if (!token.closed) source_.fail(at, "this string, name or comment is never closed");
        if (token.kind != SqlTokenKind::symbol) return token.end;
        if (text_[at] == ';') {
            if (depth_ == 0) end_step(token.end);
            return token.end;
        }
        return text_[at] == '\\' ? take_command(at) : token.end;
    }

    std::size_t take_command(std::size_t at) {
        std::size_t end = at + 1;
        while (end < text_.size() && is_word_part(text_[end])) ++end;
        const std::string_view command = text_.substr(at + 1, end - at - 1);
        const std::size_t line_end = std::min(text_.find('\n', at), text_.size());
        if (command == "if") {
            ++depth_;
        } else if (command == "endif") {
            depth_ -= depth_ > 0 ? 1 : 0;
        } else if (command != "gset" && command != "else") {
            source_.fail(at,
                         fmt::format("\\{} is unknown here: of pgbench's commands there are \\gset, \\if, \\else and "
                                     "\\endif",
                                     command));
        }
        if (depth_ == 0) end_step(line_end);
        return line_end;
    }

    void end_step(std::size_t end) {
        const std::size_t begin = std::exchange(begin_, end);
        const std::string_view sql = trimmed(text_.substr(begin, end - begin));
        const std::vector<std::string> words = sql_code_words(sql);
        if (words.empty() || words.front() == ";") return;
        const std::string name = words.front() == "\\" && words.size() > 1 ? words[1] : words.front();
        const int uses = ++uses_[name];
        const auto offset = static_cast<std::size_t>(sql.data() - text_.data());
        const auto fail = [&](std::size_t inside, const std::string& said) { source_.fail(offset + inside, said); };
        session_.steps.push_back({uses == 1 ? name : fmt::format("{}_{}", name, uses), std::string(sql),
                                  parse_step_program(sql, fail), source_.position(offset)});
    }

    SourceText source_;
    std::string_view text_;
    SessionScript session_;
    std::map<std::string, int> uses_;
    std::size_t begin_ = 0;
    int depth_ = 0;
};

}  // namespace

SessionScript parse_pgbench_script(std::string_view text, std::string_view name) {
    return PgbenchScript(text, name).parse();
}

void make_names_unique(Scenario& scenario) {
    std::map<std::string, int> uses;
    for (SessionScript& session : scenario.sessions) {
        const int use = ++uses[session.name];
        if (use > 1) session.name += fmt::format("_{}", use);
    }
}

}  // namespace rowlock::race
