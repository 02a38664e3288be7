// Nor can a body take it by value.
#include "rowlock/database.hpp"

void run(rowlock::Database& database) {
    database.transact({}, [](rowlock::Transaction) {});  // expect: no matching function
}
