// Keeps identical copies of a session in one order, since every other order is a mirror image of that one.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "race/execution.hpp"

namespace rowlock::race {

/// The events of an execution so far.
using Prefix = std::span<const Event* const>;

/// Any execution has a mirror image in which the copies of a session come to one certain step, their gate, in their
/// order; so only that order is played: a copy is held back there until the one before it has passed. The gate is the
/// first step that two copies can't do in either order alike, since earlier ones are not ordered anyway.
class CopyOrder {
  public:
    /// `groups`: of each session the group of copies that it belongs to; empty: no two are alike.
    explicit CopyOrder(const std::vector<std::size_t>& groups);

    [[nodiscard]] bool is_on() const noexcept { return on_; }
    [[nodiscard]] bool has_gates() const noexcept { return !gates_.empty(); }
    void switch_off() { on_ = false; }
    void forget_gates() { gates_.clear(); }
    /// Chooses the gates, after the first execution.
    void set_gates(Prefix events);
    [[nodiscard]] bool holds_back(const Move& move, Prefix before) const;
    /// False for a whole execution that ends short of a gate: it can't be told from its mirror images.
    [[nodiscard]] bool all_have_passed(Prefix events) const;
    /// Pairs of events of which the first, by passing a gate, lets the next copy come to it.
    [[nodiscard]] std::set<std::pair<std::size_t, std::size_t>> order_of(Prefix events) const;

  private:
    [[nodiscard]] static bool has_passed(std::size_t session, std::size_t step, Prefix events);
    [[nodiscard]] std::optional<std::size_t> copy_before(std::size_t session) const;

    std::vector<std::size_t> groups_;
    std::map<std::size_t, std::size_t> gates_;  ///< Of each group, the step where its copies are kept in order.
    bool on_;
};

}  // namespace rowlock::race
