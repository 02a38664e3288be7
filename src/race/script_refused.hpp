// Runs SQL of a scenario that is there to prepare, and says where in the file the server refused it.
#pragma once

#include <string>
#include <string_view>

#include "race/scenario.hpp"
#include "race/timeouts.hpp"
#include "rowlock/error.hpp"

namespace rowlock::race {

/// Where in `text` the character is that the server counted to. The server saw the text with its time-outs renamed;
/// where that moved anything, the text's start is all that is known.
[[nodiscard]] std::size_t offset_of_character(std::string_view text, std::size_t character);

/// The server or the link to it went away: no SQLSTATE, 08xxx, or 57P01 to 57P03.
[[nodiscard]] bool is_server_gone(const ServerError& error);

/// Throws ScriptRefused where `run` throws ServerError. `offset` is that of `text` in its file.
template <class Run>
void run_as_written(const std::string& text, std::size_t offset, const Run& run) {
    try {
        run();
    } catch (const ServerError& refused) {
        if (is_server_gone(refused)) throw;
        const ServerReport& report = refused.report();
        throw ScriptRefused("the server refuses this: " + report.message + " (SQLSTATE " + report.sqlstate + ")",
                            offset + offset_of_character(text, report.position));
    }
}

}  // namespace rowlock::race
