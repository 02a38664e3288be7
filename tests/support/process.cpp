#include "support/process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace rowlock::test {

namespace {

[[noreturn]] void throw_errno(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

int memory_file(const std::string& content) {
    const int raw = memfd_create("test", MFD_CLOEXEC);
    const int file = fcntl(raw, F_DUPFD_CLOEXEC, 10);
    if (raw < 0 || file < 0) throw_errno("memfd_create");
    close(raw);
    if (write(file, content.data(), content.size()) != static_cast<ssize_t>(content.size())) throw_errno("write");
    lseek(file, 0, SEEK_SET);
    return file;
}

std::string content_of(int file) {
    std::string content;
    std::array<char, 65536> piece{};
    off_t place = 0;
    for (ssize_t count = 0; (count = pread(file, piece.data(), piece.size(), place)) > 0; place += count) {
        content.append(piece.data(), static_cast<std::size_t>(count));
    }
    return content;
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& changes) {
    std::vector<std::string> result;
    const auto changed = [&](std::string_view variable) {
        for (const auto& [name, value] : changes) {
            if (variable.starts_with(name + "=")) return true;
        }
        return false;
    };
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (!changed(*variable)) result.emplace_back(*variable);
    }
    for (const auto& [name, value] : changes) {
        if (!value.empty()) result.push_back(name + "=" + value);
    }
    return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace

BackgroundProcess::BackgroundProcess(const ProcessOptions& options) {
    if (options.arguments.empty()) throw std::invalid_argument("no program named");
    std::vector<std::string> arguments = options.arguments;
    std::vector<std::string> environment = environment_with(options.environment);
    const auto argument_pointers = pointers_to(arguments);
    const auto environment_pointers = pointers_to(environment);
    const int input = memory_file(options.input);
    output_ = memory_file({});
    errors_ = memory_file({});
    pid_ = fork();
    if (pid_ < 0) throw_errno("fork");
    if (pid_ == 0) {
        setpgid(0, 0);
        dup2(input, STDIN_FILENO);
        dup2(output_, STDOUT_FILENO);
        dup2(errors_, STDERR_FILENO);
        const bool placed = options.folder.empty() || chdir(options.folder.c_str()) == 0;
        const bool switched =
            !options.user || (setgroups(0, nullptr) == 0 && setgid(*options.user) == 0 && setuid(*options.user) == 0);
        if (placed && switched) execvpe(argument_pointers[0], argument_pointers.data(), environment_pointers.data());
        constexpr int not_started = 127;
        _exit(not_started);
    }
    setpgid(pid_, pid_);
    close(input);
}

BackgroundProcess::~BackgroundProcess() {
    if (!state_) kill(-pid_, SIGKILL);
    kill_hard();
    close(output_);
    close(errors_);
}

bool BackgroundProcess::running() {
    int state = 0;
    if (!state_ && waitpid(pid_, &state, WNOHANG) == pid_) state_ = state;
    return !state_;
}

std::string BackgroundProcess::output() const {
    return content_of(output_);
}
std::string BackgroundProcess::errors() const {
    return content_of(errors_);
}

void BackgroundProcess::send(int signal) {
    if (running()) kill(pid_, signal);
}

void BackgroundProcess::kill_hard() {
    send(SIGKILL);
    int state = 0;
    while (!state_) {
        if (waitpid(pid_, &state, 0) == pid_) state_ = state;
        if (!state_ && errno != EINTR) throw_errno("waitpid");
    }
}

ProcessResult BackgroundProcess::wait(std::chrono::milliseconds limit) {
    ProcessResult result;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (running()) {
        if (std::chrono::steady_clock::now() > deadline) {
            result.timed_out = true;
            kill(-pid_, SIGKILL);
            kill_hard();
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    if (WIFEXITED(*state_)) result.exit_code = WEXITSTATUS(*state_);
    if (WIFSIGNALED(*state_)) result.signal = WTERMSIG(*state_);
    result.output = output();
    result.errors = errors();
    return result;
}

ProcessResult run_process(const ProcessOptions& options, std::chrono::milliseconds limit) {
    return BackgroundProcess(options).wait(limit);
}

}  // namespace rowlock::test
