#include "core/log/event_log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace systole {

void EventLog::Add(LogCause cause, LogLevel level, absl::string_view text,
                   const LogFields& fields) {
  if (sink_ == nullptr || level < options_.least) return;
  std::vector<LogLine> lines;
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
  lines.push_back({.cause = cause, .level = level, .text = std::string(text), .fields = fields});
  Write(lines);
}

void EventLog::Settle(absl::Duration now) {
  std::vector<LogLine> lines;
  {
    MutexLock lock(mu_);
    for (size_t cause = 0; cause < kNumLogCauses; ++cause) {
      SettleLocked(static_cast<LogCause>(cause), now, lines);
    }
  }
  Write(lines);
}

void EventLog::SettleLocked(LogCause cause, absl::Duration now, std::vector<LogLine>& lines) {
  Interval& interval = intervals_[static_cast<size_t>(cause)];
  if (now < interval.end) return;
  if (interval.left_out > 0) {
    lines.push_back({.cause = cause,
                     .level = interval.highest,
                     .text = absl::StrCat(interval.left_out, " more ", PluralOf(cause), " within ",
                                          absl::FormatDuration(options_.interval)),
                     .left_out = interval.left_out});
  }
  interval = Interval();
}

void EventLog::Write(const std::vector<LogLine>& lines) const {
  if (sink_ == nullptr) return;
  for (const LogLine& line : lines) {
    sink_(line.level,
          options_.format == LogFormat::kJson ? JsonOf(line, options_.wall_clock()) : TextOf(line));
  }
}

}  // namespace systole
