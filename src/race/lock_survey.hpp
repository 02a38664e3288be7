// Which locks the sessions hold at a moment, for people to read. The explorer works with footprints; this looks at the
// server itself, rows with their keys included.
#pragma once

#include <string>
#include <vector>

#include "race/execution.hpp"
#include "race/server_watch.hpp"

namespace rowlock::race {

class LockSurvey {
  public:
    explicit LockSurvey(ServerWatch& watch) : watch_(&watch) {}

    /// The locks of these backends; the place in `pids` is the session. Takes ACCESS SHARE on the tables that are
    /// locked, for the moment; leaves out the rows of those where that would wait. Where the extension pgrowlocks can't
    /// be had, no row is shown. In an order of its own that does not change from run to run.
    /// Source: https://www.postgresql.org/docs/15/pgrowlocks.html
    [[nodiscard]] std::vector<LockLine> look(const std::vector<int>& pids);

  private:
    struct Table {
        std::string name;  ///< Quoted and with its schema.
        std::string shown;
    };

    void prepare();
    [[nodiscard]] std::vector<Table> locked_tables(const std::vector<int>& pids);
    void add_rows(const Table& table, const std::vector<int>& pids, std::vector<LockLine>& lines);
    [[nodiscard]] std::string key_of(const Table& table);

    ServerWatch* watch_;
    bool prepared_ = false;
    bool shows_rows_ = false;
};

}  // namespace rowlock::race
