// Whether it was reserved has to be looked at: the row count of a conditional UPDATE that nobody reads.
#include "rowlock/quota.hpp"

void reserve(const rowlock::Quota& seats, rowlock::Transaction& transaction) {
    seats.reserve(transaction);  // expect: nodiscard
}
