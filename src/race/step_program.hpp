// What a step does, instruction by instruction: SQL to send, and psql's \gset and \if between.
// Source: https://www.postgresql.org/docs/15/app-psql.html (Meta-Commands, Variables, SQL Interpolation)
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "race/scenario.hpp"

namespace rowlock::race {

/// Called with an offset into the text and a message; must throw.
using ProgramFailure = std::function<void(std::size_t offset, const std::string& message)>;

[[nodiscard]] std::vector<Instruction> parse_step_program(std::string_view text, const ProgramFailure& fail);

/// A variable's value; nothing is SQL's NULL.
using Variables = std::map<std::string, std::optional<std::string>, std::less<>>;

/// A `:name`, `:'name'` or `:"name"` in SQL.
struct VariableUse {
    enum class Form { plain, literal, identifier };
    Form form;
    std::string name;
    std::size_t begin;
    std::size_t end;
};

/// Every use outside of strings, names and comments. `::type` and an array's `[1:2]` are none.
[[nodiscard]] std::vector<VariableUse> variable_uses(std::string_view sql);

/// The text with its variables put in; `unset` receives the first name that has no value, which stays as it is.
/// A NULL becomes the word NULL in every form (psql has no NULL variables: there no row is an error).
[[nodiscard]] std::string substitute(std::string_view sql, const Variables& variables, std::string& unset);

/// `\if`'s reading of a value: true, on, yes, 1 and their beginnings; anything else, NULL too, is false.
[[nodiscard]] bool is_true(std::string_view value);

}  // namespace rowlock::race
