// The facts of a report about the feed that a command read. They come from the command line, the
// server's answer and today's date.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_PACING_FEED_ORIGIN_H_
#define SYSTOLE_CLIENT_CLI_PACING_FEED_ORIGIN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/emulator/timing/feed_origin.h"
#include "systole/v1/feed.pb.h"
#include "systole/v1/service.pb.h"

namespace systole {

// `spec_path` is the file that `spec` was read from. The report's date is today.
emulator::FeedOrigin OriginOf(absl::string_view spec_path, const v1::FeedSpec& spec,
                              const std::vector<std::string>& servers,
                              const v1::ResolveFeedResponse& answer);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACING_FEED_ORIGIN_H_
