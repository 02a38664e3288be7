// Feeds the readers of foreign files: scenarios, replays and pgbench's scripts. What can't be read must be refused with
// a place inside of the file; nothing else may happen.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "race/pgbench_script.hpp"
#include "race/replay.hpp"
#include "race/scenario.hpp"

namespace {

template <class Reader>
void read(const Reader& reader) {
    try {
        (void)reader();
    } catch (const rowlock::race::ScenarioError& refused) {
        if (refused.where().line < 1 || refused.where().column < 1) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rowlock::race;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are what a file is
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    read([&] { return parse_scenario(text, "fuzz.race"); });
    read([&] { return parse_replay(text, "fuzz.replay"); });
    read([&] { return parse_pgbench_script(text, "fuzz.sql"); });
    return 0;
}
