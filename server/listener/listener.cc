#include "server/listener/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// How many connections are taken from one listening socket before the other sockets have their
// turn.
constexpr int kMaxAcceptsAtOnce = 64;
// If no connection can be accepted, not even to be closed, the listening sockets are not watched
// for this long. Otherwise the sockets would be ready all the time, and the thread would spin.
constexpr int kPauseMs = 100;
// How often the listener tries to let waiting connections in.
constexpr int kWaitingMs = 2;

absl::Status Watch(int epoll, int fd, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch descriptor ", fd));
}

void Signal(const OwnedFd& event) { SYSTOLE_CHECK(::eventfd_write(event.get(), 1) == 0); }

OwnedFd OpenSpare() { return OwnedFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

int AcceptFrom(int listener) {
  return ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

bool IsWithoutDescriptor(int error) { return error == EMFILE || error == ENFILE; }

std::string AddressText(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(family, address, text, sizeof(text));
  return text;
}

// The other end of a connection.
struct Peer {
  std::string name;           // A user or an address; connections are counted by this name.
  std::string address;        // As gRPC writes it (OpenCalls::Add). Empty: not known.
  std::optional<uid_t> user;  // On a Unix socket.
};

// The peer of a connection. Its name is empty if the peer has gone.
Peer PeerOf(int fd) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  if (address.ss_family == AF_UNIX) {
    ucred user = {};
    length = sizeof(user);
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &length) != 0) return {};
    return {.name = absl::StrCat("user ", user.uid), .user = user.uid};
  }
  const auto ipv4 = [](const void* four, in_port_t port) {
    const std::string name = AddressText(AF_INET, four);
    return Peer{.name = name, .address = absl::StrCat("ipv4:", name, ":", ntohs(port))};
  };
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<sockaddr_in&>(address);
    return ipv4(&in.sin_addr, in.sin_port);
  }
  const auto& in6 = reinterpret_cast<sockaddr_in6&>(address);
  // An IPv4 peer must have the same name, whether it connects to an IPv4 or an IPv6 socket.
  if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
    return ipv4(&in6.sin6_addr.s6_addr[12], in6.sin6_port);
  }
  const std::string name = AddressText(AF_INET6, &in6.sin6_addr);
  // gRPC writes the zone of a link-local address in one of several ways, so `address` stays empty.
  if (in6.sin6_scope_id != 0) return {.name = name};
  return {.name = name, .address = absl::StrCat("ipv6:%5B", name, "%5D:", ntohs(in6.sin6_port))};
}

// Ends a TCP connection at once. shutdown() would not do this: through its own descriptor, gRPC
// would go on reading as long as bytes come. After Abort() gRPC sees an error, and epoll reports
// the end of the connection to the listener.
void Abort(int fd) {
  const sockaddr nobody = {.sa_family = AF_UNSPEC, .sa_data = {}};
  ::connect(fd, &nobody, sizeof(nobody));
}

// Ignores errors: on a Unix socket these options cannot be set.
void SetTcpOptions(int fd, absl::Duration silence_timeout) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const unsigned int milliseconds =
      static_cast<unsigned int>(absl::ToInt64Milliseconds(silence_timeout));
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(ListeningSockets listeners,
                                                         ListenerOptions options,
                                                         HandOver hand_over) {
  if (options.max_connections < 1 || options.max_connections_per_peer < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", options.max_connections, " connections and ",
                     options.max_connections_per_peer, " for one peer: want 1 or more of each"));
  }
  OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.ok()) return absl::ErrnoToStatus(errno, "epoll_create1");
  OwnedFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.ok()) return absl::ErrnoToStatus(errno, "eventfd");
  if (options.calls != nullptr) SYSTOLE_RETURN_IF_ERROR(CheckReadsAreSeen());
  SYSTOLE_RETURN_IF_ERROR(Watch(epoll.get(), wake.get(), EPOLLIN));
  for (const OwnedFd& listener : listeners.fds) {
    SYSTOLE_RETURN_IF_ERROR(Watch(epoll.get(), listener.get(), EPOLLIN));
  }
  return absl::WrapUnique(new Listener(std::move(listeners), std::move(options),
                                       std::move(hand_over), std::move(epoll), std::move(wake)));
}

Listener::Listener(ListeningSockets listeners, ListenerOptions options, HandOver hand_over,
                   OwnedFd epoll, OwnedFd wake)
    : options_(std::move(options)),
      hand_over_(std::move(hand_over)),
      epoll_(std::move(epoll)),
      wake_(std::make_shared<const OwnedFd>(std::move(wake))),
      listeners_(std::move(listeners)),
      spare_(OpenSpare()),
      meter_(std::make_shared<Meter>(options_.tls ? kTlsConnectionCost : kPlainConnectionCost,
                                     options_.clock, [wake = wake_] { Signal(*wake); })) {
  thread_.Submit([this] { Run(); });
}

Listener::~Listener() {
  StopListening();
  MutexLock lock(mu_);
  ending_ = true;
  Signal(*wake_);
  // The pool's destructor waits for Run().
}

void Listener::StopListening() {
  MutexLock lock(mu_);
  if (listening_ == Listening::kYes) {
    listening_ = Listening::kStopping;
    Signal(*wake_);
  }
  while (listening_ != Listening::kNo || handing_over_ > 0) changed_.Wait(mu_);
}

void Listener::HangUp() {
  MutexLock lock(mu_);
  for (const auto& [fd, connection] : connections_) ::shutdown(fd, SHUT_RDWR);
}

void Listener::EndQuiet() {
  std::vector<std::pair<std::string, std::string>> told;  // Peer, and why.
  {
    MutexLock lock(mu_);
    for (auto& [fd, connection] : connections_) {
      if (connection.calls == nullptr || connection.ended ||
          connection.calls->Quiet() < options_.call_timeout) {
        continue;
      }
      // gRPC reads the end of the connection, as if the peer had ended it.
      ::shutdown(fd, SHUT_RDWR);
      connection.ended = true;
      told.emplace_back(connection.peer, absl::StrCat("dropped a connection of ", connection.peer,
                                                      ", which has asked for nothing for ",
                                                      absl::FormatDuration(options_.call_timeout),
                                                      "; ", ++counters_.no_call, " so far"));
    }
  }
  if (options_.turned_away == nullptr) return;
  for (const auto& [peer, why] : told) options_.turned_away(peer, why);
}

ListenerCounters Listener::counters() const {
  MutexLock lock(mu_);
  return counters_;
}

void Listener::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const bool was_paused = paused_;
    const int wait_ms = !waiting_.empty() ? kWaitingMs : was_paused ? kPauseMs : -1;
    const int ready =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
    SYSTOLE_CHECK(ready >= 0 || errno == EINTR);
    for (int i = 0; i < ready; ++i) {
      Handle(events[static_cast<size_t>(i)].data.fd, events[static_cast<size_t>(i)].events);
    }
    DropExcess();
    // Any event ends a pause early, such as the end of a connection, which frees descriptors.
    if (was_paused) Listen(true);
    HandOverWaiting();
    MutexLock lock(mu_);
    if (ending_) return;
  }
}

void Listener::Handle(int fd, uint32_t events) {
  if (fd == wake_->get()) {
    eventfd_t ignored;
    ::eventfd_read(fd, &ignored);
    if (IsStopping()) CloseListeners();
    return;
  }
  for (const OwnedFd& listener : listeners_.fds) {
    if (listener.get() == fd) return Accept(fd);
  }
  // On an error without a hang-up, nothing is done here. gRPC sees the error, too, and shuts the
  // connection down. Then epoll reports the hang-up.
  if ((events & EPOLLHUP) != 0) Forget(fd);
}

void Listener::Accept(int listener) {
  for (int i = 0; i < kMaxAcceptsAtOnce; ++i) {
    OwnedFd connection(AcceptFrom(listener));
    if (connection.ok()) {
      LetIn(std::move(connection));
      continue;
    }
    const int error = errno;
    if (error == EAGAIN) return;
    // After other errors, accepts the next connection: this one has failed, or a signal came.
    if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) continue;
    TellNoDescriptor(error);
    if (!IsWithoutDescriptor(error) || !TurnAway(listener)) return Listen(false);
  }
}

bool Listener::TurnAway(int listener) {
  spare_ = OwnedFd();
  const bool taken = OwnedFd(AcceptFrom(listener)).ok();
  spare_ = OpenSpare();
  return taken;
}

void Listener::LetIn(OwnedFd connection) {
  const auto [peer, address, user] = PeerOf(connection.get());
  if (peer.empty() || !HasRoomFor(peer)) return;
  SetTcpOptions(connection.get(), options_.silence_timeout);
  const int own = connection.get();
  std::shared_ptr<OpenCalls::Connection> calls;
  if (options_.calls != nullptr && !address.empty()) calls = options_.calls->Add(address);
  const bool counted = calls != nullptr;
  {
    MutexLock lock(mu_);
    connections_.emplace(own, Connection{.own = std::move(connection),
                                         .peer = peer,
                                         .address = address,
                                         .calls = std::move(calls)});
    ++peers_[peer];
    ++counters_.let_in;
    ++counters_.open;
  }
  if (counted) {
    waiting_[peer].push_back(own);
  } else {
    HandOverOne(own, user);
  }
}

void Listener::HandOverWaiting() {
  // Visits each waiting peer once, beginning after the peer that was let in last.
  std::string peer = last_in_;
  for (size_t left = waiting_.size(); left > 0; --left) {
    auto next = waiting_.upper_bound(peer);
    if (next == waiting_.end()) next = waiting_.begin();
    peer = next->first;
    while (!next->second.empty() && meter_->MayComeIn(peer)) {
      last_in_ = peer;
      HandOverOne(next->second.front(), std::nullopt);
      next->second.pop_front();
    }
    if (next->second.empty()) waiting_.erase(next);
  }
}

void Listener::HandOverOne(int own, std::optional<uid_t> user) {
  std::string peer;
  std::shared_ptr<OpenCalls::Connection> calls;
  {
    MutexLock lock(mu_);
    const Connection& connection = connections_.find(own)->second;
    peer = connection.peer;
    calls = connection.calls;
  }
  const int duplicate = ::fcntl(own, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) {
    TellNoDescriptor(errno);
    return Forget(own);
  }
  // epoll reports a hang-up although no events are requested. The watch is edge-triggered, because
  // otherwise an error would be reported again and again until gRPC has fetched it.
  if (!Watch(epoll_.get(), own, EPOLLET).ok()) {
    ::close(duplicate);
    return Forget(own);
  }
  if (calls != nullptr) ObserveReads(duplicate, meter_->Add(own, peer, std::move(calls)));
  {
    MutexLock lock(mu_);
    ++handing_over_;
  }
  hand_over_thread_.Submit([this, duplicate, user] {
    {
      const HandedOver handed_over(duplicate);
      hand_over_(duplicate, user);
    }
    MutexLock lock(mu_);
    if (--handing_over_ == 0) changed_.SignalAll();
  });
}

bool Listener::HasRoomFor(const std::string& peer) {
  std::string why;
  {
    MutexLock lock(mu_);
    const auto known = peers_.find(peer);
    if (counters_.open >= options_.max_connections) {
      why = absl::StrCat("turned away a connection of ", peer, ": ", counters_.open,
                         " connections are open (--max-connections); ", ++counters_.over_total,
                         " so far");
    } else if (known != peers_.end() && known->second >= options_.max_connections_per_peer) {
      why = absl::StrCat("turned away a connection of ", peer, ", which has ", known->second,
                         " (--max-connections-per-peer); ", ++counters_.over_peer, " so far");
    }
  }
  if (why.empty()) return true;
  if (options_.turned_away != nullptr) options_.turned_away(peer, why);
  return false;
}

void Listener::TellNoDescriptor(int error) {
  int64_t so_far = 0;
  {
    MutexLock lock(mu_);
    so_far = ++counters_.no_descriptor;
  }
  if (options_.turned_away == nullptr) return;
  options_.turned_away(
      "", absl::StrCat("turned away a connection: ", std::strerror(error), "; ", so_far,
                       " so far. Raise the limit of open files, `ulimit -n`, or lower "
                       "--max-connections"));
}

void Listener::DropExcess() {
  for (const Meter::Excess& one : meter_->TakeExcess()) {
    std::string peer;
    std::string why;
    {
      MutexLock lock(mu_);
      Connection& connection = connections_.find(one.fd)->second;
      Abort(one.fd);
      connection.ended = true;
      peer = connection.peer;
      why = absl::StrCat("dropped a connection of ", peer, ", which sent ", one.what,
                         one.alone ? "; " : ", when all connections together had cost too much; ",
                         one.alone ? ++counters_.sent_too_much : ++counters_.cost_most, " so far");
    }
    if (options_.turned_away != nullptr) options_.turned_away(peer, why);
  }
}

void Listener::Forget(int own) {
  meter_->Remove(own);
  // The meter may have chosen to close this connection already. DropExcess() must count this while
  // the connection is still in `connections_`.
  DropExcess();
  // Ends the watch, if there is one, before the descriptor is closed. gRPC's descriptor may keep
  // the connection alive, and epoll would still report it.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, own, nullptr);
  MutexLock lock(mu_);
  const auto connection = connections_.find(own);
  if (connection->second.calls != nullptr) {
    options_.calls->Remove(connection->second.address, connection->second.calls);
  }
  const auto peer = peers_.find(connection->second.peer);
  if (--peer->second == 0) peers_.erase(peer);
  connections_.erase(connection);
  --counters_.open;
}

bool Listener::IsStopping() const {
  MutexLock lock(mu_);
  return listening_ == Listening::kStopping;
}

void Listener::CloseListeners() {
  listeners_ = ListeningSockets();
  for (const auto& [peer, connections] : waiting_) {
    for (const int own : connections) Forget(own);
  }
  waiting_.clear();
  MutexLock lock(mu_);
  listening_ = Listening::kNo;
  changed_.SignalAll();
}

void Listener::Listen(bool on) {
  paused_ = !on;
  for (const OwnedFd& listener : listeners_.fds) {
    epoll_event event = {};
    event.events = on ? uint32_t{EPOLLIN} : 0;
    event.data.fd = listener.get();
    SYSTOLE_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener.get(), &event) == 0);
  }
}

}  // namespace systole
