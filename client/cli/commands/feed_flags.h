// The options that all commands that read a feed share: the servers, the log's format, and the
// options of the feed itself.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_FEED_FLAGS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_FEED_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/console/command_line.h"
#include "client/lanes/feed_client_options.h"
#include "systole/v1/feed.pb.h"

namespace systole {

class FeedFlags {
 public:
  // --server, --log-format, and the flags of FeedOptionTable().
  void Declare(OptionList& options);
  // Like Declare(), for a command that also works without servers.
  void DeclareOptional(OptionList& options);
  bool has_servers() const { return !servers_.empty(); }

  // The options, with a new watch and a new log at each call. The log writes its lines to
  // `console`. InvalidArgument if a value is out of range.
  absl::StatusOr<FeedClientOptions> ToOptions(const Console& console) const;

 private:
  void DeclareRest(OptionList& options);

  std::string servers_;
  FeedClientOptions feed_;
  std::string log_format_ = "text";
};

// The spec in `path`, textproto or JSON. Errors of LoadMessage.
absl::StatusOr<v1::FeedSpec> LoadSpec(const std::string& path);

// Stores the range "A:B" in the options' cores; "" means all. InvalidArgument for other text.
absl::Status ParseCores(absl::string_view text, FeedClientOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_FEED_FLAGS_H_
