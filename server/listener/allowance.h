// Limits what connections cost a server before a call is served. Without these limits, clients
// without a credential could fill the server's memory and take much of its processor time: before
// our code sees a call, gRPC reads all that a connection sends, and makes a call of 12 to 20 KiB
// for each stream that the connection opens.
//
// A connection earns bytes and streams by its served calls, by the bytes that the server sends to
// it, and with time. What it has sent beyond what it has earned is unearned. A connection with too
// many unearned bytes or streams is closed.
//
// A connection's cost is an estimate of the memory that it takes: for its unearned bytes and
// streams, and before its first served call also for the connection itself. The cost of all
// connections together has a bound. Connections that have just ended still count, because gRPC
// takes time to free their memory. Two rules enforce the bound:
//   - While the bound is exceeded, a connection that sends something is closed if its peer costs
//     more than its part of the bound (the bound divided by the number of peers). MayGoOn() has an
//     exception for cheap connections.
//   - While the open connections alone exceed the bound, the peer that costs most loses its
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

// The bytes that a served call earns: enough for the largest request with its metadata.
inline constexpr int64_t kEarnedByCall = int64_t{80} << 10;
// Most unearned bytes of a connection: enough for a TLS handshake with certificates and the largest
// request, or for as many requests of 4 KiB as a client may have open at once.
inline constexpr int64_t kMaxUnearnedBytes = int64_t{256} << 10;
// Most unearned streams of a connection: twice what a client may have open at once. (gRPC 1.51
// enforces its limit only on clients that acknowledge its SETTINGS.)
inline constexpr int64_t kMaxUnearnedStreams = 128;
// Most encoded bytes of one list of headers: twice the metadata that gRPC accepts.
inline constexpr int64_t kMaxHeaderBytes = int64_t{32} << 10;
// For this many bytes that the server sends to a connection, the connection earns one byte. Its
// client needs the earned bytes to enlarge HTTP/2 windows and to answer pings.
inline constexpr int64_t kSentPerEarnedByte = 100;
// What a connection earns in each second: enough for keepalive pings and for Watch of the health
// service.
inline constexpr int64_t kEarnedBytesPerSecond = 1 << 10;
inline constexpr int64_t kEarnedStreamsPerSecond = 1;
// The most memory that gRPC takes for one byte of a frame and for one stream, in bytes.
inline constexpr int64_t kByteCost = 4;
inline constexpr int64_t kStreamCost = int64_t{16} << 10;
// The most memory that a connection takes before its first call, without and with TLS, in bytes.
inline constexpr int64_t kPlainConnectionCost = int64_t{24} << 10;
inline constexpr int64_t kTlsConnectionCost = int64_t{72} << 10;
// The bound on the cost of all connections together, in bytes of memory.
inline constexpr int64_t kMaxUnearnedCost = int64_t{24} << 20;
// Each peer's part of the bound is at least this: enough for a TLS handshake and a request.
inline constexpr int64_t kLeastPart = int64_t{128} << 10;
// When a connection ends, its cost becomes a debt of its peer. The debt falls as time passes. The
// next three numbers are in bytes.
// How much the debts of all peers together fall in a millisecond.
inline constexpr int64_t kPaidPerMs = 8 << 10;
// The largest debt of a peer.
inline constexpr int64_t kMaxDebt = int64_t{32} << 20;
// New connections of a peer wait while its debt is larger than this.
inline constexpr int64_t kWaitingDebt = int64_t{4} << 20;

// What one connection has done since it came, and its present state.
struct Traffic {
  int64_t bytes_received = 0;
  int64_t bytes_sent = 0;  // Sent to the peer and acknowledged by it.
  int64_t calls_served = 0;
  int64_t streams_opened = 0;
  // Streams without an answer now: the request has not ended, or the answer was not sent.
  int64_t streams_waiting = 0;
  int64_t bytes_waiting = 0;  // The bytes of requests that have not ended now.
  bool unread = false;        // Whether bytes to the peer wait now, because it does not read.
  int64_t header_bytes = 0;   // The encoded size of the list of headers that came last.
};

// The allowance of one connection.
class Allowance {
 public:
  // `connection_cost`: the memory, in bytes, that the connection itself takes. It counts only until
  // the first call of the connection is served.
  Allowance(int64_t connection_cost, absl::Duration now)
      : connection_cost_(connection_cost), at_(now) {}

  // Counts what the connection has sent and earned until `now`. `total` is its traffic so far.
  // REQUIRES: `now` and the counts of `total` (its first four members) never decrease.
  void Take(const Traffic& total, absl::Duration now);
  // Counts what the connection has earned by time until `now`.
  void Pass(absl::Duration now) { Take(seen_, now); }

  int64_t unearned_bytes() const { return bytes_; }
  int64_t unearned_streams() const { return streams_; }
  int64_t cost() const {
    return (seen_.calls_served > 0 ? 0 : connection_cost_) + kByteCost * bytes_ +
           kStreamCost * streams_;
  }
  // Whether nothing that the connection has sent is unearned.
  bool IsClear() const { return bytes_ == 0 && streams_ == 0; }
  // Whether the connection must be closed, because it has sent too much.
  bool IsOver() const {
    return bytes_ > kMaxUnearnedBytes || streams_ > kMaxUnearnedStreams ||
           seen_.header_bytes > kMaxHeaderBytes;
  }

 private:
  int64_t connection_cost_;
  Traffic seen_;
  absl::Duration at_;  // What the connection earns by time is counted up to this time.
  int64_t bytes_ = 0;
  int64_t streams_ = 0;
};

// The allowances of all connections. Each connection has a number, `id`.
class Allowances {
 public:
  // REQUIRES: `id` is not in use.
  void Add(int64_t id, std::string peer, int64_t connection_cost, absl::Duration now);
  // Call it when the connection has ended. Its cost becomes a debt of its peer. Does nothing if
  // there is no connection `id`.
  void Remove(int64_t id, absl::Duration now);

  // Calls Allowance::Take() of the connection `id`, which must exist.
  const Allowance& Take(int64_t id, const Traffic& total, absl::Duration now);

  // The cost of all connections, including the debts of those that have ended.
  int64_t cost() const { return cost_ + debt_; }
  // Whether the connection `id`, which must exist, may stay open. Any of these is enough:
  //   - all connections together are within the bound;
  //   - this connection costs little;
  //   - the connections and debts of its peer cost no more than the peer's part of the bound.
  bool MayGoOn(int64_t id, absl::Duration now);
  // Whether gRPC may get a new connection of `peer`. False while the peer has a large debt, which
  // takes at most four seconds if no other peer has a debt. While all connections together exceed
  // the bound, true at most once in 100 ms.
  bool MayComeIn(const std::string& peer, absl::Duration now);
  // The connection to close, if the open connections exceed the bound: the costliest connection of
  // the peer that costs most. Nullopt: they do not exceed it.
  std::optional<int64_t> FindExcess(absl::Duration now);

 private:
  struct Connection {
    std::string peer;
    Allowance allowance;
  };
  struct Peer {
    int64_t cost = 0;  // The cost of its open connections.
    int64_t debt = 0;  // The debt for its connections that have ended.
  };

  // Lowers the debts by what has been paid off until `now`.
  void PassTime(absl::Duration now);
  // Brings the costs of all open connections up to date.
  void Recount(absl::Duration now);
  // Adds to a peer's cost and debt.
  void Change(const std::string& peer, int64_t cost, int64_t debt = 0);

  std::map<int64_t, Connection> connections_;
  std::map<std::string, Peer> peers_;  // Only peers that have a cost or a debt.
  int64_t cost_ = 0;                   // The sum over `connections_`, and also over `peers_`.
  int64_t debt_ = 0;                   // The sum over `peers_`.
  absl::Duration paid_at_;             // Debts have been lowered for the time up to this one.
  // When a connection last came in while all connections together were over the bound.
  absl::Duration came_at_ = -absl::InfiniteDuration();
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_ALLOWANCE_H_
