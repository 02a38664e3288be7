// A connection pooler between a test and the shared server, as many of our users have one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/scratch_folder.hpp"
#include "support/test_database.hpp"

namespace rowlock::test {

struct PgbouncerOptions {
    /// Server connections per database and role: 1 makes every transaction meet what the last one left behind.
    int pool_size = 1;
    std::string pool_mode = "transaction";
    /// Those who may come in beside the server's own role.
    std::vector<TestLogin> logins{};
};

/// A running pgbouncer on a Unix socket of its own; stopped at the end.
class Pgbouncer {
  public:
    /// Throws std::runtime_error with its log if it does not come up.
    explicit Pgbouncer(const PgbouncerOptions& options = {});

    /// Whether it is installed here.
    [[nodiscard]] static bool available();

    /// To a database of the shared server, through the pool.
    [[nodiscard]] std::string connection(const std::string& database) const;
    [[nodiscard]] std::string connection_as(const std::string& database, const TestLogin& login) const;

  private:
    ScratchFolder folder_;
    std::unique_ptr<BackgroundProcess> process_;
};

}  // namespace rowlock::test
