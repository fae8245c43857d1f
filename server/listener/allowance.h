// Limits what connections cost a server before a call is served, so that clients without a
// credential can neither fill the server's memory nor take its time for long. The costs arise
// before our code sees a call: gRPC reads all that a connection sends, and makes a call of 12 to 20
// KiB for each stream that the connection opens.
//
//   what came:  bytes, streams  ---- earned by: calls served, bytes sent to it, time --->  unearned
//
// A connection whose unearned part is too large is closed. The memory that all connections together
// cost has a bound, too. Connections that have just ended still count, because gRPC takes time to
// free their memory. Two rules enforce the bound:
//   - beyond the bound, a peer's connections are closed if the peer costs more than its part of the
//     bound;
//   - while the open connections alone cost more than the bound, the peer that costs most loses its
//     costliest connection.
//
// Thread-compatible. Has no clock: the caller passes the time.
#ifndef SYSTOLE_SERVER_LISTENER_ALLOWANCE_H_
#define SYSTOLE_SERVER_LISTENER_ALLOWANCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace systole {

// Bytes that a served call earns: the largest request with its metadata.
inline constexpr int64_t kEarnedByCall = int64_t{80} << 10;
// Most unearned bytes of a connection: the largest request after a TLS handshake with certificates,
// or as many requests of 4 KiB as a client may have open at once.
inline constexpr int64_t kMaxUnearnedBytes = int64_t{256} << 10;
// Most unearned streams of a connection: twice what a client may have open at once. (gRPC 1.51
// enforces its limit only on clients that acknowledge its SETTINGS.)
inline constexpr int64_t kMaxUnearnedStreams = 128;
// Most bytes of one list of headers, on the wire: twice the metadata that gRPC accepts.
inline constexpr int64_t kMaxHeaderBytes = int64_t{32} << 10;
// How many bytes must be sent to a connection for it to earn one byte. Its client needs the earned
// bytes to open windows and to answer pings.
inline constexpr int64_t kSentPerEarnedByte = 100;
// What a connection earns in each second, for keepalive pings and Watch of the health service.
inline constexpr int64_t kEarnedBytesPerSecond = 1 << 10;
inline constexpr int64_t kEarnedStreamsPerSecond = 1;
// The most memory that gRPC takes for one byte of a frame, and for a stream.
inline constexpr int64_t kByteCost = 4;
inline constexpr int64_t kStreamCost = int64_t{16} << 10;
// The most memory that a connection takes before its first call, in plain text and over TLS.
inline constexpr int64_t kPlainConnectionCost = int64_t{24} << 10;
inline constexpr int64_t kTlsConnectionCost = int64_t{72} << 10;
// The bound on the cost of all connections together, in bytes of memory.
inline constexpr int64_t kMaxUnearnedCost = int64_t{24} << 20;
// The least part of the bound that a peer has: a TLS handshake and a request.
inline constexpr int64_t kLeastPart = int64_t{128} << 10;
// A peer has a debt for the memory of its connections that have ended. The next three numbers are
// in bytes: what all peers together pay off in a millisecond, the largest debt of a peer, and the
// debt above which a peer's new connections wait.
inline constexpr int64_t kPaidPerMs = 8 << 10;
inline constexpr int64_t kMaxDebt = int64_t{32} << 20;
inline constexpr int64_t kWaitingDebt = int64_t{4} << 20;

// What one connection has done since it came.
struct Traffic {
  int64_t bytes_received = 0;
  int64_t bytes_sent = 0;  // To the peer, which has acknowledged them.
  int64_t calls_served = 0;
  int64_t streams_opened = 0;
  // The present state. `streams_waiting`: streams that have no answer yet, because the request has
  // not ended or the answer was not sent. `bytes_waiting`: the bytes of requests that have not
  // ended. `unread`: whether the peer has not yet read all that was sent to it.
  int64_t streams_waiting = 0;
  int64_t bytes_waiting = 0;
  bool unread = false;
  int64_t header_bytes = 0;  // The size of the list of headers that came last.
};

// The allowance of one connection.
class Allowance {
 public:
  // `connection_cost`: the memory that the connection itself takes, in bytes, until it has had a
  // call.
  Allowance(int64_t connection_cost, absl::Duration now)
      : connection_cost_(connection_cost), at_(now) {}

  // Counts what the connection has done so far. REQUIRES: neither `total` nor `now` decreases.
  void Take(const Traffic& total, absl::Duration now);
  // Counts the time that has passed.
  void Pass(absl::Duration now) { Take(seen_, now); }

  int64_t unearned_bytes() const { return bytes_; }
  int64_t unearned_streams() const { return streams_; }
  int64_t cost() const {
    return (seen_.calls_served > 0 ? 0 : connection_cost_) + kByteCost * bytes_ +
           kStreamCost * streams_;
  }
  // Whether the connection has earned all that it has sent.
  bool IsClear() const { return bytes_ == 0 && streams_ == 0; }
  bool IsOver() const {
    return bytes_ > kMaxUnearnedBytes || streams_ > kMaxUnearnedStreams ||
           seen_.header_bytes > kMaxHeaderBytes;
  }

 private:
  int64_t connection_cost_;
  Traffic seen_;
  absl::Duration at_;  // The time up to which seconds have been counted.
  int64_t bytes_ = 0;
  int64_t streams_ = 0;
};

// The allowances of all connections. Each connection has a number, `id`.
class Allowances {
 public:
  // REQUIRES: no connection `id` is known.
  void Add(int64_t id, std::string peer, int64_t connection_cost, absl::Duration now);
  // The connection has ended. Its cost becomes a debt of its peer, which is paid off with time.
  void Remove(int64_t id, absl::Duration now);

  // Allowance::Take() of the connection `id`. REQUIRES: what Allowance::Take() requires, and `id`
  // is known.
  const Allowance& Take(int64_t id, const Traffic& total, absl::Duration now);

  // The cost of all connections, also of those that have just ended.
  int64_t cost() const { return cost_ + debt_; }
  // Whether a connection may stay open: all connections together are within the bound, or this
  // connection costs little, or its peer costs no more than a peer's part of the bound. REQUIRES:
  // `id` is known.
  bool MayGoOn(int64_t id, absl::Duration now);
  // Whether a new connection of `peer` may come in. A peer with a large debt waits, but at most
  // four seconds if no other peer has a debt. While all connections together are over the bound,
  // only a few new connections come in.
  bool MayComeIn(const std::string& peer, absl::Duration now);
  // The connection to close: the costliest one of the peer that costs most. nullopt: the open
  // connections are within the bound.
  std::optional<int64_t> FindExcess(absl::Duration now);

 private:
  struct Connection {
    std::string peer;
    Allowance allowance;
  };
  struct Peer {
    int64_t cost = 0;  // The cost of its open connections.
    int64_t debt = 0;  // Left by connections that have ended.
  };

  // Pays off debts.
  void PassTime(absl::Duration now);
  // Sums the costs of the open connections anew, as they are at `now`.
  void Recount(absl::Duration now);
  // Adds to a peer's cost and debt.
  void Change(const std::string& peer, int64_t cost, int64_t debt = 0);

  std::map<int64_t, Connection> connections_;
  std::map<std::string, Peer> peers_;  // The peers that cost something.
  int64_t cost_ = 0;                   // The sum over `connections_`, and also over `peers_`.
  int64_t debt_ = 0;                   // The sum over `peers_`.
  absl::Duration paid_at_;
  // When a connection last came in while all connections together were over the bound.
  absl::Duration came_at_ = -absl::InfiniteDuration();
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_ALLOWANCE_H_
