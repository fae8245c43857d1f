// The loss, and its gradient. An example's loss is the sum over c of -target[c] *
// log(softmax(logits)[c]). The loss of a batch is the mean over its valid examples. The target is 1
// at the label and 0 elsewhere. With label smoothing s, the target is s / classes everywhere, plus
// 1 - s at the label.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_SOFTMAX_CROSS_ENTROPY_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_SOFTMAX_CROSS_ENTROPY_H_

#include <cstdint>

#include "absl/types/span.h"

namespace systole::emulator {

// The loss of one shard.
template <typename T>
struct LossSums {
  T loss = 0;           // Sum over valid examples, in their order.
  int64_t correct = 0;  // Valid examples whose label has the largest logit (the first of equals).
};

// logits: [labels.size(), classes]. Labels of valid examples are in [0, classes). The labels of
// other examples are not read, and the gradient of these examples is zero. `smoothing` is in [0,
// 1). Writes (softmax - target) / divisor to `d_logits`, unless `d_logits` is null.
template <typename T>
LossSums<T> SoftmaxCrossEntropy(const T* logits, int64_t classes, absl::Span<const int64_t> labels,
                                absl::Span<const uint8_t> valid, T smoothing, T divisor,
                                T* d_logits);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_SOFTMAX_CROSS_ENTROPY_H_
