// A check with everything that it takes: a database of the scenario's own, made and dropped again.
#pragma once

#include <memory>
#include <string>

#include "race/checker.hpp"
#include "race/conductor.hpp"
#include "race/scenario.hpp"

namespace rowlock::race {

/// Where scenarios are played.
struct PlayGround {
    std::string server{};  ///< A connection string, keywords and values, to any database of the server.
    /// The server is the checker's own, so its backends may be stopped.
    bool may_stop_backends = true;
    /// A database that is there already, and empty; else one is made and dropped.
    std::string database{};
};

/// The database for one scenario, as long as this lives.
class ScenarioDatabase {
  public:
    /// Throws SetupError where the database that is to be used is not empty.
    explicit ScenarioDatabase(const PlayGround& ground);
    ~ScenarioDatabase();
    ScenarioDatabase(const ScenarioDatabase&) = delete;
    ScenarioDatabase& operator=(const ScenarioDatabase&) = delete;

    [[nodiscard]] ConductorOptions conductor_options(const std::string& isolation) const;

  private:
    PlayGround ground_;
    std::string connection_;
    std::unique_ptr<OwnDatabase> own_;
};

/// Checks at one isolation level; empty: as the server has it. Throws ScriptRefused, SetupError, ConnectionError where
/// the server can't be reached, and StageFault where it goes away.
[[nodiscard]] CheckResult check_on_server(const Scenario& scenario, const PlayGround& ground,
                                          const std::string& isolation, const CheckOptions& options);

/// Drops databases that an earlier run made on this server and could not drop, since it was killed.
void drop_leftover_databases(const std::string& server);

}  // namespace rowlock::race
