#include "postgres/connection_string.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rowlock/error.hpp"

namespace rowlock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(RequireReadable, takes_all_forms_that_libpq_takes) {
    for (const char* connection :
         {"", "accounts", "dbname=accounts", "host=/var/run user='a b' dbname=x", "host = a port = 5433",
          "postgresql://", "postgres://user:secret@host:5432/accounts?sslmode=require", "postgresql:///x?host=/tmp",
          "postgresql://a,b:5433/x?target_session_attrs=read-write", "service=accounts"}) {
        EXPECT_NO_THROW(require_readable(connection)) << connection;
    }
}

TEST(RequireReadable, says_what_is_wrong_on_one_line) {
    for (const char* connection : {"hots=localhost", "host=a b", "host='a", "postgresql://%zz/x",
                                   "postgresql://h/x?hots=1", "postgres://h/x?sslmode"}) {
        try {
            require_readable(connection);
            ADD_FAILURE() << connection;
        } catch (const InvalidInput& fault) {
            EXPECT_THAT(fault.what(), AllOf(HasSubstr("can't be read: "), Not(HasSubstr("\n")))) << connection;
            EXPECT_EQ(fault.recovery(), Recovery::give_up);
        }
    }
}

TEST(WithDatabase, changes_the_database_and_keeps_the_rest) {
    EXPECT_EQ(with_database("", "b"), "dbname='b'");
    EXPECT_EQ(with_database("a", "b"), "dbname='b'");
    EXPECT_EQ(with_database("host=h dbname=a", "b"), "host='h' dbname='b'");
    EXPECT_EQ(with_database("host=h", "b"), "host='h' dbname='b'");
    const std::string result = with_database("postgresql://u:p%27q@h:7/a?application_name=x", "b");
    EXPECT_THAT(result, AllOf(HasSubstr("user='u' "), HasSubstr(R"(password='p\'q' )"), HasSubstr("host='h' "),
                              HasSubstr("port='7' "), HasSubstr("application_name='x' ")));
    EXPECT_TRUE(result.ends_with("dbname='b'"));
}

TEST(WithDatabase, quotes_any_name) {
    for (const std::string name : {"plain", "with space", "it's", R"(back\slash)", "a=b", "'; x", ""}) {
        const std::string once = with_database("host=h", name);
        EXPECT_NO_THROW(require_readable(once)) << name;
        EXPECT_EQ(with_database(with_database(once, "other"), name), once) << name;
    }
}

TEST(WithDatabase, refuses_what_it_can_not_read) {
    EXPECT_THROW(static_cast<void>(with_database("hots=h", "b")), InvalidInput);
}

}  // namespace
}  // namespace rowlock
