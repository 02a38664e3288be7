#include "race/row_access.hpp"

#include <gtest/gtest.h>

namespace rowlock::race::test {
namespace {

Catalog catalog_of(const std::string& type) {
    Catalog catalog;
    catalog.add_relation({.id = 7, .name = "t", .row_key = RowKey{type, 2, "id"}});
    catalog.add_relation({.id = 8, .name = "u"});
    return catalog;
}

/// The row's resource; 0 where the text does not say which.
ResourceId row_of(std::string_view statement, const std::string& type = "int4") {
    const Catalog catalog = catalog_of(type);
    const auto access = row_access(statement, reach_of(statement, catalog), catalog);
    return access ? access->row : 0;
}

TEST(RowAccess, IsReadFromEveryStatementThatNamesOneKey) {
    const ResourceId seven = row_of("SELECT n FROM t WHERE id = 7");
    EXPECT_NE(seven, 0U);
    for (const std::string_view same : {
             "SELECT *, abs(n) FROM t WHERE id = 7 AND (n > 1 OR n < 0) FOR UPDATE",
             "select n from T where ID = '7' order by n limit 1;",
             "UPDATE t SET n = n + 1 WHERE id = 07 AND n = 3 RETURNING n",
             "DELETE FROM t WHERE id = 7 /* id = 8 */",
             "INSERT INTO t VALUES (1, 7)",
             "INSERT INTO t (id, n) VALUES (7, abs(1)) ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
             "INSERT INTO t AS x (n, id) VALUES ((1), 7) ON CONFLICT (id) DO UPDATE SET n = x.n + 1 RETURNING n",
         }) {
        // "t.n" names the table a second time, which is not looked into.
        const bool names_it_twice = same.find("t.n") != std::string_view::npos;
        EXPECT_EQ(row_of(same), names_it_twice ? 0U : seven) << same;
    }
    EXPECT_NE(row_of("SELECT n FROM t WHERE id = -7"), seven);
    EXPECT_NE(row_of("SELECT n FROM t WHERE id = 8"), seven);
}

TEST(RowAccess, IsNotTakenForGrantedWhereAnotherRowMayBeMeant) {
    for (const std::string_view any : {
             "SELECT n FROM t",
             "SELECT n FROM t WHERE n = 7",
             "SELECT n FROM t WHERE id = 7 OR n = 1",
             "SELECT n FROM t WHERE id = 7 AND n = 1 OR n = 2",
             "SELECT n FROM t WHERE id = 7 + 1",
             "SELECT n FROM t WHERE id = 7.5",
             "SELECT n FROM t WHERE id = 7e1",
             "SELECT n FROM t WHERE id = 7::int",
             "SELECT n FROM t WHERE id = ANY('{7}')",
             "SELECT n FROM t WHERE id >= 7",
             "SELECT n FROM t WHERE id = NULL",
             "SELECT n FROM t WHERE NOT id = 7",
             "SELECT n FROM t WHERE id = '7 '",
             "SELECT n FROM t WHERE id = 99999999999999999999",
             "SELECT n FROM t, u WHERE id = 7",
             "SELECT n FROM t WHERE id = 7 AND n IN (SELECT n FROM t)",
             "SELECT n FROM t WHERE id = 7 UNION SELECT 1",
             "SELECT n FROM t x WHERE id = 7",
             "SELECT 1 WHERE id = 7",
             "WITH x AS (SELECT n FROM t WHERE id = 7) SELECT * FROM x",
             "UPDATE t SET n = 1",
             "UPDATE t SET id = 8 WHERE id = 7",
             "UPDATE t SET \"id\" = 8 WHERE id = 7",
             "UPDATE t SET n = x FROM generate_series(1, 2) x WHERE id = 7",
             "DELETE FROM t USING u WHERE id = 7",
             "INSERT INTO t VALUES (1, 7), (1, 8)",
             "INSERT INTO t VALUES (7)",
             "INSERT INTO t VALUES (1, 7 + 1)",
             "INSERT INTO t (n) VALUES (7)",
             "INSERT INTO t SELECT 1, 7",
             "INSERT INTO t DEFAULT VALUES",
             "INSERT INTO t VALUES (1, 7) ON CONFLICT (id) DO UPDATE SET id = 8",
             "TRUNCATE t",
             "LOCK TABLE t",
         }) {
        EXPECT_EQ(row_of(any), 0U) << any;
    }
}

TEST(RowAccess, ComparesKeysByTheirOnlySpelling) {
    EXPECT_NE(row_of("SELECT 1 FROM t WHERE id = 'x'", "text"), 0U);
    EXPECT_NE(row_of("SELECT 1 FROM t WHERE id = '7'", "text"), row_of("SELECT 1 FROM t WHERE id = '07'", "text"));
    EXPECT_EQ(row_of("SELECT 1 FROM t WHERE id = 7", "text"), 0U);
    EXPECT_EQ(row_of("SELECT 1 FROM t WHERE id = E'x'", "text"), 0U);
    EXPECT_EQ(row_of("SELECT 1 FROM t WHERE id = 'a' 'b'", "text"), 0U);
    EXPECT_EQ(row_of("SELECT 1 FROM t WHERE id = $$x$$", "text"), 0U);
    EXPECT_EQ(row_of("SELECT 1 FROM t WHERE id = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "uuid"),
              row_of("SELECT 1 FROM t WHERE id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "uuid"));
    EXPECT_EQ(row_of("SELECT 1 FROM t WHERE id = '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'", "uuid"), 0U);
}

}  // namespace
}  // namespace rowlock::race::test
