// The log's lines tell the person who runs a server or a feed what happens. Text in a line may come
// from a peer or a file. The log escapes and shortens this text (core/log/log_line.h), and its
// callers need not. The number of lines that one cause may write in an interval is limited, so
// peers cannot flood the log.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_LOG_EVENT_LOG_H_
#define SYSTOLE_CORE_LOG_EVENT_LOG_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/log/log_line.h"

namespace systole {

enum class LogFormat {
  kText,
  kJson,  // One object a line (core/log/log_line.h).
};

// Where lines go, as text or JSON. Called on any thread, without a lock.
using LogSink = std::function<void(LogLevel level, const std::string& line)>;

struct EventLogOptions {
  // Lines below this level are dropped. They do not count towards max_lines.
  LogLevel least = LogLevel::kInfo;
  // The most lines of one cause in one interval. Further lines are left out, and one line gives
  // their number after the interval. The limit stops a peer from filling the disk.
  int max_lines = 20;
  absl::Duration interval = absl::Seconds(30);
  MonotonicClock clock = SteadyClock();
  LogFormat format = LogFormat::kText;
  // The time of day, for JSON. A line of text has no time, because its sink adds the time.
  std::function<absl::Time()> wall_clock = absl::Now;
};

class EventLog {
 public:
  // `sink` may be null. Lines are then dropped.
  explicit EventLog(LogSink sink, EventLogOptions options = {})
      : sink_(std::move(sink)), options_(std::move(options)) {}

  // Writes one line, unless `cause` has used up its lines of this interval. `fields` say what the
  // line is about. LogFormat::kText does not show them, so `text` must have the facts that a reader
  // needs.
  void Add(LogCause cause, LogLevel level, absl::string_view text, const LogFields& fields = {})
      ABSL_LOCKS_EXCLUDED(mu_);

  // For each cause whose interval is over, writes how many lines were left out. Add() does the same
  // for the cause of its line. Call Tick() now and then, because perhaps no further line of a cause
  // is added.
  void Tick() ABSL_LOCKS_EXCLUDED(mu_) { Settle(options_.clock()); }

  // Writes how many lines were left out, for every cause at once. Call this at the end, when no
  // more lines come.
  void Flush() ABSL_LOCKS_EXCLUDED(mu_) { Settle(absl::InfiniteDuration()); }

 private:
  struct Interval {
    absl::Duration end = -absl::InfiniteDuration();
    int lines = 0;
    int64_t left_out = 0;
    LogLevel highest = LogLevel::kDebug;  // The highest level of the lines that were left out.
  };

  void Settle(absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the interval of `cause` if its time is over. If lines of this interval were left out, adds
  // a line with their number to `lines`.
  void SettleLocked(LogCause cause, absl::Duration now, std::vector<LogLine>& lines)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Write(const std::vector<LogLine>& lines) const;

  const LogSink sink_;
  const EventLogOptions options_;
  Mutex mu_;
  std::array<Interval, kNumLogCauses> intervals_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_LOG_EVENT_LOG_H_
