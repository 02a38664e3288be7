// What must compile, so that the others fail for their own reason.
#include "rowlock/database.hpp"
#include "rowlock/lifecycle.hpp"

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

bool add(const rowlock::Lifecycle& documents, rowlock::Database& database) {
    return database.transact({}, [&](rowlock::Transaction& transaction) {
        const auto outcome = documents.hold_open(transaction, {7, "2026"});
        const auto* const open = std::get_if<rowlock::OpenParent>(&outcome);
        if (open != nullptr) documents.add_child(*open, {{"status", "candidate"}});
        return open != nullptr;
    });
}
