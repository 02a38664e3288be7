#include "race/step_program.hpp"

#include <array>

#include "race/sql_tokens.hpp"

namespace rowlock::race {

namespace {

struct Command {
    std::string_view name;
    std::string_view argument;
    std::size_t begin;
    std::size_t end;
};

/// A backslash command runs to the end of its line, or to a further backslash; `\gset` takes at most one word.
Command command_at(std::string_view text, std::size_t at) {
    std::size_t end = at + 1;
    while (end < text.size() && is_word_part(text[end])) ++end;
    Command command{text.substr(at + 1, end - at - 1), {}, at, end};
    const std::size_t line_end = std::min(text.find_first_of("\n\\", end), text.size());
    const std::string_view rest = trimmed(text.substr(end, line_end - end));
    if (command.name == "gset") {
        std::size_t length = 0;
        while (length < rest.size() && is_word_part(rest[length])) ++length;
        command.argument = rest.substr(0, length);
        if (length > 0) command.end = static_cast<std::size_t>(rest.data() - text.data()) + length;
    } else if (command.name == "if") {
        command.argument = rest;
        command.end = line_end;
    }
    return command;
}

/// `\gset` ends a statement as a semicolon does, so one that stands right behind it is no statement of its own.
bool has_code(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const SqlToken token = sql_token_at(text, at);
        const bool is_code =
            token.kind != SqlTokenKind::space && token.kind != SqlTokenKind::comment && text[at] != ';';
        if (is_code) return true;
        at = token.end;
    }
    return false;
}

class ProgramBuilder {
  public:
    ProgramBuilder(std::string_view text, const ProgramFailure& fail) : text_(text), fail_(fail) {}

    std::vector<Instruction> build() {
        std::size_t begin = 0;
        for (std::size_t at = 0; at < text_.size();) {
            const SqlToken token = sql_token_at(text_, at);
            if (token.kind != SqlTokenKind::symbol || text_[at] != '\\') {
                at = token.end;
                continue;
            }
            const Command command = command_at(text_, at);
            add_send(begin, at);
            add_command(command);
            at = begin = command.end;
        }
        add_send(begin, text_.size());
        if (!branches_.empty()) fail_(branches_.back().begin, "this \\if has no \\endif");
        return std::move(program_);
    }

  private:
    struct Branch {
        std::size_t begin;
        std::size_t jump_unless;
        std::optional<std::size_t> jump{};
    };

    void add_send(std::size_t begin, std::size_t end) {
        const std::string_view sql = trimmed(text_.substr(begin, end - begin));
        if (has_code(sql)) program_.push_back({Instruction::Kind::send, std::string(sql)});
    }

    void add_command(const Command& command) {
        if (command.name == "gset") {
            const bool follows_send = !program_.empty() && program_.back().kind == Instruction::Kind::send;
            if (!follows_send) fail_(command.begin, "\\gset needs a statement before it");
            program_.push_back({Instruction::Kind::keep_row, std::string(command.argument)});
        } else if (command.name == "if") {
            if (command.argument.empty()) fail_(command.begin, "\\if needs a value, such as \\if :found");
            branches_.push_back({command.begin, program_.size()});
            program_.push_back({Instruction::Kind::jump_unless, std::string(command.argument)});
        } else if (command.name == "else") {
            add_else(command);
        } else if (command.name == "endif") {
            add_endif(command);
        } else if (command.name == "disconnect") {
            program_.push_back({Instruction::Kind::disconnect});
        } else {
            fail_(command.begin, "\\" + std::string(command.name) +
                                     " is unknown here: there are \\gset, \\if, \\else, \\endif and \\disconnect");
        }
    }

    void add_else(const Command& command) {
        if (branches_.empty() || branches_.back().jump) fail_(command.begin, "this \\else has no \\if");
        branches_.back().jump = program_.size();
        program_.push_back({Instruction::Kind::jump});
        program_[branches_.back().jump_unless].target = program_.size();
    }

    void add_endif(const Command& command) {
        if (branches_.empty()) fail_(command.begin, "this \\endif has no \\if");
        const Branch branch = branches_.back();
        branches_.pop_back();
        program_[branch.jump.value_or(branch.jump_unless)].target = program_.size();
    }

    std::string_view text_;
    const ProgramFailure& fail_;
    std::vector<Instruction> program_;
    std::vector<Branch> branches_;
};

std::string quoted_as(const std::string& value, char quote) {
    std::string quoted(1, quote);
    for (const char c : value) {
        if (c == quote) quoted += c;
        quoted += c;
    }
    return quoted + quote;
}

std::string put_in(const VariableUse& use, const std::optional<std::string>& value) {
    if (!value) return "NULL";
    switch (use.form) {
        case VariableUse::Form::literal:
            return quoted_as(*value, '\'');
        case VariableUse::Form::identifier:
            return quoted_as(*value, '"');
        case VariableUse::Form::plain:
            break;
    }
    return *value;
}

/// What may stand before a variable's colon: not another colon (a cast), nor an array's lower bound.
bool may_precede_variable(std::string_view sql, std::size_t colon) {
    if (colon == 0) return true;
    const char before = sql[colon - 1];
    return before != ':' && before != '[' && !is_word_part(before);
}

}  // namespace

std::vector<Instruction> parse_step_program(std::string_view text, const ProgramFailure& fail) {
    return ProgramBuilder(text, fail).build();
}

std::vector<VariableUse> variable_uses(std::string_view sql) {
    std::vector<VariableUse> uses;
    for (std::size_t at = 0; at < sql.size();) {
        const SqlToken token = sql_token_at(sql, at);
        const bool is_colon = token.kind == SqlTokenKind::symbol && sql[at] == ':' && token.end < sql.size();
        if (!is_colon || !may_precede_variable(sql, at)) {
            at = token.end;
            continue;
        }
        const SqlToken name = sql_token_at(sql, token.end);
        const std::string_view text = name.in(sql);
        if (name.kind == SqlTokenKind::word) {
            uses.push_back({VariableUse::Form::plain, std::string(text), at, name.end});
        } else if (name.kind == SqlTokenKind::string && name.closed && text.front() == '\'') {
            uses.push_back({VariableUse::Form::literal, std::string(text.substr(1, text.size() - 2)), at, name.end});
        } else if (name.kind == SqlTokenKind::quoted_identifier && name.closed) {
            uses.push_back({VariableUse::Form::identifier, std::string(text.substr(1, text.size() - 2)), at, name.end});
        }
        at = name.end;
    }
    return uses;
}

std::string substitute(std::string_view sql, const Variables& variables, std::string& unset) {
    std::string text;
    std::size_t copied = 0;
    for (const VariableUse& use : variable_uses(sql)) {
        const auto found = variables.find(use.name);
        if (found == variables.end()) {
            if (unset.empty()) unset = use.name;
            continue;
        }
        text += sql.substr(copied, use.begin - copied);
        text += put_in(use, found->second);
        copied = use.end;
    }
    text += sql.substr(copied);
    return text;
}

bool is_true(std::string_view value) {
    const std::string word = lower_case(trimmed(value));
    if (word.empty()) return false;
    if (word == "on" || word == "1") return true;
    return std::string_view("true").starts_with(word) || std::string_view("yes").starts_with(word);
}

}  // namespace rowlock::race
