#include "client/cli/commands/feed_flags.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/security_flags.h"
#include "client/lanes/feed_option_table.h"
#include "client/lanes/feed_watch.h"
#include "core/log/event_log.h"
#include "core/status/status_macros.h"
#include "core/textproto/message_text.h"

namespace systole {
namespace {

constexpr char kServerHelp[] =
    "Servers of the same data; they share the work. Each is HOST:PORT, unix:PATH, dns:///NAME:PORT "
    "(every address of the name), file:PATH (one address a line, read again when changed) or "
    "xds:///NAME";

// The log on `console`. Null if `format` is "none" or `console.log` is null.
absl::StatusOr<std::shared_ptr<EventLog>> LogTo(const Console& console, absl::string_view format) {
  if (format != "text" && format != "json" && format != "none") {
    return absl::InvalidArgumentError(
        absl::StrCat("--log-format ", format, ": want text, json or none"));
  }
  if (format == "none" || console.log == nullptr) return nullptr;
  if (format == "json") {
    return std::make_shared<EventLog>(
        [log = console.log](LogLevel, const std::string& line) { log(line); },
        EventLogOptions{.format = LogFormat::kJson});
  }
  return std::make_shared<EventLog>([log = console.log](LogLevel level, const std::string& line) {
    log(absl::StrCat(level >= LogLevel::kWarn ? "warning: " : "note: ", line));
  });
}

}  // namespace

void FeedFlags::Declare(OptionList& options) {
  options.Required("--server", "A[,B..]", &servers_, kServerHelp);
  DeclareRest(options);
}

void FeedFlags::DeclareOptional(OptionList& options) {
  options.Optional("--server", "A[,B..]", &servers_, kServerHelp);
  DeclareRest(options);
}

void FeedFlags::DeclareRest(OptionList& options) {
  for (const FeedOption& option : FeedOptionTable()) DeclareFeedOption(option, feed_, options);
  options.Optional(
      "--log-format", "FORMAT", &log_format_,
      "Log format on stderr, for lost servers, late steps and masked examples: text, json (each "
      "line an object with time, level, cause, message, feed, server, dataset, step) or none");
}

absl::StatusOr<FeedClientOptions> FeedFlags::ToOptions(const Console& console) const {
  FeedClientOptions options = feed_;
  options.servers = absl::StrSplit(servers_, ',');
  for (const FeedOption& option : FeedOptionTable()) {
    SYSTOLE_RETURN_IF_ERROR(CheckFeedOption(option, options, FlagOf(option)));
  }
  options.watch = std::make_shared<FeedWatch>();
  SYSTOLE_ASSIGN_OR_RETURN(options.log, LogTo(console, log_format_));
  return options;
}

absl::StatusOr<v1::FeedSpec> LoadSpec(const std::string& path) {
  v1::FeedSpec spec;
  SYSTOLE_RETURN_IF_ERROR(LoadMessage(path, spec));
  return spec;
}

absl::Status ParseCores(absl::string_view text, FeedClientOptions& options) {
  if (text.empty()) return absl::OkStatus();
  const std::vector<absl::string_view> ends = absl::StrSplit(text, ':');
  if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &options.core_begin) ||
      !absl::SimpleAtoi(ends[1], &options.core_end) || options.core_begin < 0 ||
      options.core_begin >= options.core_end) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cores ", text, ": want A:B, the cores A .. B-1, such as 0:4"));
  }
  return absl::OkStatus();
}

}  // namespace systole
