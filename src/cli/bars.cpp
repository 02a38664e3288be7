#include "cli/bars.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <array>
#include <cmath>
#include <source_location>
#include <thread>
#include <vector>

#include "cli/contest.hpp"
#include "cli/output.hpp"
#include "postgres/session.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

constexpr int flush_samples = 200;

constexpr Statement flush_begin{"bench.flush_begin", "BEGIN"};
constexpr Statement with_flush{"bench.with_flush", "SET LOCAL synchronous_commit = on"};
constexpr Statement without_flush{"bench.without_flush", "SET LOCAL synchronous_commit = off"};
constexpr Statement flushed_insert{"bench.flushed_insert", "INSERT INTO public.bench_flush VALUES (1)"};
constexpr Statement flush_commit{"bench.flush_commit", "COMMIT"};

constexpr Statement durability{
    "bench.durability", "SELECT current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off'"};

bool is_durable(const ScratchDatabase& scratch) {
    Session session(scratch.as_owner(), std::source_location::current());
    session.queue(durability, {});
    return session.flush().rows_or_throw().front().only().boolean(0);
}

void run(Session& session, std::initializer_list<const Statement*> statements) {
    for (const Statement* const statement : statements) session.queue(*statement, {});
    session.flush().rows_or_throw();
}

double milliseconds_of_commit(Session& session, const Statement& setting) {
    const Stopwatch watch;
    run(session, {&flush_begin, &setting, &flushed_insert, &flush_commit});
    return watch.milliseconds();
}

double load_average() {
    std::array<double, 1> load{};
    return getloadavg(load.data(), 1) == 1 ? load[0] : 0;
}

}  // namespace

std::string bar_figure(double value) {
    if (value >= 100) return grouped(std::llround(value));
    return fmt::format("{:.{}f}", value, value >= 10 ? 1 : 2);
}

void tell_bar(const Context& context, const Bar& bar) {
    if (context.globals.json) {
        JsonObject object;
        object.text("bar", bar.what).real("value", bar.value).real("limit", bar.limit).boolean("at_most", bar.at_most);
        return print_line(object.str());
    }
    print_line(fmt::format("{:>7}  {} ({} {}: {})", bar_figure(bar.value), bar.what,
                           bar.at_most ? "at most" : "at least", bar_figure(bar.limit),
                           tinted(context.style, bar.met() ? Tone::good : Tone::bad, bar.met() ? "met" : "missed")));
}

double flush_microseconds(const ScratchDatabase& scratch) {
    Session session(scratch.as_owner(), std::source_location::current());
    session.run_script({"bench.flush_table", "CREATE TABLE IF NOT EXISTS public.bench_flush (n int)"}).rows_or_throw();
    std::vector<double> with;
    std::vector<double> without;
    for (int i = 0; i < flush_samples; ++i) {
        with.push_back(milliseconds_of_commit(session, with_flush));
        without.push_back(milliseconds_of_commit(session, without_flush));
    }
    return std::max(0.0, median(with) - median(without)) * 1000;
}

void tell_machine(const Context& context, const ScratchDatabase& scratch) {
    const double load = load_average();  // first: what measuring adds is none of it
    const double flush = flush_microseconds(scratch);
    const unsigned cores = std::thread::hardware_concurrency();
    const bool durable = is_durable(scratch);
    if (context.globals.json) {
        JsonObject object;
        object.real("flush_microseconds", flush).number("cores", cores).real("load", load).boolean("durable", durable);
        return print_line(object.str());
    }
    print_line(fmt::format("{:.0f} µs a flush, {} cores, load {:.1f} at the end", flush, cores, load));
    if (!durable) {
        print_note(
            "rowlock: no commit here was durable (fsync or synchronous_commit is off), so these are no such figures");
    }
}

}  // namespace rowlock::cli
