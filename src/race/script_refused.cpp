#include "race/script_refused.hpp"

namespace rowlock::race {

bool is_server_gone(const ServerError& error) {
    const std::string_view code = error.sqlstate();
    return code.empty() || code.starts_with("08") || code.starts_with("57P");
}

std::size_t offset_of_character(std::string_view text, std::size_t character) {
    if (character == 0 || without_timeouts(text) != text) return 0;
    std::size_t seen = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
        if (begins && ++seen == character) return at;
    }
    return 0;
}

}  // namespace rowlock::race
