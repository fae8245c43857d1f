// The log of a feed. It reports servers that fail and come back, steps that are late, servers that
// join and leave, and examples that are masked. Lines are collected under the feed's lock and
// written without it, because the reader of the log may be slow.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_LANES_FEED_LOG_H_
#define SYSTOLE_CLIENT_LANES_FEED_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/step/missing_examples.h"
#include "core/log/log_line.h"
#include "systole/v1/feed.pb.h"

namespace systole {

class FeedLog {
 public:
  // The most lines that wait to be written. Further lines are dropped, so that a reader that hangs
  // costs no memory.
  static constexpr size_t kMaxWaiting = 256;

  // `wanted`: whether the log has a reader. If not, there are never any lines.
  FeedLog(bool wanted, const v1::FeedSpec& spec);

  // The spec's fingerprint, from a server's answer.
  void SetFeed(uint64_t fingerprint) { about_.feed = fingerprint; }

  // A stream of `server` ended before `step` was complete.
  void StreamLost(absl::string_view server, int64_t step, const absl::Status& error);
  // `server` drains, and therefore ended a stream at `step`.
  void ServerDrains(absl::string_view server, int64_t step);
  // NoAnswer: a request to `server` failed. AnswersAgain: `server` answers again after a failure.
  void NoAnswer(absl::string_view server, const absl::Status& error);
  void AnswersAgain(absl::string_view server);
  // `second`: the server that is asked for the step, too. Empty: other servers go on with the steps
  // of `server`.
  void StepIsLate(int64_t step, absl::string_view server, absl::string_view second);
  void ServerJoined(absl::string_view server);
  void ServerLeft(absl::string_view server);
  void ListIsUnreadable(const absl::Status& error);
  // Adds no line if no example is masked.
  void Masked(int64_t step, const MissingExamples& missing);

  bool empty() const { return waiting_.empty(); }
  // Returns the lines that wait to be written, and forgets them.
  std::vector<LogLine> Take() { return std::exchange(waiting_, {}); }

 private:
  void Add(LogCause cause, LogLevel level, std::string text, absl::string_view server,
           std::optional<int64_t> step);

  const bool wanted_;
  LogFields about_;  // The feed and its dataset.
  std::vector<LogLine> waiting_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_FEED_LOG_H_
