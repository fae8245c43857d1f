#include "client/cli/commands/feed_flags.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/lanes/feed_watch.h"
#include "core/log/event_log.h"
#include "core/program/duration_text.h"
#include "core/status/status_macros.h"
#include "core/text/message_text.h"

namespace systole {
namespace {

constexpr char kServerHelp[] =
    "Servers of the same data; they share the work. Each is HOST:PORT, unix:PATH, dns:///NAME:PORT "
    "(every address of the name), file:PATH (an address a line, read again as it changes) or "
    "xds:///NAME";
constexpr absl::Duration kShortestWait = absl::Milliseconds(1);
constexpr absl::Duration kLongestWait = absl::Hours(24 * 365);

// Null if nothing takes lines.
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
  options.Optional(
      "--connect-timeout", &connect_timeout_,
      "How long to try for the first answer, and then for a server to begin the first step");
  options.Optional("--retry-for", &retry_for_,
                   "How long to wait for a step, without any step arriving, before giving up");
  options.Optional("--hedge-fraction", "X", &hedge_fraction_,
                   "Late steps that are also asked of another server, as a part of all steps; 0: "
                   "none");
  options.Optional(
      "--silence-timeout", &silence_timeout_,
      "A server that sends nothing for this long, while a step is wanted, is lost; must "
      "be longer than a server takes for a step");
  options.Optional("--prefetch-bytes", "N", &prefetch_bytes_,
                   "Memory for steps that arrive before they are asked for; two steps always fit");
  options.Optional("--max-step-bytes", "N", &max_step_bytes_,
                   "The largest step accepted. Guards memory against a wrong answer of a server");
  options.Flag("--no-shared-memory", &no_shared_memory_,
               "Take batches through the socket of a unix: server, not in shared memory");
  options.Flag(
      "--allow-mixed-content", &allow_mixed_content_,
      "Accept servers of different content versions, whose steps may differ in a few bits");
  options.Optional(
      "--log-format", "FORMAT", &log_format_,
      "How stderr tells of servers that are lost, late steps and masked examples: "
      "text, json (each line an object with time, level, cause, message, feed, server, "
      "dataset, step) or none");
  security_.Declare(options);
}

absl::StatusOr<FeedClientOptions> FeedFlags::ToOptions(const Console& console) const {
  FeedClientOptions options;
  options.servers = absl::StrSplit(servers_, ',');
  options.connect_timeout = connect_timeout_;
  options.retry_for = retry_for_;
  options.silence_timeout = silence_timeout_;
  for (const auto& [option, wait] :
       {std::pair("--connect-timeout", connect_timeout_), std::pair("--retry-for", retry_for_),
        std::pair("--silence-timeout", silence_timeout_)}) {
    SYSTOLE_RETURN_IF_ERROR(CheckDuration(option, wait, kShortestWait, kLongestWait));
  }
  if (prefetch_bytes_ < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--prefetch-bytes ", prefetch_bytes_, ": want 0 or more"));
  }
  if (max_step_bytes_ < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-step-bytes ", max_step_bytes_, ": want 1 or more"));
  }
  if (!(hedge_fraction_ >= 0 && hedge_fraction_ <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hedge-fraction ", hedge_fraction_, ": want 0 to 1"));
  }
  options.hedge_fraction = hedge_fraction_;
  options.prefetch_bytes = prefetch_bytes_;
  options.max_step_bytes = max_step_bytes_;
  if (no_shared_memory_) options.same_host = SameHost::kOff;
  options.allow_mixed_content = allow_mixed_content_;
  options.security = security_.security();
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
