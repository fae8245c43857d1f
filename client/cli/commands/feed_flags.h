// The options that all commands that read a feed share: which servers, and how long to try to reach
// them.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_FEED_FLAGS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_FEED_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/commands/security_flags.h"
#include "client/cli/console/command_line.h"
#include "client/lanes/feed_client_options.h"
#include "systole/v1/feed.pb.h"

namespace systole {

class FeedFlags {
 public:
  // --server, --connect-timeout, --retry-for, --hedge-fraction, --silence-timeout,
  // --prefetch-bytes, --max-step-bytes, --no-shared-memory, --allow-mixed-content, --log-format,
  // and those of SecurityFlags.
  void Declare(OptionList& options);
  // The same options, for a command that also works without servers.
  void DeclareOptional(OptionList& options);
  bool has_servers() const { return !servers_.empty(); }

  // The options, each time with a new watch and a new log, whose lines `console` takes.
  // InvalidArgument if a value is out of range.
  absl::StatusOr<FeedClientOptions> ToOptions(const Console& console) const;

 private:
  void DeclareRest(OptionList& options);

  std::string servers_;
  absl::Duration connect_timeout_ = absl::Seconds(10);
  absl::Duration retry_for_ = absl::Minutes(10);
  absl::Duration silence_timeout_ = absl::Minutes(1);
  double hedge_fraction_ = FeedClientOptions().hedge_fraction;
  int64_t prefetch_bytes_ = FeedClientOptions().prefetch_bytes;
  int64_t max_step_bytes_ = FeedClientOptions().max_step_bytes;
  bool no_shared_memory_ = false;
  bool allow_mixed_content_ = false;
  std::string log_format_ = "text";
  SecurityFlags security_;
};

// The spec in `path`, textproto or JSON. Errors of LoadMessage.
absl::StatusOr<v1::FeedSpec> LoadSpec(const std::string& path);

// Stores the range "A:B" in the options' cores; "" means all. InvalidArgument for other text.
absl::Status ParseCores(absl::string_view text, FeedClientOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_FEED_FLAGS_H_
