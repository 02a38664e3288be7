// A scenario as values: what the file says, with nothing of a server in it.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rowlock::race {

struct SourcePosition {
    int line = 1;
    int column = 1;
};

/// Something in the file can't be read. The message names the file, the line and the column, and shows the line.
class ScenarioError : public std::runtime_error {
  public:
    ScenarioError(const std::string& message, SourcePosition where) : std::runtime_error(message), where_(where) {}
    [[nodiscard]] SourcePosition where() const noexcept { return where_; }

  private:
    SourcePosition where_;
};

/// One thing that a step does. A step without psql's commands is a single `send` of its whole text, as isolationtester
/// sends it; several statements in one `send` are one implicit transaction.
/// Source: https://www.postgresql.org/docs/15/protocol-flow.html#PROTOCOL-FLOW-MULTI-STATEMENT
struct Instruction {
    enum class Kind {
        send,         ///< `text` goes to the server.
        keep_row,     ///< `\gset`: the row of the `send` before becomes variables, each name prefixed by `text`.
        jump_unless,  ///< `\if`: goes on at `target` unless the expression in `text` is true.
        jump,         ///< The end of a branch with an `\else`: goes on at `target`.
        disconnect,   ///< `\disconnect`: the client dies here.
    };
    Kind kind;
    std::string text{};
    std::size_t target = 0;
    SourcePosition where{};
};

struct Step {
    std::string name;
    std::string sql;  ///< As written, for reports.
    std::vector<Instruction> program;
    SourcePosition where{};
};

/// What an application does when one of its steps fails.
enum class OnError {
    ignore,  ///< Goes on with the next step, as isolationtester does.
    stop,    ///< Rolls back and gives up.
    retry,   ///< Rolls back and starts again from its first step, at most `retries` times, then gives up.
};

struct ErrorPolicy {
    OnError action = OnError::ignore;
    int retries = 0;
};

struct SessionScript {
    std::string name;
    std::string setup{};
    std::string teardown{};
    std::size_t setup_offset = 0;  ///< Where the setup's SQL starts in the file.
    std::size_t teardown_offset = 0;
    std::string role{};
    std::vector<Step> steps{};
    ErrorPolicy on_error{};
    std::size_t group = 0;  ///< Sessions of one group are copies of one definition (`session writer * 3`).
    SourcePosition where{};
};

struct Invariant {
    std::string name;
    std::string sql;      ///< Rows are a violation.
    bool always = false;  ///< Looked at after every event, not only at the end.
    SourcePosition where{};
};

/// What may hold back the report of a step in a permutation; isolationtester's markers.
/// Source: PostgreSQL's src/test/isolation/README.
struct Marker {
    enum class Kind { any_session, step_done, notices };
    Kind kind;
    std::size_t session = 0;
    std::size_t step = 0;
    int notices = 0;
};

struct PermutationElement {
    std::optional<std::size_t> session;  ///< Empty for `check`.
    std::size_t step = 0;
    std::vector<Marker> markers{};
};

struct Permutation {
    std::vector<PermutationElement> elements;
    SourcePosition where{};
};

/// What the serial oracle takes for one unit of work.
enum class OracleUnit { session, transaction, off };

struct Scenario {
    std::string name;  ///< Of the file, without its folder.
    std::vector<std::string> setups{};
    std::vector<std::size_t> setup_offsets{};  ///< Where each setup's SQL starts in the file.
    std::string teardown{};
    std::size_t teardown_offset = 0;
    std::vector<SessionScript> sessions{};
    std::vector<Permutation> permutations{};
    std::vector<Invariant> invariants{};
    std::vector<std::string> isolations{};  ///< Each is explored; empty: as the server has it.
    OracleUnit oracle = OracleUnit::session;

    /// End states are compared with those of serial orders only where nothing else says what is right.
    [[nodiscard]] bool asks_oracle() const {
        return invariants.empty() && permutations.empty() && oracle != OracleUnit::off;
    }
};

/// "writer_1.lock"
[[nodiscard]] std::string step_label(const Scenario& scenario, std::size_t session, std::size_t step);

/// The server refused SQL that is there to prepare, so there is nothing to race. `offset` is the place in the file.
class ScriptRefused : public std::runtime_error {
  public:
    ScriptRefused(const std::string& message, std::size_t offset) : std::runtime_error(message), offset_(offset) {}
    [[nodiscard]] std::size_t offset() const noexcept { return offset_; }

  private:
    std::size_t offset_;
};

/// Reads a scenario: isolationtester's grammar and rowlock's additions. `name` is for messages.
/// Throws ScenarioError.
[[nodiscard]] Scenario parse_scenario(std::string_view text, std::string_view name);

}  // namespace rowlock::race
