#include "client/feed/receive_meter.h"

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

namespace systole {
namespace {

constexpr absl::Duration kLookPeriod = absl::Milliseconds(10);

// Headers and trailers of a call; a message's own; and what a server says in an idle connection,
// such as pings, in the time from look to look: 1.6 kB/s.
constexpr int64_t kCallBytes = 64 << 10;
constexpr int64_t kMessageBytes = 1 << 10;
constexpr int64_t kIdleBytes = 16;

// What gRPC says of a stream that it has ended because the quota is used up.
constexpr char kQuotaText[] = "Buffers full";

// What tells a socket from all others, also from one that has its number later; 0: `fd` is none.
uint64_t CookieOf(int fd) {
  uint64_t cookie = 0;
  socklen_t length = sizeof(cookie);
  return ::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

// What has come on a TCP connection so far.
std::optional<uint64_t> ReceivedOn(int fd) {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      length < offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)) {
    return std::nullopt;
  }
  return info.tcpi_bytes_received;
}

// Ends the connection of a socket, unless its owner has closed it meanwhile. The descriptor stays
// its owner's, which closes it when it notices; then the peer is told by a reset, and nothing of
// what it sends waits in the kernel.
void CutOff(int fd, uint64_t cookie) {
  const OwnedFd held(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!held.ok() || CookieOf(held.get()) != cookie) return;
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(held.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  ::shutdown(held.get(), SHUT_RDWR);
}

size_t QuotaOf(int64_t calls) {
  return static_cast<size_t>(kUnaskedBytes + calls * kStreamAheadBytes + kReadBufferBytes);
}

}  // namespace

ReceiveMeter::ReceiveMeter() : quota_("a server's") { quota_.Resize(QuotaOf(1)); }

void ReceiveMeter::AddSocket(int fd) {
  const uint64_t cookie = CookieOf(fd);
  if (cookie == 0 || !ReceivedOn(fd).has_value()) return;  // "unix:", or a kernel before 4.12.
  MutexLock lock(mu_);
  sockets_.push_back({.fd = fd, .cookie = cookie});
}

void ReceiveMeter::Took(int64_t bytes) {
  MutexLock lock(mu_);
  Forgive(bytes + bytes / 8 + kMessageBytes);
}

void ReceiveMeter::Forgive(int64_t bytes) {
  // Never below 0: what a server has not sent today it may not send tomorrow at once.
  untaken_bytes_ = std::max<int64_t>(0, untaken_bytes_ - bytes);
}

void ReceiveMeter::CallBegins(int64_t ahead_bytes) {
  MutexLock lock(mu_);
  asked_bytes_ += ahead_bytes + kCallBytes;
  if (++calls_ <= most_calls_) return;
  most_calls_ = calls_;
  quota_.Resize(QuotaOf(most_calls_));
}

void ReceiveMeter::CallEnds(int64_t ahead_bytes) {
  MutexLock lock(mu_);
  --calls_;
  asked_bytes_ -= ahead_bytes + kCallBytes;
  // What came and was not taken went with the call.
  Forgive(ahead_bytes + kCallBytes);
}

int64_t ReceiveMeter::overruns() const {
  MutexLock lock(mu_);
  return overruns_;
}

void ReceiveMeter::Look() {
  MutexLock lock(mu_);
  Forgive(kIdleBytes);
  for (auto socket = sockets_.begin(); socket != sockets_.end();) {
    const std::optional<uint64_t> received = ReceivedOn(socket->fd);
    if (!received.has_value() || CookieOf(socket->fd) != socket->cookie) {
      socket = sockets_.erase(socket);
      continue;
    }
    untaken_bytes_ += static_cast<int64_t>(*received - socket->received);
    socket->received = *received;
    ++socket;
  }
  if (sockets_.empty()) untaken_bytes_ = 0;  // It went with the connections.
  if (untaken_bytes_ <= asked_bytes_ + kUnaskedBytes) return;
  ++overruns_;
  for (const Socket& socket : sockets_) CutOff(socket.fd, socket.cookie);
  sockets_.clear();
  untaken_bytes_ = 0;
}

MeteredCall::MeteredCall(std::shared_ptr<ReceiveMeter> meter, int64_t ahead_bytes)
    : meter_(std::move(meter)), ahead_bytes_(ahead_bytes), overruns_(meter_->overruns()) {
  meter_->CallBegins(ahead_bytes_);
}

MeteredCall::~MeteredCall() { meter_->CallEnds(ahead_bytes_); }

absl::Status MeteredCall::Explain(absl::Status status) const {
  if (status.ok()) return status;
  const bool by_quota = absl::IsResourceExhausted(status) && status.message() == kQuotaText;
  if (!by_quota && meter_->overruns() == overruns_) return status;
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
