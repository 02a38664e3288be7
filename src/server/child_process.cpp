#include "server/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "rowlock/error.hpp"
#include "server/bounded_wait.hpp"

namespace rowlock {

namespace {

constexpr int first_descriptor = 10;
constexpr int exit_not_started = 127;

[[noreturn]] void throw_no_process(std::string_view what) {
    throw SetupError(fmt::format("the private server: {}: {}", what, std::generic_category().message(errno)));
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> child_environment() {
    std::vector<std::string> environment{"LC_ALL=C"};
    for (const char* name : {"PATH", "TZ", "LD_LIBRARY_PATH"}) {
        const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets variables
        if (value != nullptr) environment.push_back(fmt::format("{}={}", name, value));
    }
    return environment;
}

/// All that a child needs, laid out before the fork: after it nothing may allocate.
class ChildPlan {
  public:
    ChildPlan(const Account& account, std::vector<std::string> arguments)
        : account_(account),
          arguments_(std::move(arguments)),
          environment_(child_environment()),
          argument_pointers_(pointers_to(arguments_)),
          environment_pointers_(pointers_to(environment_)) {}

    /// In the child: never comes back. `output` may be -1, then `log` is opened under the account.
    [[noreturn]] void run(int input, int output, int kept, const char* log) const noexcept {
        // An ignored SIGCHLD, say, would come along, and initdb would never see its own children end.
        for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
        sigset_t none;
        sigemptyset(&none);
        pthread_sigmask(SIG_SETMASK, &none, nullptr);
        umask(S_IRWXG | S_IRWXO);
        if (account_.switched && !become(account_)) give_up(output, "cannot change to the server's account");
        if (log != nullptr) output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, S_IRUSR | S_IWUSR);
        if (output < 0 || chdir("/") != 0) give_up(output, "cannot open its log");
        dup2(input, STDIN_FILENO);
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        if (kept >= 0) dup2(kept, STDERR_FILENO + 1);
        close_range(kept >= 0 ? STDERR_FILENO + 2U : STDERR_FILENO + 1U, ~0U, 0);
        execve(argument_pointers_[0], argument_pointers_.data(), environment_pointers_.data());
        give_up(STDERR_FILENO, "cannot start the program");
    }

  private:
    [[noreturn]] static void give_up(int output, const char* what) noexcept {
        const char* reason = strerrordesc_np(errno);
        for (const char* part : {"error: ", what, ": ", reason == nullptr ? "unknown" : reason, "\n"}) {
            [[maybe_unused]] const auto written = write(output, part, std::strlen(part));
        }
        _exit(exit_not_started);
    }

    const Account& account_;
    std::vector<std::string> arguments_;
    std::vector<std::string> environment_;
    std::vector<char*> argument_pointers_;
    std::vector<char*> environment_pointers_;
};

Descriptor memory_file(std::string_view content) {
    Descriptor file(memfd_create("rowlock", MFD_CLOEXEC));
    if (!file.open()) throw_no_process("no memory file could be made");
    while (!content.empty()) {
        const ssize_t written = write(file.raw(), content.data(), content.size());
        if (written < 0) throw_no_process("a memory file could not be written");
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    lseek(file.raw(), 0, SEEK_SET);
    return file;
}

std::string whole_content(const Descriptor& file) {
    std::string content;
    std::array<char, 4096> piece{};
    off_t place = 0;
    for (ssize_t count = 0; (count = pread(file.raw(), piece.data(), piece.size(), place)) > 0; place += count) {
        content.append(piece.data(), static_cast<std::size_t>(count));
    }
    return content;
}

}  // namespace

Descriptor::Descriptor(int raw) noexcept {
    if (raw < 0) return;
    raw_ = raw >= first_descriptor ? raw : fcntl(raw, F_DUPFD_CLOEXEC, first_descriptor);
    if (raw_ != raw) ::close(raw);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
}

Descriptor::~Descriptor() {
    if (raw_ >= 0) ::close(raw_);
}

CommandResult run_as(const Account& account, const Command& command, std::chrono::milliseconds limit) {
    const ChildPlan plan(account, command.arguments);
    const Descriptor input = memory_file(command.input);
    const Descriptor output = memory_file({});
    const pid_t child = fork();
    if (child < 0) throw_no_process("no process could be made");
    if (child == 0) {
        // Ctrl-C stops rowlock, not a program half-way through making files.
        setsid();
        plan.run(input.raw(), output.raw(), command.kept_descriptor, nullptr);
    }
    int state = 0;
    pid_t ended = 0;
    const auto has_ended = [&] {
        ended = waitpid(child, &state, WNOHANG);
        return ended != 0;
    };
    if (!wait_until(limit, has_ended)) {
        kill(-child, SIGKILL);
        waitpid(child, &state, 0);
        throw SetupError(
            fmt::format("{} was not done after {} s and was stopped: is the disk or the machine overloaded?",
                        command.arguments[0], std::chrono::duration_cast<std::chrono::seconds>(limit).count()));
    }
    if (ended < 0) throw_no_process("the end of a program could not be seen (is SIGCHLD ignored?)");
    constexpr int signal_base = 128;
    return {WIFEXITED(state) ? WEXITSTATUS(state) : signal_base + WTERMSIG(state), whole_content(output)};
}

int start_detached(const Account& account, const std::vector<std::string>& arguments,
                   const std::filesystem::path& log) {
    const ChildPlan plan(account, arguments);
    const std::string log_path = log.string();
    const Descriptor nothing = memory_file({});
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw_no_process("no pipe could be made");
    const Descriptor reading(ends[0]);
    Descriptor writing(ends[1]);
    const pid_t child = fork();
    if (child < 0) throw_no_process("no process could be made");
    if (child == 0) {
        setsid();
        const pid_t server = fork();
        if (server == 0) plan.run(nothing.raw(), -1, -1, log_path.c_str());
        [[maybe_unused]] const auto written = write(writing.raw(), &server, sizeof server);
        _exit(0);
    }
    writing = Descriptor();
    pid_t server = -1;
    const ssize_t count = read(reading.raw(), &server, sizeof server);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
    if (count != static_cast<ssize_t>(sizeof server) || server <= 0) throw_no_process("no process could be made");
    return server;
}

}  // namespace rowlock
