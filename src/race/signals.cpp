#include "race/signals.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

namespace rowlock::race {

namespace {

/// The kernel stops a process at once where it sleeps, and at its next tick where it runs.
constexpr auto stop_wait_max = std::chrono::seconds(2);

/// The letter after the command's name in /proc/PID/stat; 'X' for a process that is gone.
/// Source: proc(5)
char state_of(int pid) {
    const std::string path = "/proc/" + std::to_string(pid) + "/stat";
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 'X';
    char buffer[256];
    const ssize_t length = read(file, buffer, sizeof buffer);
    close(file);
    if (length <= 0) return 'X';
    const std::string_view text(buffer, static_cast<std::size_t>(length));
    const std::size_t name_end = text.rfind(") ");
    return name_end == std::string_view::npos || name_end + 2 >= text.size() ? 'X' : text[name_end + 2];
}

}  // namespace

void stop_process(int pid) {
    if (kill(pid, SIGSTOP) != 0) return;
    const auto give_up_at = std::chrono::steady_clock::now() + stop_wait_max;
    while (true) {
        const char state = state_of(pid);
        if (state == 'T' || state == 'X' || state == 'Z') return;
        if (std::chrono::steady_clock::now() > give_up_at) return;
        std::this_thread::yield();
    }
}

void resume_process(int pid) {
    kill(pid, SIGCONT);
}

bool process_exists(int pid) {
    const char state = state_of(pid);
    return state != 'X' && state != 'Z';
}

}  // namespace rowlock::race
