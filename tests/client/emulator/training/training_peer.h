// What tests see and change of a network and a trainer beyond their interfaces.
#ifndef SYSTOLE_TESTS_CLIENT_EMULATOR_TRAINING_TRAINING_PEER_H_
#define SYSTOLE_TESTS_CLIENT_EMULATOR_TRAINING_TRAINING_PEER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "client/emulator/training/network.h"
#include "client/emulator/training/trainer.h"

namespace systole::emulator {

class TrainingPeer {
 public:
  // Sums the shards' gradients as Update() does, and changes no parameter. [model.parameters].
  // REQUIRES: Backward() came before.
  template <typename T>
  static std::vector<T> SumGradients(Network<T>& network) {
    network.SumGradientPiece(0, network.model_.parameters);
    const absl::Span<const T> sum = network.shards_[0].gradients.span();
    return {sum.begin(), sum.end()};
  }

  // Core `core`'s replica of the parameters, to be read and spoilt.
  static absl::Span<float> Parameters(Trainer& trainer, int64_t core) {
    return trainer.network_->parameters(core);
  }
};

}  // namespace systole::emulator

#endif  // SYSTOLE_TESTS_CLIENT_EMULATOR_TRAINING_TRAINING_PEER_H_
