// A few pictures of what streams send, for people who look at the server's page. While nobody
// looks, the cost is one check of a flag for each slice. While somebody looks, a sheet is made
// every few seconds: small pictures of the examples of one slice. The pictures are made from the
// tensors that are sent, so nothing is read or decoded for them.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_STATUSZ_SERVED_PICTURES_H_
#define SYSTOLE_SERVER_STATUSZ_SERVED_PICTURES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/engine/core_slice.h"
#include "core/plan/feed_plan.h"
#include "server/statusz/server_view.h"

namespace systole {

// At least this time passes between two sheets, so that sheets cost a server little.
inline constexpr absl::Duration kSheetInterval = absl::Seconds(5);
// A sheet is forgotten after this time, because its stream may have ended long ago.
inline constexpr absl::Duration kSheetLife = absl::Minutes(1);
inline constexpr int kMaxSheetPictures = 8;
inline constexpr int64_t kMaxSheetPictureEdge = 96;
// A sheet is made from at most this many pixels of examples. To make it takes some milliseconds of
// the thread that sends the slice.
inline constexpr int64_t kMaxSheetPixels = int64_t{1} << 20;

class ServedPictures {
 public:
  explicit ServedPictures(MonotonicClock clock) : clock_(std::move(clock)) {}

  // The last sheet; null if there is none. The next slice that a stream sends becomes a new sheet
  // if there is no sheet, or if the last sheet is at least kSheetInterval old.
  std::shared_ptr<const PictureSheet> Look() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns a function, which a stream of `plan` calls with each slice that it sends. This object
  // must outlive the stream. `datasets` are those that the stream reads.
  std::function<void(const CoreSlice&)> TapOf(std::shared_ptr<const FeedPlan> plan,
                                              std::vector<std::string> datasets);

 private:
  void Keep(PictureSheet sheet) ABSL_LOCKS_EXCLUDED(mu_);

  const MonotonicClock clock_;
  std::atomic<bool> is_wanted_ = false;
  Mutex mu_;
  std::shared_ptr<const PictureSheet> sheet_ ABSL_GUARDED_BY(mu_);
  absl::Duration made_at_ ABSL_GUARDED_BY(mu_);
  int64_t sheets_ ABSL_GUARDED_BY(mu_) = 0;
};

// The sheet of a slice of `plan`, without `number` and `datasets`.
PictureSheet SheetOf(const FeedPlan& plan, const CoreSlice& slice);

}  // namespace systole

#endif  // SYSTOLE_SERVER_STATUSZ_SERVED_PICTURES_H_
