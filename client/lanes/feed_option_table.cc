#include "client/lanes/feed_option_table.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/servers/server_security.h"
#include "client/servers/trace_headers.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr double kShortestTime = 1e-9;
constexpr double kLongestTime = 365.0 * 24 * 60 * 60;
constexpr double kMostBytes = 0x1p63;
constexpr double kMostServersInUse = 256;

constexpr absl::string_view kFinishWords[] = {"auto", "server", "client"};

template <auto kMember>
FeedOption::Field Own(FeedClientOptions& options) {
  return &(options.*kMember);
}

template <auto kMember>
FeedOption::Field Secure(FeedClientOptions& options) {
  return &(options.security.*kMember);
}

constexpr FeedOption kTable[] = {
    {.name = "connect_timeout",
     .value = "TIME",
     .field = Own<&FeedClientOptions::connect_timeout>,
     .help =
         "How long to wait for a server's first answer, and then until a server begins to make the "
         "first step",
     .least = kShortestTime,
     .most = kLongestTime},
    {.name = "retry_for",
     .value = "TIME",
     .field = Own<&FeedClientOptions::retry_for>,
     .help = "The feed gives up when no step arrives for this long while the trainer waits",
     .least = kShortestTime,
     .most = kLongestTime},
    {.name = "silence_timeout",
     .value = "TIME",
     .field = Own<&FeedClientOptions::silence_timeout>,
     .help = "A server counts as lost if it sends nothing for this long while a step is wanted "
             "from it. The time must be longer than a server takes for a step",
     .least = kShortestTime,
     .most = kLongestTime},
    {.name = "hedge_fraction",
     .value = "X",
     .field = Own<&FeedClientOptions::hedge_fraction>,
     .help = "The largest part of all steps that may be requested from a second server because "
             "they are late; 0: none",
     .least = 0,
     .most = 1},
    {.name = "backoff",
     .value = "TIME",
     .field = Own<&FeedClientOptions::backoff>,
     .help = "The pause before the next request to a server that has failed twice in a row. Each "
             "further failure doubles the pause",
     .least = kShortestTime,
     .most = kLongestTime},
    {.name = "max_backoff",
     .value = "TIME",
     .field = Own<&FeedClientOptions::max_backoff>,
     .help = "The longest pause before a server that failed is asked again",
     .least = kShortestTime,
     .most = kLongestTime},
    {.name = "max_servers",
     .value = "N",
     .field = Own<&FeedClientOptions::max_servers>,
     .help = "The most servers used at a time. A feed begins with two. It adds one while the "
             "trainer waits, if the last server added helped",
     .least = 1,
     .most = kMostServersInUse},
    {.name = "prefetch_bytes",
     .value = "N",
     .field = Own<&FeedClientOptions::prefetch_bytes>,
     .help = "Memory for steps that wait until the trainer takes them; two steps always fit",
     .least = 0,
     .most = kMostBytes},
    {.name = "max_step_bytes",
     .value = "N",
     .field = Own<&FeedClientOptions::max_step_bytes>,
     .help = "The largest step accepted. Guards memory against a wrong answer of a server",
     .least = 1,
     .most = kMostBytes},
    {.name = "share_memory",
     .flag = "--no-shared-memory",
     .field = Own<&FeedClientOptions::share_memory>,
     .help =
         "Whether a server with a unix: address sends batches through memory that it shares, not "
         "through its socket"},
    {.name = "finish",
     .value = "WHO",
     .field = Own<&FeedClientOptions::finish>,
     .help =
         "Which side applies the last normalize or cast of an output. client: the pixels travel as "
         "uint8, which is a quarter to half of the bytes; for slow networks. server: for "
         "trainers that are short of CPU. auto: the client over a network, the server on the "
         "same machine",
     .words = kFinishWords},
    {.name = "allow_mixed_content",
     .field = Own<&FeedClientOptions::allow_mixed_content>,
     .help = "Accept servers, or a state, of another content version; their steps may differ in a "
             "few bits"},
    {.name = "traceparent",
     .value = "TEXT",
     .field = Own<&FeedClientOptions::traceparent>,
     .help = "The trace that this feed belongs to (W3C Trace Context); servers log it, and their "
             "traces become part of it. Default: $TRACEPARENT",
     .check = CheckTraceParent},
    {.name = "tls",
     .field = Secure<&ServerSecurity::tls>,
     .help = "Encrypt, and check the server's certificate; never falls back to plain text",
     .is_security = true},
    {.name = "tls_ca",
     .value = "FILE",
     .field = Secure<&ServerSecurity::ca_file>,
     .help = "The CAs that sign the servers' certificates (PEM). Default: the system's",
     .is_security = true},
    {.name = "tls_certificate",
     .value = "FILE",
     .field = Secure<&ServerSecurity::certificate_file>,
     .help = "This client's certificate (PEM)",
     .is_security = true},
    {.name = "tls_key",
     .value = "FILE",
     .field = Secure<&ServerSecurity::key_file>,
     .help = "The key of this client's certificate (PEM)",
     .is_security = true},
    {.name = "tls_server_name",
     .value = "NAME",
     .field = Secure<&ServerSecurity::server_name>,
     .help = "The name in the server's certificate. Default: the host of the address",
     .is_security = true},
    {.name = "token_file",
     .value = "FILE",
     .field = Secure<&ServerSecurity::token_file>,
     .help = "This client's access token, as `systole token` makes it. Default: "
             "$SYSTOLE_TOKEN_FILE, or "
             "the token in $SYSTOLE_TOKEN",
     .is_security = true},
};

absl::Status CheckBounds(const FeedOption& option, absl::string_view called, double value,
                         std::string (*text)(double)) {
  // A NaN fails both comparisons, so it is refused, too.
  if (value >= option.least && value <= option.most) return absl::OkStatus();
  const std::string bounds = option.most == kMostBytes
                                 ? absl::StrCat(text(option.least), " or more")
                                 : absl::StrCat(text(option.least), " to ", text(option.most));
  return absl::InvalidArgumentError(absl::StrCat(called, " is ", text(value), ", want ", bounds));
}

}  // namespace

absl::Span<const FeedOption> FeedOptionTable() { return kTable; }

std::string FlagOf(const FeedOption& option) {
  if (!option.flag.empty()) return std::string(option.flag);
  return absl::StrCat("--", absl::StrReplaceAll(option.name, {{"_", "-"}}));
}

absl::Status CheckFeedOption(const FeedOption& option, const FeedClientOptions& options,
                             absl::string_view called) {
  FeedClientOptions copy = options;
  const FeedOption::Field field = option.field(copy);
  const auto number = [](double value) { return absl::StrCat(value); };
  if (const auto* const time = std::get_if<absl::Duration*>(&field)) {
    return CheckBounds(option, called, absl::ToDoubleSeconds(**time),
                       [](double seconds) { return absl::FormatDuration(absl::Seconds(seconds)); });
  }
  if (const auto* const whole = std::get_if<int64_t*>(&field)) {
    return CheckBounds(option, called, static_cast<double>(**whole), number);
  }
  if (const auto* const real = std::get_if<double*>(&field)) {
    return CheckBounds(option, called, **real, number);
  }
  if (const auto* const text = std::get_if<std::string*>(&field);
      text != nullptr && !option.words.empty() &&
      std::find(option.words.begin(), option.words.end(), **text) == option.words.end()) {
    const absl::string_view last = option.words.back();
    return absl::InvalidArgumentError(absl::StrCat(
        called, " is '", ForeignName(**text), "', want ",
        absl::StrJoin(option.words.first(option.words.size() - 1), ", "), " or ", last));
  }
  if (const auto* const text = std::get_if<std::string*>(&field);
      text != nullptr && option.check != nullptr) {
    const absl::Status status = option.check(**text);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(called, " is ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace systole
