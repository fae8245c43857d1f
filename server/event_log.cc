#include "server/event_log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/status/foreign_text.h"

namespace systole {
namespace {

// By cause: of what there were more.
constexpr absl::string_view kNames[] = {
    "lines of the program",
    "remarks on indexes",
    "damaged records",
    "streams opened",
    "streams ended",
    "requests refused",
    "reasons not to share memory",
    "lines of gRPC",
};
static_assert(std::size(kNames) == kNumLogCauses);

}  // namespace

void EventLog::Add(LogCause cause, LogLevel level, absl::string_view text) {
  if (sink_ == nullptr || level < options_.least) return;
  std::vector<Line> lines;
  if (cause != LogCause::kProgram) {
    const absl::Duration now = options_.clock();
    MutexLock lock(mu_);
    SettleLocked(cause, now, lines);
    Interval& interval = intervals_[static_cast<size_t>(cause)];
    if (interval.lines == 0) interval.end = now + options_.interval;
    if (interval.lines >= options_.max_lines) {
      ++interval.left_out;
      interval.highest = std::max(interval.highest, level);
      return;
    }
    ++interval.lines;
  }
  lines.push_back({.level = level, .text = ForeignText(text)});
  Write(lines);
}

void EventLog::Settle(absl::Duration now) {
  std::vector<Line> lines;
  {
    MutexLock lock(mu_);
    for (size_t cause = 0; cause < kNumLogCauses; ++cause) {
      SettleLocked(static_cast<LogCause>(cause), now, lines);
    }
  }
  Write(lines);
}

void EventLog::SettleLocked(LogCause cause, absl::Duration now, std::vector<Line>& lines) {
  Interval& interval = intervals_[static_cast<size_t>(cause)];
  if (now < interval.end) return;
  if (interval.left_out > 0) {
    lines.push_back(
        {.level = interval.highest,
         .text = absl::StrCat(interval.left_out, " more ", kNames[static_cast<size_t>(cause)],
                              " within ", absl::FormatDuration(options_.interval))});
  }
  interval = Interval();
}

void EventLog::Write(const std::vector<Line>& lines) const {
  if (sink_ == nullptr) return;
  for (const Line& line : lines) sink_(line.level, line.text);
}

}  // namespace systole
