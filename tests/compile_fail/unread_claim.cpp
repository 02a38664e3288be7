// Whether the claim was won has to be looked at.
#include "rowlock/key_claim.hpp"

void claim(const rowlock::KeyClaim& rooms, rowlock::Transaction& transaction) {
    rooms.claim(transaction, {1});  // expect: nodiscard
}
