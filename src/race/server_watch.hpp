// What the server says of the sessions from outside, while they run or wait.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postgres/session.hpp"
#include "race/catalog.hpp"
#include "race/footprint_tracker.hpp"

namespace rowlock::race {

/// One backend while its statement is not over.
struct BackendView {
    std::vector<int> blocked_by;  ///< None: it does not wait for a lock.
    std::vector<HeldLock> locks;  ///< Relation and advisory locks; the one that it waits for is not granted.
};

/// The control connection.
class ServerWatch {
  public:
    explicit ServerWatch(const std::string& connection);

    /// Who waits for whom, of these backends.
    [[nodiscard]] std::map<int, std::vector<int>> blockers(std::span<const int> pids);
    /// Both in one trip: half of the executions of a small scenario have a step that waits.
    [[nodiscard]] BackendView view(int pid, const Catalog& catalog);
    /// The relation and advisory locks of one backend.
    [[nodiscard]] std::vector<HeldLock> locks(int pid, const Catalog& catalog);
    /// A script of the scenario's own; throws ServerError with the script's fault.
    void run_script(const std::string& script);
    [[nodiscard]] Session& session() noexcept { return session_; }
    [[nodiscard]] bool has_backend(int pid);

  private:
    Session session_;
};

/// What array_to_string makes of an array of numbers.
[[nodiscard]] std::vector<int> numbers_in(std::string_view text);

/// Reads what there is after the setup.
[[nodiscard]] Catalog read_catalog(Session& session);

/// Runs one query on the control connection; throws ServerError.
[[nodiscard]] Rows query(Session& session, const Statement& statement, const std::vector<Parameter>& parameters = {});

}  // namespace rowlock::race
