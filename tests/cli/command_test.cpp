#include "cli/command_test.hpp"

#include "json/json.hpp"

namespace rowlock::test {

ProcessOptions CommandTest::command(Arguments arguments, std::string input) const {
    arguments.insert(arguments.begin(), ROWLOCK_COMMAND);
    ProcessOptions options;
    options.arguments = std::move(arguments);
    options.input = std::move(input);
    options.environment = {{"XDG_STATE_HOME", scratch_.path() / "state"},
                           {"XDG_CONFIG_HOME", scratch_.path() / "config"},
                           {"ROWLOCK_DB", ""},
                           {"ROWLOCK_KEYRING", ""},
                           {"ROWLOCK_KEYRING_COMMAND", ""},
                           {"PGPASSWORD", ""},
                           {"PGPASSFILE", scratch_.path() / "no-passwords"}};
    options.folder = scratch_.path();
    return options;
}

ProcessResult CommandTest::run(Arguments arguments, std::string input) const {
    return run_process(command(std::move(arguments), std::move(input)), limit);
}

ProcessResult CommandTest::run_in_shell(const std::string& script, std::string input) const {
    ProcessOptions options = command({}, std::move(input));
    options.arguments = {"bash", "-c", script};
    options.environment.emplace_back("rowlock", ROWLOCK_COMMAND);
    return run_process(options, limit);
}

std::filesystem::path CommandTest::keyring() const {
    return scratch_.path() / "config" / "rowlock" / "keyring.json";
}

CommandOnDatabaseTest::CommandOnDatabaseTest() {
    const ProcessResult installed = on_database({"schema", "install"});
    EXPECT_EQ(installed.exit_code, 0) << installed.errors;
    const ProcessResult made = run({"keys", "new"});
    EXPECT_EQ(made.exit_code, 0) << made.errors;
}

ProcessResult CommandOnDatabaseTest::on(const std::string& connection, Arguments arguments, std::string input) const {
    arguments.insert(arguments.begin(), {"--db", connection, "--keyring", keyring().string()});
    return run(std::move(arguments), std::move(input));
}

ProcessResult CommandOnDatabaseTest::on_database(Arguments arguments, std::string input) const {
    return on(database_.connection(), std::move(arguments), std::move(input));
}

std::string CommandOnDatabaseTest::entries(std::string_view tenant) const {
    std::string query = "SELECT count(*) FROM rowlock.audit_log";
    if (!tenant.empty()) query += " WHERE tenant_id = '" + std::string(tenant) + "'";
    return database_.value(query);
}

void expect_one_line(const ProcessResult& result, const std::vector<std::string>& parts) {
    EXPECT_EQ(lines_of(result.errors).size(), 1) << result.errors;
    EXPECT_THAT(result.errors, testing::StartsWith("rowlock: "));
    for (const std::string& part : parts) EXPECT_THAT(result.errors, testing::HasSubstr(part));
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

std::string member(std::string_view json, std::string_view name) {
    const auto parsed = parse_object(json);
    if (const auto* const error = std::get_if<JsonError>(&parsed)) {
        ADD_FAILURE() << error->reason << " at " << error->offset << " of " << json;
        return {};
    }
    for (const JsonMember& each : std::get<std::vector<JsonMember>>(parsed)) {
        if (each.name == name) return each.kind == JsonKind::string ? each.text : std::string(each.raw);
    }
    ADD_FAILURE() << "no " << name << " in " << json;
    return {};
}

}  // namespace rowlock::test
