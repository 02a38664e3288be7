// What the server says of the sessions from outside, while they run or wait.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "postgres/session.hpp"
#include "race/catalog.hpp"
#include "race/footprint_tracker.hpp"

namespace rowlock::race {

/// The control connection.
class ServerWatch {
  public:
    explicit ServerWatch(const std::string& connection);

    /// Who waits for whom, of these backends.
    [[nodiscard]] std::map<int, std::vector<int>> blockers(std::span<const int> pids);
    /// The relation and advisory locks of one backend.
    [[nodiscard]] std::vector<HeldLock> locks(int pid, const Catalog& catalog);
    /// A script of the scenario's own; throws ServerError with the script's fault.
    void run_script(const std::string& script);
    [[nodiscard]] Session& session() noexcept { return session_; }
    [[nodiscard]] bool has_backend(int pid);

  private:
    Session session_;
};

/// Reads what there is after the setup.
[[nodiscard]] Catalog read_catalog(Session& session);

/// Runs one query on the control connection; throws ServerError.
[[nodiscard]] Rows query(Session& session, const Statement& statement, const std::vector<Parameter>& parameters = {});

}  // namespace rowlock::race
