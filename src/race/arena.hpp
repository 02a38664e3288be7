// The database in which executions run: made once, and put back between them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "race/catalog.hpp"
#include "race/invented_values.hpp"
#include "race/scenario.hpp"
#include "race/server_watch.hpp"

namespace rowlock::race {

/// A database of the checker's own, dropped at the end with whoever is still in it.
class OwnDatabase {
  public:
    /// Marks a database that may be dropped by a later run, should this one be killed.
    static constexpr std::string_view comment = "made by rowlock race for the time of one run";

    /// `server` is a connection string to any database of the server. Throws ServerError where there is a database of
    /// this name.
    OwnDatabase(std::string server, std::string name);
    ~OwnDatabase();
    OwnDatabase(const OwnDatabase&) = delete;
    OwnDatabase& operator=(const OwnDatabase&) = delete;

    [[nodiscard]] std::string connection() const;

  private:
    std::string server_;
    std::string name_;
};

/// How the database is put back.
enum class ResetKind {
    scripts,  ///< Teardown and setup as written.
    rows,     ///< The tables that a session can reach are emptied and filled again, in the same order.
};

class Arena {
  public:
    /// Runs the setup. Throws ServerError with its fault.
    Arena(const Scenario& scenario, ServerWatch& watch);

    void reset();
    [[nodiscard]] const Catalog& catalog() const noexcept { return catalog_; }
    /// A setup that ran again made new tables, with new oids: true once after it did.
    [[nodiscard]] bool take_catalog_change() { return std::exchange(catalog_changed_, false); }
    [[nodiscard]] ResetKind kind() const noexcept { return kind_; }
    /// For the serial oracle; empty where there is none.
    [[nodiscard]] const TableShapes& shapes() const noexcept { return shapes_; }
    /// From the next reset on, every sequence begins so much later than the setup left it.
    void shift_sequences(std::int64_t shift) { sequence_shift_ = shift; }
    /// Adds the end state's questions to the control connection's pipeline: `state_of` takes their answers, which are
    /// the last ones of the flush.
    void queue_state();
    /// The rows of every table in a canonical order. Notes how full the tables are.
    [[nodiscard]] std::string state_of(std::span<const Rows> answers);

  private:
    struct Table {
        std::string name;     ///< Quoted and with its schema.
        std::string columns;  ///< Those that can be written, quoted.
    };

    void run_setups();
    void read_tables();
    void read_shapes();
    std::string text_of_sequences(std::int64_t shift);
    void keep_rows();
    void reset_rows(bool renew);
    void note_fill(const Row& row);
    void reset_by_scripts();

    const Scenario* scenario_;
    ServerWatch* watch_;
    bool prepares_transactions_;
    Catalog catalog_;
    TableShapes shapes_;
    std::int64_t sequence_shift_ = 0;
    ResetKind kind_ = ResetKind::scripts;
    bool catalog_changed_ = false;
    std::vector<Table> tables_;
    std::vector<std::string> partitioned_;
    std::string empty_text_;
    std::string refill_text_;
    std::string renew_text_;
    std::string state_text_;
    std::string fill_text_;
    std::int64_t row_bytes_max_ = 0;  ///< Of the rows at the ends of executions.
    bool renewal_is_due_ = true;
};

}  // namespace rowlock::race
