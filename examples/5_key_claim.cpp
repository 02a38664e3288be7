// Two players, two tables, one room: one of them wins, the other is told at once, and nobody waits.
//
//     5_key_claim "postgresql://…"
//
// The naive form: both read 5 pebbles, one takes 1 and writes 4, one takes 2 and writes 3, and both are told yes.
#include <iostream>

#include "rowlock/database.hpp"
#include "rowlock/key_claim.hpp"

namespace {

constexpr rowlock::Statement make_tables{"room.tables",
                                         "CREATE TABLE room (id int PRIMARY KEY, pebbles int,"
                                         " key uuid NOT NULL DEFAULT gen_random_uuid());"
                                         "CREATE TABLE move (room int, player text, pebbles int);"
                                         "INSERT INTO room VALUES (1, 5)"};
constexpr rowlock::Statement read_room{"room.read", "SELECT pebbles, key FROM room WHERE id = 1"};
// Both write nothing once the claim is somebody else's: rowlock_fence has no row then.
constexpr rowlock::Statement set_pebbles{
    "room.set", "UPDATE room SET pebbles = $1 WHERE id = 1 AND EXISTS (SELECT FROM rowlock_fence)"};
constexpr rowlock::Statement add_move{"move.add", "INSERT INTO move SELECT 1, $1, $2::int FROM rowlock_fence"};

}  // namespace

int main(int argument_count, char** arguments) try {
    rowlock::Database database(argument_count > 1 ? arguments[1] : "");
    const rowlock::KeyClaim rooms({.table = "room", .id = {"id"}, .key = "key", .used_keys = "used_room_key"});
    database.transact({}, [&](rowlock::Transaction& transaction) {
        transaction.execute_script(make_tables);
        transaction.execute_script({"room.used_keys", rooms.used_keys_sql()});
    });

    // Both players have read the room before either of them moves.
    const auto seen =
        database.transact({}, [](rowlock::Transaction& transaction) { return transaction.execute(read_room); });
    const std::int64_t pebbles = seen.only().integer(0);
    const std::string key(seen.only().text(1));

    const auto move = [&](rowlock::Transaction& transaction, const char* player, int taken) {
        const auto outcome = rooms.claim(transaction, {1}, {.key = key, .owner = player});
        const auto* const claimed = std::get_if<rowlock::Claimed>(&outcome);
        if (claimed == nullptr) return false;
        return std::holds_alternative<rowlock::Rows>(
                   rooms.write(transaction, *claimed, set_pebbles, {pebbles - taken})) &&
               std::holds_alternative<rowlock::Rows>(rooms.write(transaction, *claimed, add_move, {player, taken})) &&
               std::holds_alternative<rowlock::Completed>(rooms.complete(transaction, *claimed));
    };
    for (const auto& [player, taken] : {std::pair{"ann", 1}, std::pair{"ben", 2}}) {
        const bool moved =
            database.transact({}, [&](rowlock::Transaction& transaction) { return move(transaction, player, taken); });
        std::cout << player << (moved ? ": took " : ": lost, wanted ") << taken << "\n";
    }
} catch (const rowlock::Error& fault) {
    std::cerr << fault.what() << "\n";
    return 2;
}
