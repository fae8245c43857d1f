// A feed for all cores of a slice: one infeed queue per core, filled from servers.
//
// Thread-compatible, except Cancel(), which any thread may call at any time.
#ifndef SYSTOLE_CLIENT_CLI_PACING_CORE_QUEUES_H_
#define SYSTOLE_CLIENT_CLI_PACING_CORE_QUEUES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/feed/feed_client.h"
#include "client/feed/infeed_pump.h"
#include "client/infeed/infeed_queue.h"

namespace systole {

class CoreQueues {
 public:
  // Starts to fill the queues. Each queue has room for `queue_steps` steps.
  //   InvalidArgument  the feed does not begin at core 0, or `queue_steps` is not positive.
  static absl::StatusOr<std::unique_ptr<CoreQueues>> Create(std::unique_ptr<FeedClient> client,
                                                            int64_t queue_steps);
  ~CoreQueues();

  // Waits for `core`'s part of the next step and returns it; nullopt at the end of the feed.
  absl::StatusOr<std::optional<CoreStep>> Pop(int64_t core) {
    return queues_[static_cast<size_t>(core)]->Pop();
  }
  // Makes waiting calls of Pop() return Cancelled, and all later calls, too.
  void Cancel();

  FeedClient& client() { return *client_; }
  int num_cores() const { return static_cast<int>(queues_.size()); }

 private:
  CoreQueues(std::unique_ptr<FeedClient> client, int64_t queue_steps);

  const std::unique_ptr<FeedClient> client_;
  std::vector<std::unique_ptr<InfeedQueue>> queues_;
  std::unique_ptr<InfeedPump> pump_;  // Last: it uses the other members.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACING_CORE_QUEUES_H_
