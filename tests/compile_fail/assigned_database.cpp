// A database has one owner.
#include "rowlock/database.hpp"

rowlock::Database second(const rowlock::Database& first) {
    return first;  // expect: deleted function
}
