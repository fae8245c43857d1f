// What the connections of a server may cost it before a call is served, so that whoever connects
// without a credential can neither fill the server's memory nor take its time for long. gRPC reads
// all that a connection sends, and makes a call of 12 to 20 KiB of each stream that it opens,
// before anybody of ours hears of it.
//
//   what came:  bytes, streams  ---- earned by: calls served, bytes sent to it, time ---->  unearned
//
// A connection whose unearned part is too large is closed. All of them together have a bound, too,
// in which what those cost counts that have just ended, because their reader takes time to free it:
//   - beyond it, a peer that costs more than its part of the bound gets no further;
//   - and while those that are open cost more, the peer that costs most loses the connection of its
//     that costs most.
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
// The same of a connection that has had no call yet, in plain text and over TLS.
inline constexpr int64_t kPlainConnectionCost = int64_t{24} << 10;
inline constexpr int64_t kTlsConnectionCost = int64_t{72} << 10;
// Of all connections.
inline constexpr int64_t kMaxUnearnedCost = int64_t{24} << 20;
// The least part of it that a peer has: a TLS handshake and a request.
inline constexpr int64_t kLeastPart = int64_t{128} << 10;
// What is paid off of all debts, the most that a peer may have, and more than which it waits for.
inline constexpr int64_t kPaidPerMs = 8 << 10;
inline constexpr int64_t kMaxDebt = int64_t{32} << 20;
inline constexpr int64_t kWaitingDebt = int64_t{4} << 20;

// Of one connection since it came.
struct Traffic {
  int64_t bytes_received = 0;
  int64_t bytes_sent = 0;  // And acknowledged.
  int64_t calls_served = 0;
  int64_t streams_opened = 0;
  int64_t streams_waiting = 0;  // Of those, not answered: the request has not ended, or the answer
                                // has not gone. Now.
  int64_t bytes_waiting = 0;    // Of requests that have not ended. Now.
  bool unread = false;          // What is sent to it waits for it to read. Now.
  int64_t header_bytes = 0;     // Of the list of headers that came last.
};

// One connection's.
class Allowance {
 public:
  // `connection_cost`: until it has a call.
  Allowance(int64_t connection_cost, absl::Duration now)
      : connection_cost_(connection_cost), at_(now) {}

  // REQUIRES: `total` and `now` do not go back.
  void Take(const Traffic& total, absl::Duration now);
  // Time has passed.
  void Pass(absl::Duration now) { Take(seen_, now); }

  int64_t unearned_bytes() const { return bytes_; }
  int64_t unearned_streams() const { return streams_; }
  int64_t cost() const {
    return (seen_.calls_served > 0 ? 0 : connection_cost_) + kByteCost * bytes_ +
           kStreamCost * streams_;
  }
  // All that came is earned.
  bool IsClear() const { return bytes_ == 0 && streams_ == 0; }
  bool IsOver() const {
    return bytes_ > kMaxUnearnedBytes || streams_ > kMaxUnearnedStreams ||
           seen_.header_bytes > kMaxHeaderBytes;
  }

 private:
  int64_t connection_cost_;
  Traffic seen_;
  absl::Duration at_;  // The seconds until here have earned theirs.
  int64_t bytes_ = 0;
  int64_t streams_ = 0;
};

// Those of all connections, each known by a number.
class Allowances {
 public:
  // REQUIRES: no connection `id` is known.
  void Add(int64_t id, std::string peer, int64_t connection_cost, absl::Duration now);
  // It has ended. What it cost is its peer's debt, which is paid off with time.
  void Remove(int64_t id, absl::Duration now);

  // What a connection has done so far.
  // REQUIRES: as Allowance::Take().
  // REQUIRES: `id` is known.
  const Allowance& Take(int64_t id, const Traffic& total, absl::Duration now);

  // Of all together, those that have ended among them.
  int64_t cost() const { return cost_ + debt_; }
  // Whether a connection may cost what it does: if all together do not cost too much, or it costs
  // little, or its peer has no more than its part. REQUIRES: `id` is known.
  bool MayGoOn(int64_t id, absl::Duration now);
  // Whether a new connection of `peer` may come. One whose debt is large waits: for four seconds at
  // most if nobody else owes. While all together cost too much, few come.
  bool MayComeIn(const std::string& peer, absl::Duration now);
  // The connection to be closed if those that are open cost too much: of the peer that costs most,
  // the one that costs most. nullopt: they do not.
  std::optional<int64_t> FindExcess(absl::Duration now);

 private:
  struct Connection {
    std::string peer;
    Allowance allowance;
  };
  struct Peer {
    int64_t cost = 0;  // Of its connections.
    int64_t debt = 0;  // Of those that have ended.
  };

  // Debts are paid off.
  void PassTime(absl::Duration now);
  // Of all that are open, and by peer, as time has left it.
  void Recount(absl::Duration now);
  // Adds to what a peer has.
  void Change(const std::string& peer, int64_t cost, int64_t debt = 0);

  std::map<int64_t, Connection> connections_;
  std::map<std::string, Peer> peers_;  // Those that cost something.
  int64_t cost_ = 0;                   // The sum over `connections_`, and so of `peers_`.
  int64_t debt_ = 0;                   // The sum over `peers_`.
  absl::Duration paid_at_;
  absl::Duration came_at_ = -absl::InfiniteDuration();  // The last one that cost too much.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_ALLOWANCE_H_
