// Programs of PostgreSQL as child processes under the server's account.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/account.hpp"

namespace rowlock {

/// A file descriptor that closes itself; -1 for none. Always 10 or above, so that a child's 0 to 3 are free for it.
class Descriptor {
  public:
    Descriptor() = default;
    /// Takes over a descriptor, or -1 from a call that failed; errno stays.
    explicit Descriptor(int raw) noexcept;
    Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor();

    [[nodiscard]] int raw() const noexcept { return raw_; }
    [[nodiscard]] bool open() const noexcept { return raw_ >= 0; }

  private:
    int raw_ = -1;
};

struct Command {
    std::vector<std::string> arguments;  ///< The first is the program's path.
    std::string_view input;
    /// Stays open in the child (as 3): a lock that it shares is then held until the last of its processes ends.
    int kept_descriptor = -1;
};

struct CommandResult {
    int exit_code = -1;  ///< 128 + n for death by signal n.
    std::string output;  ///< Standard output and error, as they came.
};

/// Runs a program to its end, as the account, from the root folder, with few environment variables: neither PGDATA nor
/// what root keeps in its environment goes along. Kills it at the limit and throws SetupError.
[[nodiscard]] CommandResult run_as(const Account& account, const Command& command, std::chrono::milliseconds limit);

/// Starts a program that outlives this process, its output added to the file `log`, and gives back its process id.
/// It is no child of this process, so it leaves no zombie behind that would look alive to the next start.
/// Throws SetupError if no process could be made.
[[nodiscard]] int start_detached(const Account& account, const std::vector<std::string>& arguments,
                                 const std::filesystem::path& log);

}  // namespace rowlock
