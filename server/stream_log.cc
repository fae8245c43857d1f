#include "server/stream_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/foreign_text.h"

namespace systole {

StreamLog::StreamLog(EventLog& events, int64_t stream, absl::string_view peer, const FeedPlan& plan,
                     const StepRange& range, MonotonicClock clock)
    : events_(events),
      name_(absl::StrFormat("stream %d of feed %016x", stream, plan.fingerprint())),
      clock_(std::move(clock)),
      begin_(clock_()) {
  events_.Add(LogCause::kStreamOpened, LogLevel::kInfo,
              absl::StrCat(name_, " opened: dataset '", plan.dataset().name(), "', cores ",
                           range.core_begin, " to ", range.core_end - 1, ", ", range.count,
                           " steps from ", range.first_step, " on",
                           range.stride == 1 ? "" : absl::StrCat(" in strides of ", range.stride),
                           ", for ", ForeignName(peer)));
}

void StreamLog::End(LogLevel level, absl::string_view why) {
  const absl::Duration passed = clock_() - begin_;
  // A stream that ends at once has no rate worth telling.
  const double seconds = std::max(absl::ToDoubleSeconds(passed), 1e-3);
  events_.Add(LogCause::kStreamEnded, level,
              absl::StrFormat("%s ended: %d steps in %.1f s, %.1f/s, %.1f MB/s: %s", name_, steps_,
                              absl::ToDoubleSeconds(passed), static_cast<double>(steps_) / seconds,
                              static_cast<double>(payload_bytes_) / seconds * 1e-6, why));
}

}  // namespace systole
