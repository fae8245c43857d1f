#include "server/streams/stream_log.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/text/foreign_text.h"

namespace systole {

std::string ShownClient(const LogFields& about) {
  return ForeignName(about.identity.empty()
                         ? about.client
                         : absl::StrCat("identity '", about.identity, "' at ", about.client));
}

StreamLog::StreamLog(EventLog& events, int64_t stream, LogFields about, const FeedPlan& plan,
                     const StepRange& range, MonotonicClock clock)
    : events_(events),
      name_(absl::StrFormat("stream %d of feed %016x", stream, plan.fingerprint())),
      about_(std::move(about)),
      stride_(range.stride),
      clock_(std::move(clock)),
      begin_(clock_()) {
  about_.feed = plan.fingerprint();
  about_.dataset = plan.dataset().name();
  about_.step = range.first_step;
  events_.Add(LogCause::kStreamOpened, LogLevel::kInfo,
              absl::StrCat(name_, " opened: dataset '", plan.dataset().name(), "', cores ",
                           range.core_begin, " to ", range.core_end - 1, ", ", range.count,
                           " steps from ", range.first_step, " on",
                           range.stride == 1 ? "" : absl::StrCat(" in strides of ", range.stride),
                           ", for ", ShownClient(about_),
                           about_.trace.empty() ? "" : absl::StrCat(", trace ", about_.trace)),
              about_);
}

void StreamLog::CountStep() {
  ++steps_;
  // The step after the last one may be too large for an int64_t.
  *about_.step += std::min(stride_, std::numeric_limits<int64_t>::max() - *about_.step);
}

void StreamLog::End(LogLevel level, absl::string_view why) {
  const absl::Duration passed = clock_() - begin_;
  // A stream that ends at once has no meaningful rate.
  const double seconds = std::max(absl::ToDoubleSeconds(passed), 1e-3);
  events_.Add(LogCause::kStreamEnded, level,
              absl::StrFormat("%s ended: %d steps in %.1f s, %.1f/s, %.1f MB/s: %s", name_, steps_,
                              absl::ToDoubleSeconds(passed), static_cast<double>(steps_) / seconds,
                              static_cast<double>(payload_bytes_) / seconds * 1e-6, why),
              about_);
}

}  // namespace systole
