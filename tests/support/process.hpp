// Child processes of tests, every wait with a limit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rowlock::test {

struct ProcessOptions {
    std::vector<std::string> arguments;  ///< The first is the program, looked up in PATH.
    std::string input;                   ///< All of its standard input.
    /// Added to this process's own variables; an empty value removes one.
    std::vector<std::pair<std::string, std::string>> environment;
    std::string folder;  ///< Its working folder; empty: this process's.
    /// The user to become first, with the user's number as its group; only for root.
    std::optional<unsigned> user;
};

struct ProcessResult {
    int exit_code = -1;  ///< -1 if a signal ended it.
    int signal = 0;
    bool timed_out = false;  ///< It was killed at the limit.
    std::string output;
    std::string errors;
};

/// A process in the background. What it prints goes to memory, so it never waits for a reader. Killed, with all of its
/// group, at the end of the object.
class BackgroundProcess {
  public:
    explicit BackgroundProcess(const ProcessOptions& options);
    ~BackgroundProcess();
    BackgroundProcess(const BackgroundProcess&) = delete;
    BackgroundProcess& operator=(const BackgroundProcess&) = delete;

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    [[nodiscard]] bool running();
    /// What it has printed so far.
    [[nodiscard]] std::string output() const;
    [[nodiscard]] std::string errors() const;
    /// To the process alone, not to its children.
    void send(int signal);
    /// SIGKILL to the process alone, not to its children, and waits for its end.
    void kill_hard();
    /// Waits for its end; at the limit kills it with all of its group.
    ProcessResult wait(std::chrono::milliseconds limit);

  private:
    pid_t pid_ = -1;
    int output_ = -1;
    int errors_ = -1;
    std::optional<int> state_;
};

/// Runs a process to its end.
ProcessResult run_process(const ProcessOptions& options, std::chrono::milliseconds limit = std::chrono::seconds{60});

}  // namespace rowlock::test
