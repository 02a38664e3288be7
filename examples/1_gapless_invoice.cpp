// An invoice and its number in one transaction: both happen or neither does, and no number is given twice or lost.
//
//     1_gapless_invoice "postgresql://…"
//
// The naive form reads SELECT max(number) + 1 and inserts: two writers read the same maximum.
#include <iostream>

#include "rowlock/database.hpp"
#include "rowlock/gapless_sequence.hpp"
#include "rowlock/schema.hpp"

namespace {

constexpr rowlock::Statement make_table{"invoice.table",
                                        "CREATE TABLE IF NOT EXISTS invoice (tenant_id text, number bigint, total "
                                        "numeric, PRIMARY KEY (tenant_id, number))"};
constexpr rowlock::Statement insert_invoice{"invoice.insert", "INSERT INTO invoice VALUES ($1, $2, $3)"};

}  // namespace

int main(int argument_count, char** arguments) try {
    rowlock::Database database(argument_count > 1 ? arguments[1] : "");
    database.transact({}, [](rowlock::Transaction& transaction) {
        rowlock::install_schema(transaction);
        transaction.execute(make_table);
    });

    const rowlock::GaplessSequence invoices("invoice");
    const rowlock::TransactionPolicy for_acme{.tenant = rowlock::TenantId("acme")};
    const auto write_invoice = [&](rowlock::Transaction& transaction, const char* total) {
        // Locks acme's counter until COMMIT; other tenants don't wait. A rollback gives the number back.
        const std::int64_t number = invoices.take_next(transaction);
        transaction.execute(insert_invoice, {transaction.required_tenant(), number, total});
        return number;
    };

    for (const char* const total : {"129.90", "12.50", "7.00"}) {
        const std::int64_t number = database.transact(
            for_acme, [&](rowlock::Transaction& transaction) { return write_invoice(transaction, total); });
        std::cout << "invoice " << number << ": " << total << "\n";
    }
} catch (const rowlock::Error& fault) {
    std::cerr << fault.what() << "\n";
    return 2;
}
