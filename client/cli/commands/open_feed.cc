#include "client/cli/commands/open_feed.h"

#include "client/cli/commands/waiting_text.h"
#include "client/cli/console/progress_bar.h"

namespace systole {

absl::StatusOr<std::unique_ptr<FeedClient>> OpenFeed(const v1::FeedSpec& spec,
                                                     const FeedClientOptions& options,
                                                     const Console& console,
                                                     const std::optional<ResumeToken>& token) {
  const ProgressBar bar(console, {.label = "connecting", .notice = WaitingNotice(options.watch)});
  if (token.has_value()) return FeedClient::Resume(spec, *token, options);
  return FeedClient::Create(spec, options);
}

}  // namespace systole
