// What the connections of a server may cost it before a call is served, so that whoever connects
// without a credential can neither fill the server's memory nor take its time for long. gRPC reads
// all that a connection sends, and makes a call of 12 to 20 KiB of each stream that it opens,
// before anybody of ours hears of it.
//
//   what came:  bytes, streams  ---- earned by: calls served, bytes sent to it, time ---->  unearned
//
// A connection whose unearned part is too large is closed. All of them together have a bound, too:
// beyond it the peer that holds most loses the connection of its that holds most.
//
// Thread-compatible. No clock: times are handed in.
#ifndef SYSTOLE_SERVER_DOOR_ALLOWANCE_H_
#define SYSTOLE_SERVER_DOOR_ALLOWANCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace systole {

// The largest request, with its metadata: what a call that was served pays for.
inline constexpr int64_t kEarnedByCall = int64_t{80} << 10;
// The largest request, after a TLS handshake with certificates; or as many of 4 KiB as a client may
// have open at once. A connection's first requests may be as large as any.
inline constexpr int64_t kMaxUnearnedBytes = int64_t{256} << 10;
// Unearned. Twice what a client may have open at once, to which gRPC 1.51 holds only those who
// acknowledge that they have been told.
inline constexpr int64_t kMaxUnearnedStreams = 128;
// Of one list of headers, on the wire; twice what gRPC accepts of metadata.
inline constexpr int64_t kMaxHeaderBytes = int64_t{32} << 10;
// One byte of so many that were sent: windows are opened and pings answered.
inline constexpr int64_t kSentPerEarnedByte = 100;
// By each second: keepalive pings, and health's Watch.
inline constexpr int64_t kEarnedBytesPerSecond = 1 << 10;
inline constexpr int64_t kEarnedStreamsPerSecond = 1;
// What gRPC makes of it, at most: one byte of a frame, and a stream.
inline constexpr int64_t kByteCost = 4;
inline constexpr int64_t kStreamCost = int64_t{16} << 10;
// The same of a connection that has had no call yet.
inline constexpr int64_t kConnectionCost = int64_t{16} << 10;
// Of all connections.
inline constexpr int64_t kMaxUnearnedCost = int64_t{24} << 20;

// Of one connection since it came.
struct Traffic {
  int64_t bytes_received = 0;
  int64_t bytes_sent = 0;  // And acknowledged.
  int64_t calls_served = 0;
  int64_t streams_opened = 0;
  int64_t streams_waiting = 0;  // Of those, whose request has not come. Now.
  int64_t header_bytes = 0;     // Of the list of headers that came last.
};

// One connection's.
class Allowance {
 public:
  explicit Allowance(absl::Duration now) : at_(now) {}

  // REQUIRES: `total` and `now` do not go back.
  void Take(const Traffic& total, absl::Duration now);
  // Time has passed.
  void Pass(absl::Duration now) { Take(seen_, now); }

  int64_t unearned_bytes() const { return bytes_; }
  int64_t unearned_streams() const { return streams_; }
  int64_t cost() const {
    return (seen_.calls_served > 0 ? 0 : kConnectionCost) + kByteCost * bytes_ +
           kStreamCost * streams_;
  }
  // All that came is earned.
  bool IsClear() const { return bytes_ == 0 && streams_ == 0; }
  bool IsOver() const {
    return bytes_ > kMaxUnearnedBytes || streams_ > kMaxUnearnedStreams ||
           seen_.header_bytes > kMaxHeaderBytes;
  }

 private:
  Traffic seen_;
  absl::Duration at_;  // The seconds until here have earned theirs.
  int64_t bytes_ = 0;
  int64_t streams_ = 0;
};

// Those of all connections, each known by a number.
class Allowances {
 public:
  // REQUIRES: no connection `id` is known.
  void Add(int64_t id, std::string peer, absl::Duration now);
  void Remove(int64_t id);

  // What a connection has done so far.
  // REQUIRES: as Allowance::Take().
  // REQUIRES: `id` is known.
  const Allowance& Take(int64_t id, const Traffic& total, absl::Duration now);

  // Of all together.
  int64_t cost() const { return cost_; }
  // REQUIRES: `id` is known.
  int64_t CostOf(int64_t id) const { return connections_.find(id)->second.allowance.cost(); }
  // The connection to be closed if all together cost too much: of the peer that costs most, the
  // one that costs most. nullopt: they do not.
  std::optional<int64_t> FindExcess(absl::Duration now);

 private:
  struct Connection {
    std::string peer;
    Allowance allowance;
  };

  std::map<int64_t, Connection> connections_;
  int64_t cost_ = 0;  // The sum over `connections_`.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_ALLOWANCE_H_
