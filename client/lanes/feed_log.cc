#include "client/lanes/feed_log.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/spec/order_spec.h"

namespace systole {

FeedLog::FeedLog(bool wanted, const v1::FeedSpec& spec) : wanted_(wanted) {
  about_.dataset = absl::StrJoin(DatasetsOf(spec), ",");
}

void FeedLog::StreamLost(absl::string_view server, int64_t step, const absl::Status& error) {
  Add(LogCause::kServerLost, LogLevel::kWarn,
      absl::StrCat("server ", server, " was lost at step ", step, ": ", error.message()), server,
      step);
}

void FeedLog::ServerDrains(absl::string_view server, int64_t step) {
  Add(LogCause::kServerLost, LogLevel::kInfo,
      absl::StrCat("server ", server, " drains; its stream ended at step ", step), server, step);
}

void FeedLog::NoAnswer(absl::string_view server, const absl::Status& error) {
  Add(LogCause::kServerLost, LogLevel::kWarn,
      absl::StrCat("no answer from server ", server, ": ", error.message()), server, std::nullopt);
}

void FeedLog::AnswersAgain(absl::string_view server) {
  Add(LogCause::kServerLost, LogLevel::kInfo, absl::StrCat("server ", server, " answers again"),
      server, std::nullopt);
}

void FeedLog::StepIsLate(int64_t step, absl::string_view server, absl::string_view second) {
  Add(LogCause::kStepLate, LogLevel::kInfo,
      absl::StrCat("step ", step, " is late from server ", server,
                   second.empty() ? "; other servers go on with its steps"
                                  : absl::StrCat("; server ", second, " is asked for it, too")),
      server, step);
}

void FeedLog::ServerJoined(absl::string_view server) {
  Add(LogCause::kServerList, LogLevel::kInfo, absl::StrCat("server ", server, " joined"), server,
      std::nullopt);
}

void FeedLog::ServerLeft(absl::string_view server) {
  Add(LogCause::kServerList, LogLevel::kInfo, absl::StrCat("server ", server, " left the list"),
      server, std::nullopt);
}

void FeedLog::ListIsUnreadable(const absl::Status& error) {
  Add(LogCause::kServerList, LogLevel::kWarn,
      absl::StrCat("the feed keeps the servers that it has: ", error.message()), "", std::nullopt);
}

void FeedLog::Masked(int64_t step, const MissingExamples& missing) {
  if (missing.masked() == 0) return;
  Add(LogCause::kDamage, LogLevel::kWarn,
      absl::StrCat(MaskedText(step, missing), "; the servers' logs say where they are"), "", step);
}

void FeedLog::Add(LogCause cause, LogLevel level, std::string text, absl::string_view server,
                  std::optional<int64_t> step) {
  if (!wanted_ || waiting_.size() >= kMaxWaiting) return;
  LogLine& line = waiting_.emplace_back();
  line = {.cause = cause, .level = level, .text = std::move(text), .fields = about_};
  line.fields.server = std::string(server);
  line.fields.step = step;
}

}  // namespace systole
