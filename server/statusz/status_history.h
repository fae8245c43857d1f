// How a server's numbers changed in the last minutes. A sample is kept every few seconds, even if
// nobody looks, because people open the page only when something has already gone wrong.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_STATUSZ_STATUS_HISTORY_H_
#define SYSTOLE_SERVER_STATUSZ_STATUS_HISTORY_H_

#include <deque>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/metrics/metric_family.h"
#include "server/statusz/server_view.h"
#include "server/streams/stream_snapshot.h"

namespace systole {

inline constexpr absl::Duration kHistoryTime = absl::Minutes(10);
inline constexpr absl::Duration kSampleInterval = absl::Seconds(5);

class StatusHistory {
 public:
  // Whether it is time for Add().
  bool Wants(absl::Duration now) const ABSL_LOCKS_EXCLUDED(mu_);
  void Add(absl::Duration now, const std::vector<MetricFamily>& families,
           std::vector<StreamSnapshot> streams) ABSL_LOCKS_EXCLUDED(mu_);

  // Fills `history` and `streams_before` of `view`, whose `families` and `streams` were taken at
  // `now`.
  void Fill(absl::Duration now, ServerView& view) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable Mutex mu_;
  std::deque<HistorySample> samples_ ABSL_GUARDED_BY(mu_);
  // The streams at the last sample, and at the sample before it. The page's rates start at the
  // earlier of these samples, so they are over one to two intervals.
  std::vector<StreamSnapshot> streams_ ABSL_GUARDED_BY(mu_);
  std::vector<StreamSnapshot> streams_before_ ABSL_GUARDED_BY(mu_);
};

// The fraction of their time that trainers wait: the mean over all trainers that report it.
// Nullopt: no trainer reports it.
std::optional<double> MeanWait(const std::vector<MetricFamily>& families);

}  // namespace systole

#endif  // SYSTOLE_SERVER_STATUSZ_STATUS_HISTORY_H_
