// Only the lifecycle that has locked the parent's row can say that it is open.
#include "rowlock/lifecycle.hpp"

rowlock::OpenParent make_up(rowlock::Transaction& transaction) {
    return rowlock::OpenParent(transaction, nullptr, 1, {});  // expect: is private within this context
}
