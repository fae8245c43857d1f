#include "client/servers/receive_meter.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/descriptor/owned_fd.h"
#include "core/descriptor/socket_cookie.h"

namespace systole {
namespace {

constexpr absl::Duration kLookPeriod = absl::Milliseconds(10);

// What a server may send besides the messages' own bytes.
constexpr int64_t kCallBytes = 64 << 10;          // The headers and trailers of a call.
constexpr int64_t kMessageBytes = 1 << 10;        // The framing of a message.
constexpr int64_t kIdleBytesPerSecond = 2 << 10;  // On an idle connection, for pings and the like.

// The bytes that have come on a TCP connection so far.
std::optional<uint64_t> ReceivedOn(int fd) {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      length < offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)) {
    return std::nullopt;
  }
  return info.tcpi_bytes_received;
}

// Ends the connection of a socket of gRPC, unless gRPC has closed the socket meanwhile. gRPC
// notices the end of the connection and closes its descriptor. Because of SO_LINGER, this close
// sends the peer a reset and drops the peer's data that wait in the kernel.
void CutOff(int fd, uint64_t cookie) {
  const OwnedFd held(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!held.ok() || SocketCookie(held.get()) != cookie) return;
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(held.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::shutdown(held.get(), SHUT_RDWR);
}

}  // namespace

ReceiveMeter::ReceiveMeter(MonotonicClock clock)
    : clock_(std::move(clock)), idle_until_(clock_()) {}

void ReceiveMeter::AddSocket(int fd) {
  const uint64_t cookie = SocketCookie(fd);
  if (cookie == 0 || !ReceivedOn(fd).has_value()) return;  // "unix:", or a kernel before 4.12.
  MutexLock lock(mu_);
  sockets_.push_back({.fd = fd, .cookie = cookie});
}

uint64_t ReceiveMeter::CallBegins(int64_t ahead_bytes) {
  MutexLock lock(mu_);
  asked_bytes_ += ahead_bytes + kCallBytes;
  most_open_ = std::max(most_open_, ++open_);
  return begun_++;
}

void ReceiveMeter::CallTook(uint64_t number, int64_t bytes) {
  MutexLock lock(mu_);
  accounted_bytes_ += bytes + bytes / 8 + kMessageBytes;
  // The calls removed here were given up before this call began. A connection keeps the order of
  // its messages. So the server read the end of those calls before it read the request of this
  // call, and all that it sent for those calls came before this answer.
  while (!given_up_.empty() && given_up_.front().at <= number) {
    Settle(given_up_.front().ahead_bytes);
    given_up_.pop_front();
  }
}

void ReceiveMeter::CallEnds(int64_t ahead_bytes, bool given_up) {
  MutexLock lock(mu_);
  --open_;
  if (!given_up) return Settle(ahead_bytes);
  given_up_.push_back({.at = begun_, .ahead_bytes = ahead_bytes});
  // Each call on the list allows the server to send more bytes. A server that never answers would
  // get more and more calls onto the list, so the list has a limit. With an honest server the list
  // never exceeds the limit, even if one direction of the connection is blocked.
  if (given_up_.size() > 2 * most_open_) {
    Settle(given_up_.front().ahead_bytes);
    given_up_.pop_front();
  }
}

void ReceiveMeter::Settle(int64_t ahead_bytes) {
  asked_bytes_ -= ahead_bytes + kCallBytes;
  accounted_bytes_ += ahead_bytes + kCallBytes;
}

int64_t ReceiveMeter::overruns() const {
  MutexLock lock(mu_);
  return overruns_;
}

void ReceiveMeter::Look() {
  MutexLock lock(mu_);
  // The sockets' counts of bytes received are read after the time. While the lock is held, the sum
  // of the bytes that the client took cannot grow. So the counts contain all bytes of this sum.
  const int64_t idle_seconds = (clock_() - idle_until_) / absl::Seconds(1);
  idle_until_ += absl::Seconds(idle_seconds);
  int64_t received_bytes = 0;
  for (auto socket = sockets_.begin(); socket != sockets_.end();) {
    const std::optional<uint64_t> received = ReceivedOn(socket->fd);
    if (!received.has_value() || SocketCookie(socket->fd) != socket->cookie) {
      socket = sockets_.erase(socket);
      continue;
    }
    received_bytes += static_cast<int64_t>(*received - socket->received);
    socket->received = *received;
    ++socket;
  }
  // Never below 0. Otherwise a server could save up its allowance, and then send too much at once.
  unaccounted_bytes_ = std::max<int64_t>(0, unaccounted_bytes_ + received_bytes - accounted_bytes_ -
                                                idle_seconds * kIdleBytesPerSecond);
  accounted_bytes_ = 0;
  if (sockets_.empty()) {  // No more bytes can come.
    for (; !given_up_.empty(); given_up_.pop_front()) Settle(given_up_.front().ahead_bytes);
    accounted_bytes_ = 0;
    unaccounted_bytes_ = 0;
  }
  if (unaccounted_bytes_ <= asked_bytes_ + kUnaskedBytes) return;
  ++overruns_;
  for (const Socket& socket : sockets_) CutOff(socket.fd, socket.cookie);
  sockets_.clear();
  unaccounted_bytes_ = 0;
}

MeteredCall::MeteredCall(std::shared_ptr<ReceiveMeter> meter, int64_t ahead_bytes)
    : meter_(std::move(meter)),
      ahead_bytes_(ahead_bytes),
      overruns_(meter_->overruns()),
      number_(meter_->CallBegins(ahead_bytes_)) {}

MeteredCall::~MeteredCall() {
  if (!ended_) meter_->CallEnds(ahead_bytes_, /*given_up=*/true);
}

absl::Status MeteredCall::End(absl::Status status) {
  ended_ = true;
  meter_->CallEnds(ahead_bytes_, absl::IsCancelled(status) || absl::IsDeadlineExceeded(status));
  if (status.ok() || meter_->overruns() == overruns_) return status;
  return absl::InternalError(
      absl::StrCat("the server sent ", kUnaskedBytes >> 20,
                   " MiB more than was asked for, and the connection was closed"));
}

ReceiveWatch::ReceiveWatch() : thread_(1) {
  thread_.Submit([this] { Run(); });
}

ReceiveWatch::~ReceiveWatch() {
  MutexLock lock(mu_);
  stopping_ = true;
  wakes_.SignalAll();
}

void ReceiveWatch::Add(const std::shared_ptr<ReceiveMeter>& meter) {
  MutexLock lock(mu_);
  meters_.push_back(meter);
}

void ReceiveWatch::Run() {
  while (true) {
    std::vector<std::shared_ptr<ReceiveMeter>> meters;
    {
      MutexLock lock(mu_);
      wakes_.WaitFor(mu_, kLookPeriod);
      if (stopping_) return;
      std::erase_if(meters_, [](const auto& meter) { return meter.expired(); });
      for (const auto& meter : meters_) {
        if (auto used = meter.lock(); used != nullptr) meters.push_back(std::move(used));
      }
    }
    for (const auto& meter : meters) meter->Look();
  }
}

}  // namespace systole
