#include "client/cli/commands/endless_feed.h"

#include "client/cli/commands/feed_flags.h"
#include "client/cli/commands/open_feed.h"
#include "client/cli/commands/timing_flags.h"
#include "client/cli/pacing/feed_origin.h"
#include "core/status/status_macros.h"

namespace systole {

absl::StatusOr<EndlessFeed> OpenEndlessFeed(const std::string& spec_path,
                                            const FeedClientOptions& options,
                                            const Console& console) {
  SYSTOLE_ASSIGN_OR_RETURN(v1::FeedSpec spec, LoadSpec(spec_path));
  spec.set_epochs(0);
  EndlessFeed feed;
  SYSTOLE_ASSIGN_OR_RETURN(feed.client, OpenFeed(spec, options, console));
  feed.arrivals.origin = OriginOf(spec_path, spec, options.servers, feed.client->info());
  feed.arrivals.tensors = TensorsOf(feed.client->layout());
  feed.arrivals.num_cores = feed.client->core_end();
  return feed;
}

}  // namespace systole
