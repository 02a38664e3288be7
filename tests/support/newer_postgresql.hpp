// A PostgreSQL of a newer major version than the one that the other tests run on; `scripts/setup tests` brings it.
#pragma once

#include <memory>
#include <string>

#include "support/process.hpp"
#include "support/scratch_folder.hpp"

namespace rowlock::test {

/// A cluster of the test's own, on a Unix socket alone, with the superuser "rowlock"; gone at the end.
class NewerPostgresql {
  public:
    [[nodiscard]] static bool available();

    /// Throws std::runtime_error, with what initdb or the server said, if it does not come up.
    NewerPostgresql();
    ~NewerPostgresql();
    NewerPostgresql(const NewerPostgresql&) = delete;
    NewerPostgresql& operator=(const NewerPostgresql&) = delete;

    /// A keyword string of libpq, as the superuser.
    [[nodiscard]] std::string connection(const std::string& database) const;

  private:
    const ScratchFolder folder_;
    std::unique_ptr<BackgroundProcess> server_;
};

}  // namespace rowlock::test
