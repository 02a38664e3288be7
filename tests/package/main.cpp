// Uses a piece of each installed header; needs no server.
#include <iostream>

#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"
#include "rowlock/gapless_sequence.hpp"
#include "rowlock/schema.hpp"

int main() {
    const rowlock::AuditLog log(rowlock::Keyring::generate());
    const rowlock::GaplessSequence invoices("invoice");
    std::cout << rowlock::EntryId::generate().text() << "\n" << invoices.name() << "\n";
    if (rowlock::schema_sql().empty()) return 1;
    try {
        const rowlock::Database database("host=/nonexistent");
    } catch (const rowlock::ConnectionError& refused) {
        std::cout << refused.what() << "\n";
        return 0;
    }
    return 1;
}
