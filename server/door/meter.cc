#include "server/door/meter.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace systole {
namespace {

// Between looks at a connection that has earned all that it sent, however much comes.
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(10);
// The same where something is unearned; twice as long after each look that found nothing new, and
// after so many of those only what comes is waited for. gRPC makes 75 streams in the first, and has
// made streams of all that it has read long before the last, a second later.
constexpr absl::Duration kFirstLook = absl::Milliseconds(1);
constexpr int kMaxQuietLooks = 10;
// A connection is new until it has had a call, or has been quiet for three looks, but not for
// longer than this.
constexpr int kQuietLooksOfNew = 3;
constexpr absl::Duration kNewFor = absl::Milliseconds(20);
// How many are new at a time, of a peer and in all.
constexpr int kMaxNewOfPeer = 1;
constexpr size_t kMaxNew = 8;
// A peer whose connections had earned so much too little when they ended waits until less is left.
constexpr int64_t kMaxPenalty = int64_t{4} << 20;
constexpr int64_t kPenaltyPerMs = 8 << 10;
// The most that one connection adds, and that there is of a peer: four seconds.
constexpr int64_t kMaxPenaltyOfOne = int64_t{16} << 20;
constexpr int64_t kMaxPenaltyOfPeer = int64_t{32} << 20;
// What a byte may have cost of a connection that had no call and ended before it was looked at.
constexpr int64_t kUnknownByteCost = 1 << 10;
// What the kernel takes of a connection that has had no call (ListenOnTcp) is little; from its
// first call on it is this.
constexpr int kReceiveBytes = 64 << 10;
// A connection is asked for its streams when it holds more than this, or has sent more since it was
// asked, and else once a second.
constexpr int64_t kFewUnearnedBytes = 512;
constexpr int64_t kFewNewBytes = 2 << 10;
constexpr absl::Duration kBetweenStreamLooks = absl::Seconds(1);

bool Tell(int epoll, int operation, int fd, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

// What gRPC has read and what the peer has acknowledged. What the kernel holds is not in memory of
// ours.
void CountBytes(int fd, Traffic& traffic) {
  int unread = 0;
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (::ioctl(fd, SIOCINQ, &unread) != 0 ||
      ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return;
  }
  // The two are not of one moment.
  traffic.bytes_received =
      std::max(traffic.bytes_received, static_cast<int64_t>(info.tcpi_bytes_received) - unread);
  traffic.bytes_sent = std::max(traffic.bytes_sent, static_cast<int64_t>(info.tcpi_bytes_acked));
}

}  // namespace

bool Meter::Add(int fd, const std::string& peer, const std::string& address,
                std::shared_ptr<OpenCalls::Connection> calls) {
  if (!Tell(epoll_, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT)) return false;
  Connection connection;
  connection.peer = peer;
  connection.address = address;
  connection.calls = std::move(calls);
  const absl::Duration now = looks_clock_();
  new_.emplace(fd, now + kNewFor);
  ++new_of_[peer];
  allowances_.Add(fd, peer, clock_());
  if (!address.empty()) streams_.Expect(address);
  Schedule(fd, connections_.emplace(fd, std::move(connection)).first->second, now + kFirstLook);
  return true;
}

void Meter::Remove(int fd) {
  const auto connection = connections_.find(fd);
  if (connection == connections_.end()) return;
  looks_.erase({connection->second.next_look, fd});
  Settle(fd);
  CountBytes(fd, connection->second.traffic);
  Punish(connection->second, allowances_.CostOf(fd));
  streams_.Forget(connection->second.address);
  connections_.erase(connection);
  allowances_.Remove(fd);
}

std::vector<Meter::Excess> Meter::Wake(int fd) {
  std::vector<Excess> excess;
  const auto connection = connections_.find(fd);
  if (connection != connections_.end()) {
    connection->second.quiet_looks = 0;
    Look(fd, connection->second, /*armed=*/false, excess);
  }
  return excess;
}

std::vector<Meter::Excess> Meter::LookAtDue() {
  std::vector<Excess> excess;
  const absl::Duration now = looks_clock_();
  PassTime(now);
  while (!looks_.empty() && looks_.begin()->first <= now) {
    const int fd = looks_.begin()->second;
    // What comes from now on wakes at once.
    Tell(epoll_, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT);
    Look(fd, connections_.find(fd)->second, /*armed=*/true, excess);
  }
  return excess;
}

int Meter::WaitMs() const {
  if (looks_.empty()) return -1;
  const absl::Duration wait = looks_.begin()->first - looks_clock_();
  return static_cast<int>(
      std::max<int64_t>(0, absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)))));
}

void Meter::Look(int fd, Connection& connection, bool armed, std::vector<Excess>& excess) {
  const absl::Duration now = clock_();
  const absl::Duration looked_at = looks_clock_();
  const Traffic before = connection.traffic;
  Traffic& traffic = connection.traffic;
  CountBytes(fd, traffic);
  OpenCalls::Connection::Counts calls;
  if (connection.calls != nullptr) calls = connection.calls->counts();
  if (traffic.calls_served == 0 && calls.served > 0) {
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kReceiveBytes, sizeof(kReceiveBytes));
    ::setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &kReceiveBytes, sizeof(kReceiveBytes));
  }
  traffic.calls_served = calls.served;
  if (allowances_.Take(fd, traffic, now).unearned_bytes() > kFewUnearnedBytes ||
      traffic.bytes_received > connection.bytes_at_streams + kFewNewBytes ||
      looked_at >= connection.streams_looked_at + kBetweenStreamLooks) {
    connection.streams_looked_at = looked_at;
    connection.bytes_at_streams = traffic.bytes_received;
    const StreamCounts streams = streams_.Of(connection.address, looked_at);
    traffic.streams_opened = std::max(traffic.streams_opened, streams.opened);
    traffic.streams_open = streams.open;
    traffic.streams_waiting = std::max<int64_t>(0, streams.open - calls.open);
  }
  const Allowance& allowance = allowances_.Take(fd, traffic, now);
  if (allowance.IsOver()) {
    excess.push_back(Close(fd, /*alone=*/true));
  } else {
    const bool changed = traffic.bytes_received != before.bytes_received ||
                         traffic.streams_opened != before.streams_opened;
    connection.quiet_looks = changed ? 0 : connection.quiet_looks + 1;
    if (calls.served > 0 || connection.quiet_looks >= kQuietLooksOfNew) Settle(fd);
    const bool settled =
        (allowance.IsClear() && new_.count(fd) == 0) || connection.quiet_looks >= kMaxQuietLooks;
    absl::Duration wait = settled ? kBetweenLooks : kFirstLook * (1 << connection.quiet_looks);
    if (settled && armed) wait = absl::InfiniteDuration();
    Schedule(fd, connection, looked_at + wait);
  }
  while (const std::optional<int> largest = allowances_.FindExcess(now)) {
    excess.push_back(Close(*largest, /*alone=*/false));
  }
}

void Meter::Schedule(int fd, Connection& connection, absl::Duration at) {
  looks_.erase({connection.next_look, fd});
  connection.next_look = at;
  if (at != absl::InfiniteDuration()) looks_.emplace(at, fd);
}

bool Meter::MayComeIn(const std::string& peer) const {
  const auto new_ones = new_of_.find(peer);
  const auto penalty = penalties_.find(peer);
  return new_.size() < kMaxNew && (new_ones == new_of_.end() || new_ones->second < kMaxNewOfPeer) &&
         (penalty == penalties_.end() || penalty->second < kMaxPenalty);
}

void Meter::Settle(int fd) {
  if (new_.erase(fd) == 0) return;
  const auto new_ones = new_of_.find(connections_.find(fd)->second.peer);
  if (--new_ones->second == 0) new_of_.erase(new_ones);
}

void Meter::Punish(const Connection& connection, int64_t cost) {
  const Traffic& traffic = connection.traffic;
  if (traffic.calls_served == 0) cost = std::max(cost, kUnknownByteCost * traffic.bytes_received);
  int64_t& penalty = penalties_[connection.peer];
  penalty = std::min(penalty + std::min(cost, kMaxPenaltyOfOne), kMaxPenaltyOfPeer);
}

void Meter::PassTime(absl::Duration now) {
  for (auto one = new_.begin(); one != new_.end();) {
    const auto [fd, until] = *one++;
    if (until <= now) Settle(fd);
  }
  const int64_t milliseconds = (now - penalties_at_) / absl::Milliseconds(1);
  penalties_at_ += absl::Milliseconds(milliseconds);
  for (auto one = penalties_.begin(); one != penalties_.end();) {
    one->second -= milliseconds * kPenaltyPerMs;
    one = one->second <= 0 ? penalties_.erase(one) : std::next(one);
  }
}

Meter::Excess Meter::Close(int fd, bool alone) {
  const Connection& connection = connections_.find(fd)->second;
  const Traffic& traffic = connection.traffic;
  Excess excess = {
      .fd = fd,
      .alone = alone,
      .what = absl::StrCat(traffic.bytes_received, " bytes and ", traffic.streams_opened,
                           " requests, of which ", traffic.calls_served, " were served")};
  Remove(fd);
  // Its end alone is told from now on: that is always told.
  Tell(epoll_, EPOLL_CTL_MOD, fd, EPOLLET);
  return excess;
}

}  // namespace systole
