#include "tests/chaos/fault_proxy.h"

#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/loopback_socket.h"

namespace systole {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
// A waiting connection sees a change of the faults within this time.
constexpr absl::Duration kLook = absl::Milliseconds(20);

// Closes the socket in such a way that the peer sees a reset, as after a crash.
void Reset(const OwnedFd& socket) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::shutdown(socket.get(), SHUT_RDWR);
}

// A random number of bytes until the next event of a kind that comes once in `mean` bytes on
// average.
int64_t DistanceTo(int64_t mean, std::mt19937_64& random) {
  return static_cast<int64_t>(
      std::exponential_distribution<double>(1.0 / static_cast<double>(mean))(random));
}

}  // namespace

FaultProxy::FaultProxy(uint64_t seed) : listener_(ListenOnLoopback(port_)), random_(seed) {
  acceptor_ = std::thread([this] { Accept(); });
}

FaultProxy::~FaultProxy() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
    ::shutdown(listener_.get(), SHUT_RDWR);
    for (const std::unique_ptr<Link>& link : links_) {
      Reset(link->client);
      Reset(link->server);
    }
  }
  acceptor_.join();
  std::vector<std::thread> pumps;
  {
    MutexLock lock(mu_);
    pumps.swap(pumps_);
  }
  for (std::thread& pump : pumps) pump.join();
}

std::string FaultProxy::address() const { return absl::StrCat("127.0.0.1:", port_); }

void FaultProxy::LeadTo(const std::string& address) {
  MutexLock lock(mu_);
  server_port_ = PortOf(address);
}

void FaultProxy::Set(const Faults& faults) {
  MutexLock lock(mu_);
  faults_ = faults;
  changed_.SignalAll();
}

void FaultProxy::Grant(int64_t bytes) {
  MutexLock lock(mu_);
  granted_ = granted_.value_or(0) + bytes;
  changed_.SignalAll();
}

void FaultProxy::CutAll() {
  MutexLock lock(mu_);
  for (const std::unique_ptr<Link>& link : links_) {
    Reset(link->client);
    Reset(link->server);
  }
}

int64_t FaultProxy::passed() const {
  MutexLock lock(mu_);
  return passed_;
}
int64_t FaultProxy::connections() const {
  MutexLock lock(mu_);
  return connections_;
}
int64_t FaultProxy::cuts() const {
  MutexLock lock(mu_);
  return cuts_;
}
int64_t FaultProxy::flips() const {
  MutexLock lock(mu_);
  return flips_;
}

void FaultProxy::Accept() {
  while (true) {
    OwnedFd client = AcceptOnLoopback(listener_);
    if (!client.ok()) return;
    int server_port = 0;
    {
      MutexLock lock(mu_);
      if (stopping_) return;
      if (!faults_.refuses) server_port = server_port_;
    }
    OwnedFd server;
    if (server_port != 0) server = ConnectOnLoopback(server_port);
    // When a server is down, it refuses connections, and so does its proxy.
    if (!server.ok()) {
      Reset(client);
      continue;
    }
    MutexLock lock(mu_);
    if (stopping_) return;
    ++connections_;
    links_.push_back(std::make_unique<Link>());
    Link* const link = links_.back().get();
    link->client = std::move(client);
    link->server = std::move(server);
    pumps_.emplace_back([this, link] { Pump(link, /*from_server=*/false); });
    pumps_.emplace_back([this, link] { Pump(link, /*from_server=*/true); });
  }
}

FaultProxy::Fate FaultProxy::Decide(int64_t bytes, bool from_server) {
  MutexLock lock(mu_);
  while (faults_.swallows && !stopping_) changed_.Wait(mu_);
  Fate fate = {.faults = faults_, .pass = bytes};
  if (!from_server) return fate;
  if (faults_.bytes_per_cut > 0) {
    if (const int64_t at = DistanceTo(faults_.bytes_per_cut, random_); at < bytes) {
      fate.pass = at;
      fate.cut = true;
      ++cuts_;
    }
  }
  if (faults_.bytes_per_flip > 0) {
    if (const int64_t at = DistanceTo(faults_.bytes_per_flip, random_); at < fate.pass) {
      fate.flip_bit = at * 8 + static_cast<int64_t>(random_() % 8);
      ++flips_;
    }
  }
  return fate;
}

int64_t FaultProxy::TakeGranted(int64_t bytes) {
  MutexLock lock(mu_);
  while (granted_ == 0 && !stopping_) changed_.Wait(mu_);
  if (!granted_.has_value()) return bytes;
  const int64_t taken = std::min(bytes, *granted_);
  *granted_ -= taken;
  return taken;
}

int64_t FaultProxy::Receive(int from, bool from_server, std::vector<char>& piece) {
  size_t most = piece.size();
  if (from_server) {
    // Bytes that are not granted stay in the socket.
    const ssize_t there = ::recv(from, piece.data(), most, MSG_PEEK);
    if (there <= 0) return 0;
    most = static_cast<size_t>(TakeGranted(there));
    if (most == 0) return 0;
  }
  return std::max<ssize_t>(::recv(from, piece.data(), most, 0), 0);
}

void FaultProxy::CountPassed(int64_t bytes) {
  MutexLock lock(mu_);
  passed_ += bytes;
}

bool FaultProxy::Sleep(absl::Duration duration) {
  const absl::Time until = absl::Now() + duration;
  MutexLock lock(mu_);
  while (!stopping_) {
    const absl::Duration left = until - absl::Now();
    if (left <= absl::ZeroDuration()) return true;
    changed_.WaitFor(mu_, std::min(left, kLook));
  }
  return false;
}

void FaultProxy::Pump(Link* link, bool from_server) {
  const int from = from_server ? link->server.get() : link->client.get();
  const int to = from_server ? link->client.get() : link->server.get();
  std::vector<char> piece(kPieceBytes);
  bool open = true;
  while (open) {
    const int64_t got = Receive(from, from_server, piece);
    if (got == 0) break;
    const Fate fate = Decide(got, from_server);
    if (fate.flip_bit >= 0) {
      char& byte = piece[static_cast<size_t>(fate.flip_bit / 8)];
      byte = static_cast<char>(byte ^ (1 << fate.flip_bit % 8));
    }
    absl::Duration wait = fate.faults.delay;
    if (fate.faults.bytes_per_second > 0) {
      wait += absl::Seconds(static_cast<double>(fate.pass) /
                            static_cast<double>(fate.faults.bytes_per_second));
    }
    if (wait > absl::ZeroDuration() && !Sleep(wait)) break;
    for (int64_t sent = 0; sent < fate.pass && open;) {
      const ssize_t now =
          ::send(to, piece.data() + sent, static_cast<size_t>(fate.pass - sent), MSG_NOSIGNAL);
      open = now > 0;
      sent += std::max<ssize_t>(now, 0);
    }
    if (from_server) CountPassed(fate.pass);
    if (fate.cut) open = false;
  }
  // When the client or the server closes, the proxy closes both sides: gRPC has no connections that
  // are open in one direction only.
  Leave(link);
}

void FaultProxy::Leave(Link* link) {
  MutexLock lock(mu_);
  Reset(link->client);
  Reset(link->server);
  if (--link->pumps > 0) return;
  links_.erase(std::find_if(links_.begin(), links_.end(),
                            [&](const std::unique_ptr<Link>& one) { return one.get() == link; }));
}

}  // namespace systole
