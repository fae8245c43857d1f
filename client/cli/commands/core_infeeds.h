// A feed for the training loop. Takes slices from the queues of core_queues.h and picks the tensors
// that are the model's input and label.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_CORE_INFEEDS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_CORE_INFEEDS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/cli/pacing/core_queues.h"
#include "client/emulator/training/training_loop.h"
#include "client/feed/feed_client.h"

namespace systole {

// Names of the feed's outputs that a model is trained on.
struct TrainingOutputs {
  std::string image = "image";
  std::string label = "label";
};

class CoreInfeeds {
 public:
  // Starts to fill the queues.
  //   InvalidArgument  the feed lacks one of the outputs, or slices for some cores; or one of the
  //                    outputs has the layout HWCN or HWCN_TILED.
  static absl::StatusOr<std::unique_ptr<CoreInfeeds>> Create(std::unique_ptr<FeedClient> client,
                                                             const TrainingOutputs& outputs);

  // The next slice of `core`. See emulator::PopInfeed.
  absl::StatusOr<std::optional<emulator::InfeedStep>> Pop(int64_t core);

  // Makes every running and every later Pop() return Cancelled. Any thread may call it at any time.
  void Cancel() { queues_->Cancel(); }

  FeedClient& client() { return queues_->client(); }

 private:
  CoreInfeeds(std::unique_ptr<CoreQueues> queues, int image, int label)
      : queues_(std::move(queues)), image_(image), label_(label) {}

  const std::unique_ptr<CoreQueues> queues_;
  const int image_;  // Indices into the layout.
  const int label_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_CORE_INFEEDS_H_
