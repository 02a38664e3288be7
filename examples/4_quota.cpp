// Seats with a cap, over all rooms of a tenant: never one too many, whoever takes them at once.
//
//     4_quota "postgresql://…"
//
// The naive form counts and then inserts (SELECT count(*) … if it is below the cap, INSERT): two writers both count 2.
#include <iostream>

#include "rowlock/database.hpp"
#include "rowlock/quota.hpp"
#include "rowlock/schema.hpp"

namespace {

constexpr rowlock::Statement make_table{
    "seat.table",
    "CREATE TABLE IF NOT EXISTS seat (tenant_id text, room int, guest text, PRIMARY KEY (tenant_id, guest))"};
constexpr rowlock::Statement insert_seat{"seat.insert", "INSERT INTO seat VALUES ($1, $2, $3)"};

}  // namespace

int main(int argument_count, char** arguments) try {
    rowlock::Database database(argument_count > 1 ? arguments[1] : "");
    const rowlock::Quota seats("seats");
    const rowlock::TransactionPolicy for_acme{.tenant = rowlock::TenantId("acme")};
    database.transact(for_acme, [&](rowlock::Transaction& transaction) {
        rowlock::install_schema(transaction);
        transaction.execute(make_table);
        seats.set_cap(transaction, 3);
    });

    const auto take_seat = [&](rowlock::Transaction& transaction, int room, const char* guest) {
        // Locks acme's quota until COMMIT; other tenants don't wait. A rollback gives the seat back.
        const auto outcome = seats.reserve(transaction);
        if (!std::holds_alternative<rowlock::Reserved>(outcome)) return false;
        transaction.execute(insert_seat, {transaction.required_tenant(), room, guest});
        return true;
    };
    int room = 0;
    for (const char* const guest : {"ann", "ben", "cid", "dee"}) {
        ++room;
        const bool seated = database.transact(
            for_acme, [&](rowlock::Transaction& transaction) { return take_seat(transaction, room, guest); });
        std::cout << guest << (seated ? ": seated\n" : ": full\n");
    }
} catch (const rowlock::Error& fault) {
    std::cerr << fault.what() << "\n";
    return 2;
}
