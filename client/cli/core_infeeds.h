// A feed as the training loop takes it: one infeed queue per core, filled from servers.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_CORE_INFEEDS_H_
#define SYSTOLE_CLIENT_CLI_CORE_INFEEDS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/emulator/training/training_loop.h"
#include "client/feed_client.h"
#include "client/infeed_pump.h"
#include "client/infeed_queue.h"

namespace systole {

// Names of the outputs that hold what a model is trained on.
struct TrainingOutputs {
  std::string image = "image";
  std::string label = "label";
};

class CoreInfeeds {
 public:
  // Starts to fill the queues.
  //   InvalidArgument  the feed lacks one of the outputs, or does not give all cores.
  static absl::StatusOr<std::unique_ptr<CoreInfeeds>> Create(std::unique_ptr<FeedClient> client,
                                                             const TrainingOutputs& outputs);
  ~CoreInfeeds();

  // The next slice of `core`. See emulator::PopInfeed.
  absl::StatusOr<std::optional<emulator::InfeedStep>> Pop(int64_t core);

  FeedClient& client() { return *client_; }

 private:
  CoreInfeeds(std::unique_ptr<FeedClient> client, int image, int label);

  const std::unique_ptr<FeedClient> client_;
  const int image_;  // Indices into the layout.
  const int label_;
  std::vector<std::unique_ptr<InfeedQueue>> queues_;
  std::unique_ptr<InfeedPump> pump_;  // Last: it uses what is above.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_CORE_INFEEDS_H_
