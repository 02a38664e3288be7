// Staging and listing from other languages, as docs/other-languages.md shows it.
#include <map>
#include <sstream>

#include "cli/command_test.hpp"
#include "support/pgbouncer.hpp"

namespace rowlock::test {
namespace {

struct Client {
    const char* name;
    Arguments words;
};

void PrintTo(const Client& client, std::ostream* out) {
    *out << client.name;
}

/// What libpq takes from the environment, and node's pg too: PGHOST and the like.
std::vector<std::pair<std::string, std::string>> environment_of(const std::string& connection) {
    const std::vector<std::pair<std::string, std::string>> known{{"host", "PGHOST"},
                                                                 {"port", "PGPORT"},
                                                                 {"user", "PGUSER"},
                                                                 {"dbname", "PGDATABASE"},
                                                                 {"password", "PGPASSWORD"}};
    std::map<std::string, std::string> variables;  // the last of a keyword counts
    std::istringstream words(connection);
    for (std::string word; words >> word;) {
        const std::size_t at = word.find('=');
        for (const auto& [key, variable] : known) {
            if (word.substr(0, at) == key) variables[variable] = word.substr(at + 1);
        }
    }
    return {variables.begin(), variables.end()};
}

class OtherLanguages : public CommandOnDatabaseTest, public testing::WithParamInterface<Client> {
  protected:
    OtherLanguages() {
        database_.execute(
            "CREATE TABLE public.account (id int PRIMARY KEY, owner text); INSERT INTO public.account VALUES (1, "
            "'ann');"
            "GRANT SELECT, UPDATE ON public.account TO " +
            login_.role + "; GRANT rowlock_app TO " + login_.role);
    }
    [[nodiscard]] ProcessResult run_client(const std::string& connection) const {
        ProcessOptions options;
        options.arguments = GetParam().words;
        options.folder = ROWLOCK_CLIENTS;
        options.environment = environment_of(connection);
        return run_process(options);
    }
    /// Twice, with a sealer between: the second time the first entry is in the log.
    void expect_staged_and_listed(const std::string& connection) const {
        const ProcessResult first = run_client(connection);
        EXPECT_EQ(first.exit_code, 0) << first.errors;
        EXPECT_EQ(first.output, "staged\n");
        EXPECT_EQ(database_.value("SELECT owner FROM public.account"), "bob");
        EXPECT_EQ(on_database({"seal", "--once"}).exit_code, 0);
        EXPECT_EQ(run_client(connection).output, "staged\n1 ann account.owner account 1 bob\n");
        EXPECT_EQ(on_database({"seal", "--once"}).exit_code, 0);
        EXPECT_EQ(on_database({"verify", "--tenant", "acme"}).exit_code, 0);
        EXPECT_EQ(entries("acme"), "2");
    }

    const TestLogin login_ = database_.add_login("shop");
};

TEST_P(OtherLanguages, StageAndListInATransaction) {
    expect_staged_and_listed(database_.connection_as(login_));
}

TEST_P(OtherLanguages, DoSoThroughAPoolerToo) {
    const Pgbouncer pooler({.pool_size = 1, .logins = {login_}});
    expect_staged_and_listed(pooler.connection_as(database_.name(), login_));
}

INSTANTIATE_TEST_SUITE_P(Clients, OtherLanguages,
                         testing::Values(Client{"psql", {"psql", "-X", "-q", "-f", "audit.sql"}},
                                         Client{"python", {"/usr/bin/python3", "audit.py"}},
                                         Client{"node", {"node", "audit.mjs"}}),
                         [](const auto& client) { return std::string(client.param.name); });

}  // namespace
}  // namespace rowlock::test
