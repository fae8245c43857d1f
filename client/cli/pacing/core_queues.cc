#include "client/cli/pacing/core_queues.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace systole {

absl::StatusOr<std::unique_ptr<CoreQueues>> CoreQueues::Create(std::unique_ptr<FeedClient> client,
                                                               int64_t queue_steps) {
  if (client->core_begin() != 0) {
    return absl::InvalidArgumentError("the feed does not give all cores of the slice");
  }
  if (queue_steps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a queue of ", queue_steps, " steps, want 1 or more"));
  }
  return std::unique_ptr<CoreQueues>(new CoreQueues(std::move(client), queue_steps));
}

CoreQueues::CoreQueues(std::unique_ptr<FeedClient> client, int64_t queue_steps)
    : client_(std::move(client)) {
  std::vector<InfeedQueue*> queues;
  for (int core = 0; core < client_->core_end(); ++core) {
    queues_.push_back(std::make_unique<InfeedQueue>(queue_steps));
    queues.push_back(queues_.back().get());
  }
  pump_ = std::make_unique<InfeedPump>(*client_, std::move(queues));
}

CoreQueues::~CoreQueues() = default;

void CoreQueues::Cancel() {
  client_->Cancel();
  for (const auto& queue : queues_) queue->Cancel(absl::CancelledError("the feed was cancelled"));
}

}  // namespace systole
