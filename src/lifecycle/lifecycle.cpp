#include "rowlock/lifecycle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/contract.hpp"
#include "lifecycle/catalog.hpp"
#include "lifecycle/statements.hpp"
#include "postgres/transaction_state.hpp"

namespace rowlock {

namespace {

constexpr std::string_view parent_lock_class = "parent";
constexpr std::string_view child_lock_class = "child";

std::string place(std::source_location where) {
    return fmt::format("{}:{}", where.file_name(), where.line());
}

LifecycleDescription checked(Database& database, const LifecycleDescription& description, std::source_location where) {
    if (description.isolation == IsolationLevel::repeatable_read) {
        throw InvalidInput(
            "a lifecycle is not possible at REPEATABLE READ: what is read there can be older than the lock that "
            "protects "
            "it; use READ COMMITTED, or SERIALIZABLE for everybody",
            where);
    }
    return database.transact(
        {},
        [&](Transaction& transaction) {
            const LifecycleFacts facts = read_facts(transaction, description);
            LifecycleDescription complete = completed(description, facts);
            if (const auto problem = first_problem(complete, facts)) throw SetupError("lifecycle: " + *problem, where);
            return complete;
        },
        where);
}

/// A lock that was not free where nothing is waited for.
Busy busy_at_once(const Query& query, const RowKey& parent, std::source_location where) {
    return Busy({.sqlstate = "55P03",
                 .message = fmt::format("parent {} is held by another transaction", parent.text()),
                 .statement = std::string(query.statement.name)},
                std::chrono::milliseconds(0), where);
}

/// One call on a transaction.
class LifecycleCall {
  public:
    LifecycleCall(Transaction& transaction, const LifecycleStatements& statements, std::source_location where)
        : transaction_(transaction), statements_(statements), where_(where) {
        if (transaction.isolation() == statements.description().isolation) return;
        throw InvalidInput(
            "the transaction is not at the isolation level of the lifecycle's description: SERIALIZABLE protects only "
            "those who all use it, and at REPEATABLE READ what is read can be older than the lock",
            where);
    }

    [[nodiscard]] RowIdentity identity(const RowKey& key, std::size_t columns) const {
        if (key.values().size() != columns) {
            throw InvalidInput(fmt::format("the key {} has {} values, its table's has {} columns", key.text(),
                                           key.values().size(), columns),
                               where_);
        }
        RowIdentity identity;
        if (!statements_.description().tenant_column.empty())
            identity.emplace_back(transaction_.required_tenant(where_));
        identity.insert(identity.end(), key.values().begin(), key.values().end());
        return identity;
    }
    [[nodiscard]] RowIdentity parent(const RowKey& key) const {
        return identity(key, statements_.description().parent.key.size());
    }
    [[nodiscard]] RowIdentity child(const RowKey& key) const {
        return identity(key, statements_.description().child.key.size());
    }

    /// Nothing where the parent is missing.
    std::optional<ParentState> lock(ParentLock lock, const RowKey& key) {
        const LockWait wait = transaction_.lock_wait_max();
        const Query gate = statements_.gate(lock, wait, key);
        const Query row = statements_.lock_parent(lock, wait, parent(key));
        note(parent_lock_class, key, static_cast<int>(lock), wait.waits());
        const std::vector<Rows> answers = transaction_.execute_all({gate, row}, where_);
        if (!wait.waits() && !answers[0].only().boolean(0)) throw busy_at_once(gate, key, where_);
        if (!answers[1].empty()) return answers[1].only().boolean(0) ? ParentState::retired : ParentState::live;
        if (wait.is_skip_locked() && !execute(statements_.find_parent(parent(key))).empty()) {
            throw busy_at_once(row, key, where_);
        }
        return std::nullopt;
    }

    Rows execute(const Query& query) { return transaction_.execute(query.statement, query.parameters, where_); }

    /// Before the lock is asked for: what comes of the wrong order is a wait that never ends. Who doesn't wait may ask
    /// in any order.
    void note(std::string_view lock_class, const RowKey& key, int strength, bool may_wait = true) {
        Transaction::State& state = transaction_.state();
        const std::string& relation = statements_.child_table();
        if (lock_class == parent_lock_class && may_wait) check_order(state, relation, key, strength);
        Acquisition acquisition{lock_class, key.text(), where_, relation, strength, std::make_shared<char>()};
        state.acquisitions.push_back(std::move(acquisition));
    }

    [[nodiscard]] std::weak_ptr<const void> last_life() const { return transaction_.state().acquisitions.back().life; }

  private:
    void check_order(const Transaction::State& state, const std::string& relation, const RowKey& key,
                     int strength) const {
        const std::string text = key.text();
        const Acquisition* child = nullptr;
        const Acquisition* weaker = nullptr;
        for (const Acquisition& earlier : state.acquisitions) {
            if (earlier.relation != relation) continue;
            if (earlier.lock_class == child_lock_class && child == nullptr) child = &earlier;
            if (earlier.lock_class != parent_lock_class || earlier.key != text) continue;
            if (earlier.strength >= strength) return;  // nothing new is locked
            weaker = &earlier;
        }
        if (weaker != nullptr) {
            state.report_lock_order(
                fmt::format("parent {} of {}, held since {}, is locked in a stronger mode at {}: two transactions that "
                            "do so deadlock; take the stronger one first (hold_open_to_write)",
                            text, relation, place(weaker->where), place(where_)),
                where_);
        }
        if (child != nullptr) {
            state.report_lock_order(
                fmt::format("parent {} is locked at {} after child {} of {} at {}: hold all parents "
                            "before the first child",
                            text, place(where_), child->key, relation, place(child->where)),
                where_);
        }
    }

    Transaction& transaction_;
    const LifecycleStatements& statements_;
    std::source_location where_;
};

Cascade cascade_of(const Rows& rows) {
    Cascade cascade;
    cascade.children.reserve(rows.size());
    for (const Row row : rows) {
        const std::size_t key_columns = rows.columns() - 1;
        std::vector<std::string> key;
        key.reserve(key_columns);
        for (std::size_t i = 0; i < key_columns; ++i) key.emplace_back(row.text(i));
        std::string earlier(row.text(key_columns));
        ++cascade.earlier_counts[earlier];
        cascade.children.push_back({RowKey(std::move(key)), std::move(earlier)});
    }
    return cascade;
}

}  // namespace

std::string RowKey::text() const {
    if (values_.size() == 1) return values_.front();
    return fmt::format("({})", fmt::join(values_, ", "));
}

struct Lifecycle::Implementation {
    LifecycleStatements statements;

    /// The guard's own transaction, if it is still worth anything.
    [[nodiscard]] Transaction& transaction_of(const OpenParent& parent, std::source_location where) const {
        contract(!parent.life_.expired(), "a guard is not used after its transaction, or the savepoint it was taken in",
                 where);
        contract(parent.lifecycle_ == this, "a guard is used with the lifecycle that gave it", where);
        return *parent.transaction_;
    }

    [[nodiscard]] HoldOutcome hold(Transaction& transaction, ParentLock lock, const RowKey& parent,
                                   std::source_location where) const {
        LifecycleCall call(transaction, statements, where);
        const auto state = call.lock(lock, parent);
        if (!state) return MissingParent{};
        if (*state == ParentState::retired) return RetiredParent{};
        return OpenParent(transaction, this, parent, call.last_life());
    }
};

Lifecycle::Lifecycle(Database& database, const LifecycleDescription& description, std::source_location where)
    : implementation_(std::make_unique<Implementation>(
          Implementation{LifecycleStatements(checked(database, description, where))})) {}
Lifecycle::~Lifecycle() = default;
Lifecycle::Lifecycle(Lifecycle&&) noexcept = default;
Lifecycle& Lifecycle::operator=(Lifecycle&&) noexcept = default;

const LifecycleDescription& Lifecycle::description() const noexcept {
    return implementation_->statements.description();
}

HoldOutcome Lifecycle::hold_open(Transaction& transaction, const RowKey& parent, std::source_location where) const {
    return implementation_->hold(transaction, ParentLock::share, parent, where);
}

HoldOutcome Lifecycle::hold_open_to_write(Transaction& transaction, const RowKey& parent,
                                          std::source_location where) const {
    return implementation_->hold(transaction, ParentLock::no_key_update, parent, where);
}

RowKey Lifecycle::add_child(const OpenParent& parent, const std::vector<ColumnValue>& columns,
                            std::source_location where) const {
    Transaction& transaction = implementation_->transaction_of(parent, where);
    LifecycleCall call(transaction, implementation_->statements, where);
    RowIdentity parameters = call.parent(parent.key());
    for (const ColumnValue& column : columns) parameters.push_back(column.value);
    const std::string sql = implementation_->statements.add_child_sql(columns);
    const Rows rows = call.execute({{"lifecycle.add_child", sql, true}, std::move(parameters)});
    std::vector<std::string> key;
    for (std::size_t i = 0; i < rows.columns(); ++i) key.emplace_back(rows.only().text(i));
    RowKey child(std::move(key));
    call.note(child_lock_class, child, 0);
    return child;
}

ConfirmOutcome Lifecycle::confirm(const OpenParent& parent, const RowKey& child, std::source_location where) const {
    Transaction& transaction = implementation_->transaction_of(parent, where);
    LifecycleCall call(transaction, implementation_->statements, where);
    call.note(child_lock_class, child, 0);
    const Query query = implementation_->statements.confirm_child(call.child(child), call.parent(parent.key()));
    if (call.execute(query).affected() == 0) return ChildElsewhere{};
    return Confirmed{};
}

MoveOutcome Lifecycle::move(Transaction& transaction, const RowKey& child, const RowKey& from, const RowKey& to,
                            std::source_location where) const {
    const LifecycleStatements& statements = implementation_->statements;
    LifecycleCall call(transaction, statements, where);
    call.note(parent_lock_class, from, 0);
    call.note(parent_lock_class, to, 0);
    const RowIdentity from_identity = call.parent(from);
    const RowIdentity to_identity = call.parent(to);
    const std::vector<Rows> answers = transaction.execute_all(
        {statements.gate_of_two(from, to), statements.lock_two_parents(from_identity, to_identity)}, where);
    std::optional<bool> retired;
    for (const Row row : answers[1]) {
        if (row.boolean(0)) retired = row.boolean(1);
    }
    if (!retired) return MissingParent{};
    if (*retired) return RetiredParent{};
    call.note(child_lock_class, child, 0);
    if (call.execute(statements.move_child(call.child(child), from_identity, to_identity)).affected() == 0) {
        return ChildElsewhere{};
    }
    return Moved{};
}

RetireOutcome Lifecycle::retire(Transaction& transaction, const RowKey& parent, std::source_location where) const {
    const LifecycleStatements& statements = implementation_->statements;
    LifecycleCall call(transaction, statements, where);
    const auto state = call.lock(ParentLock::update, parent);
    if (!state) return MissingParent{};
    if (transition_for(LifecycleRequest::retire, *state) == Transition::nothing) return AlreadyRetired{};
    // The children first: the declarative rule in the database refuses a retired parent with live ones.
    const RowIdentity identity = call.parent(parent);
    Cascade cascade =
        cascade_of(transaction
                       .execute_all({statements.retire_children(identity),
                                     statements.set_parent_status(identity, statements.description().retired)},
                                    where)
                       .front());
    if (!cascade.children.empty()) call.note(child_lock_class, cascade.children.front().key, 0);
    return cascade;
}

ReviveOutcome Lifecycle::revive(Transaction& transaction, const RowKey& parent, std::source_location where) const {
    const LifecycleStatements& statements = implementation_->statements;
    LifecycleCall call(transaction, statements, where);
    const auto state = call.lock(ParentLock::update, parent);
    if (!state) return MissingParent{};
    if (transition_for(LifecycleRequest::revive, *state) == Transition::nothing) return AlreadyOpen{};
    call.execute(statements.set_parent_status(call.parent(parent), statements.description().open));
    return Revived{};
}

}  // namespace rowlock
