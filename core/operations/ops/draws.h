// The source of an operation's random draws. The draws depend on the example, on the operation's
// place among the operations of its kind, and on the transform's key. So adding or removing
// operations of other kinds changes no draw. With a tf_seed, an operation draws the same numbers as
// TensorFlow's stateless ops. These numbers depend only on the example and the seed.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_DRAWS_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_DRAWS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/random/counter_rng.h"
#include "core/random/tensorflow_rng.h"
#include "systole/v1/feed.pb.h"

namespace systole {

inline constexpr int kMaxTransformKeyBytes = 64;

// Identifies an example.
struct ExampleKey {
  uint64_t seed = 0;  // The spec's seed.
  int64_t epoch = 0;
  int64_t record = 0;
};

class Draws {
 public:
  // `purpose` is the number of the operation's kind (OperationRow::draws). `before` is how many
  // operations of this kind come before the operation. `key` is the transform's key. REQUIRES:
  // `purpose` and `before` are below 2^16.
  Draws(uint32_t purpose, int before, absl::string_view key);
  // Draws the same numbers as TensorFlow's stateless ops (v1::Transform.tf_seed).
  explicit Draws(const TensorFlowSeed& seed);
  // The draws of `transform`, by its key or its tf_seed. `takes_tf_seed` is
  // OperationRow::tensorflow_draws. `purpose` is 0 for an operation that draws nothing.
  //   InvalidArgument  `transform` has a key or a tf_seed, but its operation takes none, or the
  //                    value is not allowed. The message is the end of a sentence that begins with
  //                    the transform's name.
  static absl::StatusOr<Draws> Create(const v1::Transform& transform, uint32_t purpose, int before,
                                      bool takes_tf_seed);

  // REQUIRES: !is_tensorflow().
  CounterRng Rng(const ExampleKey& example) const;

  bool is_tensorflow() const { return tensorflow_.has_value(); }
  // A generator with the seed fold_in(fold_in(tf_seed, epoch), record). REQUIRES: is_tensorflow().
  TensorFlowRng TensorFlow(const ExampleKey& example) const;

  // The first number of Rng() or TensorFlow(), uniform in [0, 1).
  float UniformFloat(const ExampleKey& example) const;

 private:
  uint32_t purpose_ = 0;
  uint64_t key_ = 0;  // 0: no key.
  std::optional<TensorFlowSeed> tensorflow_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_DRAWS_H_
