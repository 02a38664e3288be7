#include "cli/interruption.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "cli/context.hpp"

namespace rowlock::cli {

namespace {

sigset_t interrupting_signals() {
    sigset_t signals{};
    sigemptyset(&signals);
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
        // One that the parent ignores (nohup) stays ignored.
        struct sigaction present{};
        if (sigaction(each, nullptr, &present) == 0 && present.sa_handler != SIG_IGN) sigaddset(&signals, each);
    }
    return signals;
}

}  // namespace

Interruption::Interruption() {
    const sigset_t signals = interrupting_signals();
    descriptor_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    // Without a descriptor signals end the process, as they would anyway.
    if (descriptor_ >= 0) pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Interruption::~Interruption() {
    unblock();
    if (descriptor_ >= 0) close(descriptor_);
}

bool Interruption::wait_readable(int file) {
    std::array<pollfd, 2> waited{{{file, POLLIN, 0}, {descriptor_, POLLIN, 0}}};
    while (signal_ == 0) {
        const int ready = poll(waited.data(), waited.size(), -1);
        if (ready < 0 && errno != EINTR) return true;  // the read will tell what is wrong
        if (ready < 0) continue;
        if (waited[1].revents != 0) {
            take();
        } else if (waited[0].revents != 0) {
            return true;
        }
    }
    return false;
}

void Interruption::take() noexcept {
    signalfd_siginfo information{};
    const ssize_t length = read(descriptor_, &information, sizeof information);
    if (length == static_cast<ssize_t>(sizeof information)) signal_ = static_cast<int>(information.ssi_signo);
}

bool Interruption::has_come() noexcept {
    if (signal_ == 0) take();
    return signal_ != 0;
}

void Interruption::unblock() noexcept {
    const sigset_t signals = interrupting_signals();
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void Interruption::die() noexcept {
    std::signal(signal_, SIG_DFL);
    unblock();
    std::raise(signal_);
    std::_Exit(static_cast<int>(Exit::undetermined));
}

}  // namespace rowlock::cli
