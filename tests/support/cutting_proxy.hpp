// A wire between client and server that the test holds: it counts what goes over it, and cuts it at a chosen moment.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/scratch_folder.hpp"

namespace rowlock::test {

/// When to cut a connection for good. Each is done once, then the proxy forwards again.
enum class Cut {
    none,
    before_commit,           ///< The message with the COMMIT is not forwarded.
    after_commit,            ///< It is forwarded, and the server's answer is awaited but not passed on.
    after_commit_unanswered  ///< It is forwarded, and the server may still be at it.
};

/// Listens on a Unix socket of its own and forwards to the shared server's. Looks only at the messages of the extended
/// protocol after start-up, and does not speak TLS.
class CuttingProxy {
  public:
    /// `server_folder` is where the server's socket is.
    explicit CuttingProxy(std::filesystem::path server_folder);
    ~CuttingProxy();
    CuttingProxy(const CuttingProxy&) = delete;
    CuttingProxy& operator=(const CuttingProxy&) = delete;

    /// The same connection string, through the proxy.
    [[nodiscard]] std::string through(const std::string& connection) const;

    /// The next COMMIT of any connection is cut so.
    void cut_next(Cut cut);
    [[nodiscard]] int cuts() const noexcept { return cuts_; }
    /// Cuts what is open now, both ways.
    void cut_all();

    /// Sync messages from clients: each is a round trip.
    [[nodiscard]] int round_trips() const noexcept { return round_trips_; }
    /// Names of prepared statements that clients asked for, without the unnamed one.
    [[nodiscard]] int named_statements() const noexcept { return named_statements_; }
    [[nodiscard]] int connections() const noexcept { return connections_; }

  private:
    struct Link;
    void accept_clients();
    void forward(Link& link);
    bool forward_messages(Link& link);
    bool inspect(Link& link, std::string_view message);
    bool act(Link& link, std::string_view message);
    [[nodiscard]] int open_server() const;

    const std::filesystem::path server_folder_;
    ScratchFolder folder_;
    int listener_ = -1;
    std::atomic<bool> stopping_ = false;
    std::atomic<Cut> cut_ = Cut::none;
    std::atomic<int> cuts_ = 0;
    std::atomic<int> round_trips_ = 0;
    std::atomic<int> named_statements_ = 0;
    std::atomic<int> connections_ = 0;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Link>> links_;
    std::thread acceptor_;
};

}  // namespace rowlock::test
