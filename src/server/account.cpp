#include "server/account.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::size_t entry_text_max = 16384;
using EntryText = std::array<char, entry_text_max>;

std::optional<Account> account_of(const passwd* entry) {
    if (entry == nullptr) return std::nullopt;
    return Account{entry->pw_name, entry->pw_uid, entry->pw_gid, false};
}

std::optional<Account> account_named(const char* name) {
    passwd entry{};
    EntryText text{};
    passwd* found = nullptr;
    getpwnam_r(name, &entry, text.data(), text.size(), &found);
    return account_of(found);
}

std::optional<Account> account_numbered(unsigned user) {
    passwd entry{};
    EntryText text{};
    passwd* found = nullptr;
    getpwuid_r(user, &entry, text.data(), text.size(), &found);
    return account_of(found);
}

/// Runs `work()` in a child that has become the account, and gives back its answer: 0 to 250.
/// `work` runs between fork and exit, where allocating is not safe. Nothing, with errno, if the child couldn't become
/// it.
template <class Work>
std::optional<int> ask_as(const Account& account, Work&& work) {
    constexpr int could_not_become = 255;
    std::array<int, 2> pipe_ends{};
    if (pipe(pipe_ends.data()) != 0) return std::nullopt;
    const pid_t child = fork();
    if (child == 0) {
        if (account.switched && !become(account)) {
            const int reason = errno;
            [[maybe_unused]] const auto written = write(pipe_ends[1], &reason, sizeof reason);
            _exit(could_not_become);
        }
        _exit(work());
    }
    int reason = child < 0 ? errno : 0;
    close(pipe_ends[1]);
    int state = 0;
    while (child > 0 && waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
    [[maybe_unused]] const auto read_bytes = read(pipe_ends[0], &reason, sizeof reason);
    close(pipe_ends[0]);
    if (child > 0 && WIFEXITED(state) && WEXITSTATUS(state) != could_not_become) return WEXITSTATUS(state);
    errno = reason;
    return std::nullopt;
}

Account account_for_root(std::optional<unsigned> folder_owner) {
    std::optional<Account> account;
    if (folder_owner && *folder_owner != 0) {
        account = account_numbered(*folder_owner);
        if (!account) {
            throw SetupError(
                fmt::format("the private server's folder belongs to user {}, who has no name on this "
                            "system, and PostgreSQL needs one: give the folder to an account that exists",
                            *folder_owner));
        }
    } else {
        account = account_named("postgres");
        if (!account) account = account_named("nobody");
    }
    if (!account || account->user == 0) {
        throw SetupError(
            "PostgreSQL refuses to run as root, and this system has neither an account 'postgres' nor "
            "'nobody' to run it under: run rowlock as an ordinary user, or name a server with --db");
    }
    account->switched = true;
    if (!ask_as(*account, [] { return 0; })) {
        throw SetupError(
            fmt::format("PostgreSQL refuses to run as root, and this process may not become '{}' ({}): run "
                        "rowlock as an ordinary user, or name a server with --db",
                        account->name, std::generic_category().message(errno)));
    }
    return *account;
}

}  // namespace

Account own_account() {
    return {.name = {}, .user = geteuid(), .group = getegid(), .switched = false};
}

Account server_account(const std::filesystem::path& folder, std::optional<unsigned> folder_owner) {
    const unsigned self = geteuid();
    if (self == 0) return account_for_root(folder_owner);
    if (folder_owner && *folder_owner != self) {
        throw SetupError(
            fmt::format("the private server in {} belongs to '{}' and you are '{}': run as that user, or "
                        "name another folder with --data",
                        folder.string(), user_name(*folder_owner), user_name(self)));
    }
    const auto account = account_numbered(self);
    if (!account) {
        throw SetupError(
            fmt::format("user {} has no name on this system, and PostgreSQL needs one to know who is "
                        "calling: add the user to /etc/passwd, or name a server with --db",
                        self));
    }
    return *account;
}

bool become(const Account& account) noexcept {
    return setgroups(0, nullptr) == 0 && setgid(account.group) == 0 && setuid(account.user) == 0;
}

std::string user_name(unsigned user) {
    const auto account = account_numbered(user);
    return account ? account->name : std::to_string(user);
}

std::optional<std::filesystem::path> first_closed_parent(const Account& account, const std::filesystem::path& folder) {
    constexpr std::size_t parents_max = 200;
    std::vector<std::string> parents;
    std::filesystem::path parent;
    for (const auto& step : folder.parent_path()) {
        parent /= step;
        parents.push_back(parent.string());
    }
    if (parents.size() > parents_max) return folder;
    const auto closed = ask_as(account, [&] {
        int place = 0;
        for (const std::string& path : parents) {
            if (access(path.c_str(), X_OK) != 0 && errno == EACCES) return place;
            ++place;
        }
        return place;
    });
    if (!closed || static_cast<std::size_t>(*closed) >= parents.size()) return std::nullopt;
    return parents[static_cast<std::size_t>(*closed)];
}

}  // namespace rowlock
