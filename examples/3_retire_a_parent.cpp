// Retiring a document retires its claims, and nobody can confirm one under it meanwhile.
//
//     3_retire_a_parent "postgresql://…"
//
// The naive form: SELECT status FROM document, and if it is open, UPDATE claim SET status = 'confirmed'. A retirement
// that commits between the two leaves a confirmed claim under a rejected document. FOR UPDATE in the retirement does
// not help: a row lock holds back nobody who takes none.
#include <iostream>

#include "rowlock/lifecycle.hpp"

namespace {

constexpr rowlock::Statement make_tables{
    "document.tables",
    "DROP TABLE IF EXISTS claim, document;"
    "CREATE TABLE document (id int PRIMARY KEY, status text NOT NULL DEFAULT 'open');"
    "CREATE TABLE claim (id int PRIMARY KEY, document_id int NOT NULL REFERENCES document, status text NOT NULL);"
    "CREATE INDEX ON claim (document_id);"
    "INSERT INTO document VALUES (1); INSERT INTO claim VALUES (1, 1, 'candidate'), (2, 1, 'candidate')"};

}  // namespace

int main(int argument_count, char** arguments) try {
    rowlock::Database database(argument_count > 1 ? arguments[1] : "");
    database.transact({}, [](rowlock::Transaction& transaction) { transaction.execute_script(make_tables); });
    const rowlock::Lifecycle documents(database, {.parent = {.table = "document"},
                                                  .child = {.table = "claim"},
                                                  .retired = "rejected",
                                                  .live_children = {"candidate", "confirmed"}});

    const auto confirm = [&](int claim) {
        return database.transact({}, [&](rowlock::Transaction& transaction) {
            const auto outcome = documents.hold_open(transaction, 1);  // FOR SHARE, until COMMIT
            const auto* const open = std::get_if<rowlock::OpenParent>(&outcome);
            if (open == nullptr) return "refused: the document is not open";
            const auto confirmed = documents.confirm(*open, claim);  // does not compile without the guard
            return std::holds_alternative<rowlock::Confirmed>(confirmed) ? "confirmed" : "the claim is elsewhere";
        });
    };
    std::cout << "claim 1: " << confirm(1) << "\n";

    const auto outcome =
        database.transact({}, [&](rowlock::Transaction& transaction) { return documents.retire(transaction, 1); });
    for (const auto& [earlier, count] : std::get<rowlock::Cascade>(outcome).earlier_counts) {
        std::cout << "retired with it: " << count << " " << earlier << "\n";
    }
    std::cout << "claim 2: " << confirm(2) << "\n";
} catch (const rowlock::Busy& busy) {
    std::cerr << "busy, try again: " << busy.what() << "\n";
    return 1;
} catch (const rowlock::Error& fault) {
    std::cerr << fault.what() << "\n";
    return 2;
}
