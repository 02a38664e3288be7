// Whether it was busy has to be looked at.
#include "rowlock/database.hpp"

void run(rowlock::Database& database) {
    database.try_transact({}, [](rowlock::Transaction&) {});  // expect: nodiscard
}
