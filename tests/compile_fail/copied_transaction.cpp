// A transaction can't be copied out of its body.
#include "rowlock/transaction.hpp"

rowlock::Transaction kept(rowlock::Transaction& transaction) {
    return transaction;  // expect: deleted function
}
