// The tour, on a git repository that the test makes itself.
#include <fmt/format.h>

#include "cli/command_test.hpp"
#include "server/private_server.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

class Demo : public CommandTest {
  protected:
    Demo() {
        std::filesystem::create_directory(scratch_.path() / "state");
        server().ensure_running();
        make_repository();
    }
    ~Demo() override { server().destroy(); }

    [[nodiscard]] PrivateServer server() const {
        return PrivateServer({.place = {scratch_.path() / "state" / "rowlock"}, .settings = {}, .throwaway = true});
    }
    /// Twelve commits by two authors, of files whose names have a blank, a quote and letters beyond ASCII.
    void make_repository() const {
        const ProcessResult made = run_in_shell(
            "set -e; git init -q work; cd work; for i in $(seq 12); do author='Ann Example'; "
            "[ $((i % 3)) = 0 ] && author='王小明 O\"Neill'; echo $i > \"a file $i\"; echo $i > \"été\\\"$i\"; "
            "git add -A; git -c user.name=x -c user.email=x@example.com commit -qm \"Change $i\" "
            "--author=\"$author <a@example.com>\"; done");
        ASSERT_EQ(made.exit_code, 0) << made.errors;
    }
};

TEST_F(Demo, RunsOnARealRepositoryAndNamesAllFiveTamperings) {
    const ProcessResult result = run({"demo", "--repository", "work"});
    EXPECT_EQ(result.exit_code, 0) << result.output << result.errors;
    EXPECT_EQ(result.errors, "");
    for (const char* part :
         {"12 commits", "0 duplicate numbers, 0 gaps", "2 tenants, 12 entries", "INTACT", "entry 4 changed",
          "entry 4 missing", "displaced", "entry 8 tail_missing", "rowlock verify --all",
          "\"no number twice\" does not hold", "✓ numbers-counter-row-safe.race: holds", "races.html"}) {
        EXPECT_THAT(result.output, HasSubstr(part));
    }
    EXPECT_THAT(result.output, testing::Not(HasSubstr("not found")));
    EXPECT_EQ(run_sql(server().connection("rowlock"), "SELECT count(*) FROM pg_database WHERE datname ~ 'demo'"), "0")
        << "it leaves nothing behind";
}

TEST_F(Demo, TellsAllOfItInJson) {
    ProcessOptions options = command({"demo", "--json"});
    options.folder = scratch_.path() / "work";
    const ProcessResult result = run_process(options, limit);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    ASSERT_EQ(lines_of(result.output).size(), 1);
    EXPECT_EQ(member(result.output, "commits"), "12");
    EXPECT_EQ(member(result.output, "duplicates"), "0");
    EXPECT_EQ(member(result.output, "intact"), "true");
    for (const char* kind : {"changed", "missing", "displaced", "tail_missing"}) {
        EXPECT_THAT(member(result.output, "tamperings"), HasSubstr(fmt::format("\"kind\":\"{}\"", kind)));
    }
}

TEST_F(Demo, OutsideOfARepositoryIsOneClearLine) {
    for (const char* folder : {"/", "/nowhere"}) {
        const ProcessResult result = run({"demo", "--repository", folder});
        EXPECT_EQ(result.exit_code, 2);
        EXPECT_EQ(result.output, "");
        expect_one_line(result, {std::string(folder) + " is not a git repository with commits", "--repository DIR"});
    }
}

TEST_F(Demo, OfAHistoryThatIsTooShortIsOneClearLineBeforeAnythingIsMade) {
    ASSERT_EQ(run_in_shell("git init -q short && cd short && git -c user.name=x -c user.email=x@example.com commit -q "
                           "--allow-empty -m one")
                  .exit_code,
              0);
    const ProcessResult result = run({"demo", "--repository", "short"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.output, "");
    expect_one_line(result, {"at least 5 commits"});
}

}  // namespace
}  // namespace rowlock::test
