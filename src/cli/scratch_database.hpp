// A database that a demo or a benchmark makes for itself and drops again.
#pragma once

#include <string>

#include "cli/context.hpp"
#include "rowlock/database.hpp"

namespace rowlock::cli {

/// A fresh database with the schema in it. Nothing else on the server is touched.
class ScratchDatabase {
  public:
    /// On the private server, or beside the database of --db, where the login must have CREATEDB. One of the same name,
    /// left behind by a run that was killed, is dropped first.
    ScratchDatabase(const Context& context, const std::string& name);
    ~ScratchDatabase();
    ScratchDatabase(const ScratchDatabase&) = delete;
    ScratchDatabase& operator=(const ScratchDatabase&) = delete;

    /// As the login, which owns the database.
    [[nodiscard]] DatabaseOptions as_owner(std::size_t connections_max = 2) const;
    /// As rowlock_app, under row-level security.
    [[nodiscard]] DatabaseOptions as_app(std::size_t connections_max) const;

  private:
    std::string server_;
    std::string name_;
};

}  // namespace rowlock::cli
