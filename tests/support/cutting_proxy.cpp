#include "support/cutting_proxy.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>

namespace rowlock::test {

namespace {

namespace fs = std::filesystem;

constexpr int poll_milliseconds = 20;
constexpr int answer_milliseconds_max = 10000;
constexpr const char* socket_name = ".s.PGSQL.5432";

sockaddr_un address_of(const fs::path& folder) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = (folder / socket_name).string();
    if (path.size() >= sizeof(address.sun_path)) throw std::runtime_error("the socket's path is too long: " + path);
    path.copy(address.sun_path, path.size());
    return address;
}

/// sockaddr_un as the base that the system calls take.
template <class Call>
int with_address(const fs::path& folder, Call&& call) {
    const sockaddr_un address = address_of(folder);
    return call(reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(sizeof(address)));
}

bool send_whole(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

std::uint32_t length_at(std::string_view bytes, std::size_t place) {
    std::uint32_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8U | static_cast<std::uint8_t>(bytes[place + i]);
    return length;
}

}  // namespace

struct CuttingProxy::Link {
    int client = -1;
    int server = -1;
    bool started = false;  ///< The start-up message, the one without a type, has passed.
    std::string from_client;
    std::string commit_statement = "?";  ///< The name under which COMMIT was prepared.
    bool commit_bound = false;
    std::atomic<bool> cut = false;
    std::thread worker;

    /// What was forwarded is still read by the other side; closing could take it back.
    void hang_up() const {
        shutdown(client, SHUT_RDWR);
        shutdown(server, SHUT_RDWR);
    }
    ~Link() {
        if (worker.joinable()) worker.join();
        close(client);
        close(server);
    }
};

CuttingProxy::CuttingProxy(fs::path server_folder) : server_folder_(std::move(server_folder)) {
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int bound = with_address(folder_.path(), [&](auto... address) { return bind(listener_, address...); });
    if (bound != 0 || listen(listener_, 64) != 0) throw std::system_error(errno, std::generic_category(), "the proxy");
    acceptor_ = std::thread([this] { accept_clients(); });
}

CuttingProxy::~CuttingProxy() {
    stopping_ = true;
    acceptor_.join();
    cut_all();
    links_.clear();
    close(listener_);
}

std::string CuttingProxy::through(const std::string& connection) const {
    return fmt::format("{} host={}", connection, folder_.path().string());
}

void CuttingProxy::cut_next(Cut cut) {
    cut_ = cut;
}

void CuttingProxy::cut_all() {
    const std::lock_guard lock(mutex_);
    for (const auto& link : links_) {
        link->cut = true;
        link->hang_up();
    }
}

int CuttingProxy::open_server() const {
    const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int connected = with_address(server_folder_, [&](auto... address) { return connect(server, address...); });
    if (connected == 0) return server;
    close(server);
    return -1;
}

void CuttingProxy::accept_clients() {
    while (!stopping_) {
        pollfd waiting{listener_, POLLIN, 0};
        if (poll(&waiting, 1, poll_milliseconds) <= 0) continue;
        auto link = std::make_unique<Link>();
        link->client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        link->server = open_server();
        if (link->client < 0 || link->server < 0) continue;
        ++connections_;
        Link& running = *link;
        const std::lock_guard lock(mutex_);
        links_.push_back(std::move(link));
        running.worker = std::thread([this, &running] { forward(running); });
    }
}

void CuttingProxy::forward(Link& link) {
    std::array<char, 65536> buffer{};
    bool open = true;
    while (open && !stopping_ && !link.cut) {
        std::array<pollfd, 2> ends{{{link.client, POLLIN, 0}, {link.server, POLLIN, 0}}};
        if (poll(ends.data(), ends.size(), poll_milliseconds) <= 0) continue;
        if (ends[1].revents != 0) {
            const ssize_t count = recv(link.server, buffer.data(), buffer.size(), 0);
            open = count > 0 && send_whole(link.client, {buffer.data(), static_cast<std::size_t>(count)});
        }
        if (open && ends[0].revents != 0) {
            const ssize_t count = recv(link.client, buffer.data(), buffer.size(), 0);
            if (count > 0) link.from_client.append(buffer.data(), static_cast<std::size_t>(count));
            open = count > 0 && forward_messages(link);
        }
    }
    link.hang_up();
}

/// Forwards what is there of whole messages. False: the connection is over.
bool CuttingProxy::forward_messages(Link& link) {
    while (true) {
        const std::size_t type = link.started ? 1 : 0;
        if (link.from_client.size() < type + 4) return true;
        const std::size_t size = type + length_at(link.from_client, type);
        if (link.from_client.size() < size) return true;
        const std::string message = link.from_client.substr(0, size);
        link.from_client.erase(0, size);
        if (!link.started) {
            constexpr std::uint32_t protocol_3 = 196608;
            link.started = length_at(message, 4) == protocol_3;
            if (!send_whole(link.server, message)) return false;
        } else if (!inspect(link, message)) {
            return false;
        }
    }
}

/// Source: https://www.postgresql.org/docs/15/protocol-message-formats.html
bool CuttingProxy::inspect(Link& link, std::string_view message) {
    const std::string_view body = message.substr(5);
    const std::string_view first = body.substr(0, body.find('\0'));
    if (message[0] == 'P') {
        const std::string_view sql =
            body.substr(first.size() + 1, body.find('\0', first.size() + 1) - first.size() - 1);
        if (!first.empty()) ++named_statements_;
        if (sql == "COMMIT") link.commit_statement = first;
        if (sql != "COMMIT" && link.commit_statement == first) link.commit_statement.assign(1, '?');
    } else if (message[0] == 'B') {
        const std::string_view rest = body.substr(first.size() + 1);
        link.commit_bound = rest.substr(0, rest.find('\0')) == link.commit_statement;
    } else if (message[0] == 'S') {
        ++round_trips_;
    }
    if (link.commit_bound && cut_ != Cut::none) return act(link, message);
    return send_whole(link.server, message);
}

/// The messages of a COMMIT, from its Bind on, while a cut is due. The Sync behind it ends the round trip.
bool CuttingProxy::act(Link& link, std::string_view message) {
    const bool whole = message[0] == 'S';
    const Cut cut = cut_;
    if (cut != Cut::before_commit && !send_whole(link.server, message)) return false;
    if (cut != Cut::before_commit && !whole) return true;
    cut_ = Cut::none;
    ++cuts_;
    pollfd answer{link.server, POLLIN, 0};
    if (cut == Cut::after_commit) poll(&answer, 1, answer_milliseconds_max);
    return false;
}

}  // namespace rowlock::test
