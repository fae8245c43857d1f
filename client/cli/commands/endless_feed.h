// Opens a spec's feed as a feed that never ends (epochs: 0), and makes an empty recording of the
// feed's arrivals. For `replay --save-arrivals` and `pace`.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_ENDLESS_FEED_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_ENDLESS_FEED_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/console/command_line.h"
#include "client/emulator/timing/arrivals.h"
#include "client/feed/feed_client.h"

namespace systole {

struct EndlessFeed {
  std::unique_ptr<FeedClient> client;
  // The recording. It has the feed's origin, tensors and cores, but no arrival times yet.
  emulator::Arrivals arrivals;
};

// Errors of LoadSpec and OpenFeed. REQUIRES: options.watch is not null.
absl::StatusOr<EndlessFeed> OpenEndlessFeed(const std::string& spec_path,
                                            const FeedClientOptions& options,
                                            const Console& console);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_ENDLESS_FEED_H_
