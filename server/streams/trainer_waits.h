// Keeps, for a while, each client's last report about how much its trainer waits.
//
// A report is only shown, and changes nothing that a server does. A client is identified by its
// peer and by a number that the client chose. So no peer can report for the trainer of another
// peer. The number of reports that are kept is bounded. If there are too many, the peer with the
// most reports loses its oldest report.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_STREAMS_TRAINER_WAITS_H_
#define SYSTOLE_SERVER_STREAMS_TRAINER_WAITS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/batch/feed_limit.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "proto/framing/trainer_report.h"

namespace systole {

// The most reports that are kept: of all peers together, and of one peer. A report takes about 200
// bytes.
inline constexpr size_t kMaxTrainers = 1024;
inline constexpr size_t kMaxTrainersOfPeer = 256;
// A report counts for this long. Clients send a report every 10 s, and one of them may be lost.
inline constexpr absl::Duration kReportCountsFor = absl::Seconds(30);
// A report that comes sooner than this after the client's last report is ignored.
inline constexpr absl::Duration kLeastReportInterval = absl::Seconds(1);

// Numbers about the trainers whose reports count now.
struct TrainerTotals {
  int64_t trainers = 0;
  // The mean and the largest of the trainers' wait ratios. 0 if there are no trainers.
  double mean_waits = 0;
  double max_waits = 0;
  std::array<int64_t, kNumFeedLimits> by_limit = {};

  int64_t limited_by(FeedLimit limit) const { return by_limit[static_cast<size_t>(limit)]; }
};

class TrainerWaits {
 public:
  explicit TrainerWaits(MonotonicClock clock) : clock_(std::move(clock)) {}

  // Keeps the report of the peer's client with the number `client`. Ignores a report without
  // `waits`, a report that comes too soon (kLeastReportInterval), and a client with the number 0.
  void Add(const std::string& peer, uint64_t client, const TrainerReport& report)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The client's last report, if it still counts. Otherwise a report without `waits`.
  TrainerReport Of(const std::string& peer, uint64_t client) const ABSL_LOCKS_EXCLUDED(mu_);
  TrainerTotals totals() const ABSL_LOCKS_EXCLUDED(mu_);

  // Forgets reports that do not count any more. Call it about once a second.
  void Tick() ABSL_LOCKS_EXCLUDED(mu_);

  // How many reports are kept.
  size_t size() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    TrainerReport report;
    absl::Duration at;
  };
  using Peer = std::map<uint64_t, Entry>;

  bool Counts(const Entry& entry, absl::Duration now) const {
    return now - entry.at < kReportCountsFor;
  }
  // The report that came first. REQUIRES: there is a report.
  static Peer::const_iterator OldestOf(const Peer& entries);
  // Makes room for a report of `peer`.
  void MakeRoom(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetOldest(std::map<std::string, Peer>::iterator peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const MonotonicClock clock_;
  mutable Mutex mu_;
  std::map<std::string, Peer> peers_ ABSL_GUARDED_BY(mu_);  // No peer's map is empty.
  size_t size_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_TRAINER_WAITS_H_
