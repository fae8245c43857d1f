// Where an operation's random draws come from. They depend on the example and on the operation's
// place among those of its kind, so adding or removing operations of other kinds changes no draw.
// Or they are those of TensorFlow's stateless ops, which depend on the example and a seed alone.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_DRAWS_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_DRAWS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/random/counter_rng.h"
#include "core/random/tensorflow_rng.h"

namespace systole {

// Which example is made.
struct ExampleKey {
  uint64_t seed = 0;  // The spec's.
  int64_t epoch = 0;
  int64_t record = 0;
};

class Draws {
 public:
  // `purpose` is the kind's own number (OperationRow::draws), `before` counts the operations of
  // that kind before this one, `key` is the transform's. REQUIRES: purpose and before below 2^16.
  Draws(uint32_t purpose, int before, absl::string_view key);
  // Draws of TensorFlow's stateless ops in place of our own: v1::Transform.tf_seed.
  explicit Draws(const TensorFlowSeed& seed);

  // REQUIRES: !is_tensorflow().
  CounterRng Rng(const ExampleKey& example) const;

  bool is_tensorflow() const { return tensorflow_.has_value(); }
  // With the seed fold_in(fold_in(tf_seed, epoch), record). REQUIRES: is_tensorflow().
  TensorFlowRng TensorFlow(const ExampleKey& example) const;

  // The first number of either kind, uniform in [0, 1).
  float UniformFloat(const ExampleKey& example) const;

 private:
  uint32_t purpose_ = 0;
  uint64_t key_ = 0;  // 0: none.
  std::optional<TensorFlowSeed> tensorflow_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_DRAWS_H_
