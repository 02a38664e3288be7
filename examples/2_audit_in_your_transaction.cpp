// A change and its audit entry in one transaction, numbered and chained per tenant.
//
//     2_audit_in_your_transaction "postgresql://…" keyring.json
//
// The naive form writes the entry on a second connection: it stays when the change is rolled back, and it is lost when
// the process dies between the two.
#include <iostream>

#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"
#include "rowlock/schema.hpp"

namespace {

constexpr rowlock::Statement make_table{"account.table",
                                        "CREATE TABLE IF NOT EXISTS account (id int PRIMARY KEY, owner text);"
                                        "INSERT INTO account VALUES (1, 'ann') ON CONFLICT DO NOTHING;"
                                        "GRANT SELECT, UPDATE ON account TO rowlock_app"};
constexpr rowlock::Statement change_owner{"account.change_owner", "UPDATE account SET owner = $2 WHERE id = $1"};

}  // namespace

int main(int argument_count, char** arguments) try {
    if (argument_count != 3) {
        std::cerr << "give a connection string and a keyring (rowlock keys new --keyring FILE makes one)\n";
        return 2;
    }
    rowlock::Database(arguments[1]).transact({}, [](rowlock::Transaction& transaction) {
        rowlock::install_schema(transaction);
        transaction.execute_script(make_table);
    });

    // As rowlock_app row-level security holds, whoever logs in.
    rowlock::Database database({.connection = arguments[1], .role = "rowlock_app"});
    const rowlock::AuditLog log(rowlock::Keyring::load(arguments[2]));
    const rowlock::AuditEntry entry{
        .actor = "ann", .action = "account.give", .object = "account 1", .data = R"({"to":"bob"})"};
    const auto outcome =
        database.transact({.tenant = rowlock::TenantId("acme")}, [&](rowlock::Transaction& transaction) {
            transaction.execute(change_owner, {1, "bob"});
            return log.append(transaction, entry);  // last: it holds acme's lock until COMMIT
        });
    if (const auto* const appended = std::get_if<rowlock::Appended>(&outcome)) {
        std::cout << "entry " << appended->seq << "\n";
    }

    const auto verification = database.transact(
        {.tenant = rowlock::TenantId("acme")},
        [&](rowlock::Transaction& transaction) { return log.verify(transaction, rowlock::TenantId("acme")); });
    std::cout << verification.entries << " entries, "
              << (verification.verdict == rowlock::Verdict::intact ? "intact" : "not intact") << "\n";
} catch (const rowlock::Error& fault) {
    std::cerr << fault.what() << "\n";
    return 2;
}
