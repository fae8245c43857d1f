// Lets tests read and change the private data of a network and of a trainer.
#ifndef SYSTOLE_TESTS_CLIENT_EMULATOR_TRAINING_TRAINING_PEER_H_
#define SYSTOLE_TESTS_CLIENT_EMULATOR_TRAINING_TRAINING_PEER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "client/emulator/training/network.h"
#include "client/emulator/training/trainer.h"

namespace systole::emulator {

class TrainingPeer {
 public:
  // Sums the shards' gradients as Update() does, without changing a parameter. The result has
  // model.parameters elements. REQUIRES: Backward() was called before.
  template <typename T>
  static std::vector<T> SumGradients(Network<T>& network) {
    network.SumGradientPiece(0, network.model_.parameters);
    const absl::Span<const T> sum = network.shards_[0].gradients.span();
    return {sum.begin(), sum.end()};
  }

  // What a layer gave for a shard in the last Forward().
  template <typename T>
  static absl::Span<const T> Output(Network<T>& network, int64_t shard, size_t layer) {
    return network.shards_[shard].outputs[layer].span();
  }

  // Core `core`'s replica of the parameters. A test may change it.
  static absl::Span<float> Parameters(Trainer& trainer, int64_t core) {
    return trainer.network_->parameters(core);
  }
};

}  // namespace systole::emulator

#endif  // SYSTOLE_TESTS_CLIENT_EMULATOR_TRAINING_TRAINING_PEER_H_
