// The examples do what the README says of them.
#include <gtest/gtest.h>

#include "rowlock/keyring.hpp"
#include "support/process.hpp"
#include "support/scratch_folder.hpp"
#include "support/test_database.hpp"

namespace rowlock::test {
namespace {

std::string output_of(const std::vector<std::string>& arguments) {
    ProcessOptions options;
    options.arguments = arguments;
    const ProcessResult result = run_process(options);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return result.output;
}

TEST(Examples, TheGaplessInvoiceGoesOnWhereItStopped) {
    const TestDatabase database;
    const std::string program = std::string(ROWLOCK_EXAMPLES) + "/1_gapless_invoice";
    EXPECT_EQ(output_of({program, database.connection()}), "invoice 1: 129.90\ninvoice 2: 12.50\ninvoice 3: 7.00\n");
    EXPECT_EQ(output_of({program, database.connection()}), "invoice 4: 129.90\ninvoice 5: 12.50\ninvoice 6: 7.00\n");
    EXPECT_EQ(database.value("SELECT count(*) || ' ' || max(number) FROM invoice"), "6 6");
}

TEST(Examples, TheAuditEntryIsWrittenWithTheChange) {
    const TestDatabase database;
    const ScratchFolder folder;
    const std::string keyring = (folder.path() / "keyring.json").string();
    Keyring::generate().create_file(keyring);
    const std::string program = std::string(ROWLOCK_EXAMPLES) + "/2_audit_in_your_transaction";
    EXPECT_EQ(output_of({program, database.connection(), keyring}), "entry 1\n1 entries, intact\n");
    EXPECT_EQ(database.value("SELECT owner FROM account"), "bob");
}

TEST(Examples, ARetiredParentTakesItsChildrenAlong) {
    const TestDatabase database;
    const std::string program = std::string(ROWLOCK_EXAMPLES) + "/3_retire_a_parent";
    EXPECT_EQ(output_of({program, database.connection()}),
              "claim 1: confirmed\nretired with it: 1 candidate\nretired with it: 1 confirmed\n"
              "claim 2: refused: the document is not open\n");
}

TEST(Examples, TheQuotaIsFullForTheFourthGuest) {
    const TestDatabase database;
    const std::string program = std::string(ROWLOCK_EXAMPLES) + "/4_quota";
    EXPECT_EQ(output_of({program, database.connection()}), "ann: seated\nben: seated\ncid: seated\ndee: full\n");
    EXPECT_EQ(database.value("SELECT count(*) FROM seat"), "3");
}

TEST(Examples, TheSecondPlayerLosesTheRoom) {
    const TestDatabase database;
    const std::string program = std::string(ROWLOCK_EXAMPLES) + "/5_key_claim";
    EXPECT_EQ(output_of({program, database.connection()}), "ann: took 1\nben: lost, wanted 2\n");
    EXPECT_EQ(database.value("SELECT pebbles || ' ' || (SELECT sum(pebbles) FROM move) FROM room"), "4 1");
}

}  // namespace
}  // namespace rowlock::test
