#include "server/listener/meter.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"

namespace systole {
namespace {

// Notes how many bytes the peer has acknowledged, and whether sent bytes wait because the peer does
// not read.
void CountSent(int fd, Traffic& traffic) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  traffic.bytes_sent = std::max(traffic.bytes_sent, static_cast<int64_t>(info.tcpi_bytes_acked));
  traffic.unread = info.tcpi_notsent_bytes > 0;
}

}  // namespace

class Meter::Observer final : public ReadObserver {
 public:
  Observer(std::shared_ptr<Meter> meter, int64_t id) : meter_(std::move(meter)), id_(id) {}

  bool OnBytes(size_t bytes) override { return meter_->Take(id_, bytes, {}); }
  bool OnPlainText(absl::Span<const uint8_t> bytes) override { return meter_->Take(id_, 0, bytes); }

 private:
  const std::shared_ptr<Meter> meter_;
  const int64_t id_;
};

std::shared_ptr<ReadObserver> Meter::Add(int fd, const std::string& peer,
                                         std::shared_ptr<OpenCalls::Connection> calls) {
  MutexLock lock(mu_);
  const int64_t id = next_id_++;
  Connection& connection = connections_[id];
  connection.fd = fd;
  connection.peer = peer;
  connection.calls = std::move(calls);
  ids_[fd] = id;
  allowances_.Add(id, peer, connection_cost_, clock_());
  return std::make_shared<Observer>(shared_from_this(), id);
}

void Meter::Remove(int fd) {
  MutexLock lock(mu_);
  const auto id = ids_.find(fd);
  if (id != ids_.end()) Forget(id->second);
}

bool Meter::Take(int64_t id, size_t bytes, absl::Span<const uint8_t> frames) {
  MutexLock lock(mu_);
  const auto known = connections_.find(id);
  if (known == connections_.end()) return false;
  known->second.traffic.bytes_received += static_cast<int64_t>(bytes);
  known->second.frames.Take(frames);
  const absl::Duration now = clock_();
  if (Count(id, known->second, now).IsOver()) {
    Close(id, /*alone=*/true);
  } else if (!allowances_.MayGoOn(id, now)) {
    Close(id, /*alone=*/false);
  }
  while (const std::optional<int64_t> largest = allowances_.FindExcess(now)) {
    Close(*largest, /*alone=*/false);
  }
  return connections_.count(id) > 0;
}

const Allowance& Meter::Count(int64_t id, Connection& connection, absl::Duration now) {
  Traffic& traffic = connection.traffic;
  const OpenCalls::Connection::Counts calls = connection.calls->counts();
  traffic.calls_served = calls.served;
  traffic.streams_opened = connection.frames.streams_opened();
  traffic.streams_waiting = connection.frames.streams_waiting() + calls.unserved;
  traffic.bytes_waiting = connection.frames.bytes_waiting();
  traffic.header_bytes = connection.frames.header_bytes();
  CountSent(connection.fd, traffic);
  return allowances_.Take(id, traffic, now);
}

void Meter::Close(int64_t id, bool alone) {
  const Connection& connection = connections_.find(id)->second;
  const Traffic& traffic = connection.traffic;
  excess_.push_back(
      {.fd = connection.fd,
       .alone = alone,
       .what = absl::StrCat(traffic.bytes_received, " bytes and ", traffic.streams_opened,
                            " requests, of which ", traffic.calls_served, " were served")});
  Forget(id);
  tell_();
}

void Meter::Forget(int64_t id) {
  const auto connection = connections_.find(id);
  allowances_.Remove(id, clock_());
  ids_.erase(connection->second.fd);
  connections_.erase(connection);
}

std::vector<Meter::Excess> Meter::TakeExcess() {
  MutexLock lock(mu_);
  return std::exchange(excess_, {});
}

bool Meter::MayComeIn(const std::string& peer) {
  MutexLock lock(mu_);
  return allowances_.MayComeIn(peer, clock_());
}

}  // namespace systole
