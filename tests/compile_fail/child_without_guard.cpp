// A child can't be added on the transaction alone: its parent has to be held open.
#include "rowlock/lifecycle.hpp"

void add(const rowlock::Lifecycle& documents, rowlock::Transaction& transaction) {
    documents.add_child(transaction, {{"status", "candidate"}});  // expect: cannot convert|no known conversion
}
