// A guard can't leave the body: its lock ends with the transaction.
#include "rowlock/lifecycle.hpp"

void keep(const rowlock::Lifecycle& documents, rowlock::Database& database) {
    static_cast<void>(database.transact({}, [&](rowlock::Transaction& transaction) {  // expect: it can't leave the body
        return documents.hold_open(transaction, 1);
    }));
}
