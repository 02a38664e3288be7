// A guard stands for a lock, of which there is one.
#include "rowlock/lifecycle.hpp"

rowlock::OpenParent copy(const rowlock::OpenParent& open) {
    return open;  // expect: deleted function
}
