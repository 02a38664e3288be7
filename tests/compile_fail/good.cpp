// What must compile, so that the others fail for their own reason.
#include "rowlock/database.hpp"

int run(rowlock::Database& database) {
    return database.transact({}, [](rowlock::Transaction& transaction) {
        const auto busy_is_looked_at = transaction.backend_pid();
        return busy_is_looked_at;
    });
}

bool try_run(rowlock::Database& database) {
    const auto outcome = database.try_transact({}, [](rowlock::Transaction&) {});
    return outcome.index() == 0;
}
