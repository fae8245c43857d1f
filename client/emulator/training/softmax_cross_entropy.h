// The loss: mean over valid examples of -log(softmax(logits)[label]), and its gradient.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_SOFTMAX_CROSS_ENTROPY_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_SOFTMAX_CROSS_ENTROPY_H_

#include <cstdint>

#include "absl/types/span.h"

namespace systole::emulator {

// Of one shard.
template <typename T>
struct LossSums {
  T loss = 0;           // Sum over valid examples, in their order.
  int64_t correct = 0;  // Valid examples whose label has the largest logit (the first of equals).
};

// logits: [labels.size(), classes]. Labels of valid examples are in [0, classes); others are not
// looked at, and their gradient is zero. Writes (softmax - one at the label) / divisor to d_logits
// unless that is null.
template <typename T>
LossSums<T> SoftmaxCrossEntropy(const T* logits, int64_t classes, absl::Span<const int64_t> labels,
                                absl::Span<const uint8_t> valid, T divisor, T* d_logits);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_SOFTMAX_CROSS_ENTROPY_H_
