// Signals that arrive in a wait, as Ctrl-C does at a run of the checker: they are no end of the wait, and no fault.
#include "postgres/async_session.hpp"

#include <gtest/gtest.h>
#include <sys/time.h>

#include <csignal>

#include "race/throwaway_cluster.hpp"

namespace rowlock::race {
namespace {

using namespace std::chrono_literals;

/// Interrupts every system call that waits for longer than a fifth of a millisecond.
class Interruptions {
  public:
    Interruptions() {
        struct sigaction action{};
        action.sa_handler = [](int) {};
        sigaction(SIGALRM, &action, &former_);
        set_period(200);
    }
    ~Interruptions() {
        set_period(0);
        sigaction(SIGALRM, &former_, nullptr);
    }
    Interruptions(const Interruptions&) = delete;
    Interruptions& operator=(const Interruptions&) = delete;

  private:
    static void set_period(suseconds_t microseconds) {
        const itimerval period{{0, microseconds}, {0, microseconds}};
        setitimer(ITIMER_REAL, &period, nullptr);
    }
    struct sigaction former_{};
};

class AsyncSessionTest : public testing::Test {
  protected:
    ThrowawayCluster cluster_;
    Interruptions interruptions_;
};

TEST_F(AsyncSessionTest, ConnectsThroughSignals) {
    for (int times = 0; times < 20; ++times) {
        EXPECT_NO_THROW(AsyncSession(cluster_.connection(), {}, 10s)) << "after " << times;
    }
}

TEST_F(AsyncSessionTest, WaitsForAnAnswerThroughSignals) {
    AsyncSession session(cluster_.connection(), {}, 10s);
    session.send("SELECT pg_sleep(0.05)");
    const AsyncSession* const waited[] = {&session};
    EXPECT_TRUE(wait_for_any(waited, 10s));
}

}  // namespace
}  // namespace rowlock::race
