// Ctrl-C in the middle of long work: noticed between two steps, so that what was begun is finished first.
#pragma once

namespace rowlock::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP don't end the process but can be polled for. Made before any thread,
/// which inherit that; a second signal, after `unblock`, ends the process at once.
class Interruption {
  public:
    Interruption();
    ~Interruption();
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;

    /// Waits until `file` can be read. False: a signal came first. The wait has no limit: a pipe may be slow.
    bool wait_readable(int file);
    /// Whether a signal has come by now. Waits for nothing.
    [[nodiscard]] bool has_come() noexcept;
    /// The signal that came, or 0.
    [[nodiscard]] int signal() const noexcept { return signal_; }
    /// From now on a signal ends the process at once.
    void unblock() noexcept;
    /// Ends the process by the signal that came, as if it had never been caught, so that a shell's loop ends too.
    [[noreturn]] void die() noexcept;

  private:
    void take() noexcept;

    int descriptor_ = -1;
    int signal_ = 0;
};

}  // namespace rowlock::cli
