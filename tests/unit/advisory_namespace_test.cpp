// No two features share a namespace of advisory locks, and none takes a lock outside of the registry.
#include "postgres/advisory_namespace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "schema/migrations.hpp"

namespace rowlock {
namespace {

TEST(AdvisoryNamespaces, AreDistinctAndSayWhoTheyAre) {
    std::set<int> ids;
    for (const AdvisoryNamespace& space : advisory_namespaces) {
        EXPECT_TRUE(ids.insert(space.id).second) << space.name;
        EXPECT_EQ(space.id >> 16, 0x726c) << space.name << " does not begin with \"rl\"";
        EXPECT_FALSE(space.name.empty());
    }
}

TEST(AdvisoryNamespaces, HoldTheOneThatTheInstallerWritesOut) {
    EXPECT_THAT(std::string(lock_installers_sql),
                testing::HasSubstr("(" + std::to_string(schema_installer_namespace.id) + ", "));
}

/// Every text of sources and migrations that locks: with two parts, for the transaction alone, in a known namespace.
TEST(AdvisoryNamespaces, AreInEveryLockOfTheSources) {
    const std::filesystem::path root = std::filesystem::path(ROWLOCK_SOURCES);
    const std::regex call("pg_(try_)?advisory_(xact_)?(lock|unlock)[a-z_]*\\(([^,()]*)(,?)");
    std::size_t calls = 0;
    for (const char* const folder : {"src", "sql"}) {
        for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
            // The checker speaks of the locks of others.
            if (!entry.is_regular_file() || entry.path().parent_path().filename() == "race") continue;
            std::stringstream text;
            text << std::ifstream(entry.path()).rdbuf();
            const std::string content = text.str();
            for (std::sregex_iterator at(content.begin(), content.end(), call), end; at != end; ++at) {
                ++calls;
                EXPECT_TRUE((*at)[2].matched) << entry.path() << ": a session-level lock: " << at->str();
                EXPECT_EQ((*at)[5].str(), ",") << entry.path() << ": a key of one part: " << at->str();
                const std::string space = (*at)[4].str();
                const bool known = space.starts_with('$') ||
                                   std::ranges::any_of(advisory_namespaces, [&](const AdvisoryNamespace& registered) {
                                       return space == std::to_string(registered.id);
                                   });
                EXPECT_TRUE(known) << entry.path() << ": not in the registry: " << at->str();
            }
        }
    }
    EXPECT_GE(calls, 6U);
}

}  // namespace
}  // namespace rowlock
