// A number that is drawn once for each example, uniformly between two bounds. brightness, contrast
// and other operations share this class.
//
// Thread-compatible; immutable.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_DRAWN_NUMBER_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_DRAWN_NUMBER_H_

#include <limits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/operations/ops/draws.h"

namespace systole {

// The fields `NAME_min` and `NAME_max` of a transform, and the smallest and largest value allowed.
struct NumberBounds {
  absl::string_view name;
  float min = 0;
  float max = 0;
  float least = std::numeric_limits<float>::lowest();
  float most = std::numeric_limits<float>::max();
};

class DrawnNumber {
 public:
  // InvalidArgument unless least <= min <= max <= most and max - min is finite. The message is the
  // end of a sentence that begins with a transform's name.
  static absl::StatusOr<DrawnNumber> Create(const Draws& draws, const NumberBounds& bounds);

  // min + u * (max - min) in float32, as tf.random.uniform computes it.
  float Of(const ExampleKey& example) const {
    return min_ + draws_.UniformFloat(example) * (max_ - min_);
  }

  // Whether the number is the same for every example.
  bool is_fixed() const { return min_ == max_; }

 private:
  DrawnNumber(const Draws& draws, float min, float max) : draws_(draws), min_(min), max_(max) {}

  Draws draws_;
  float min_;
  float max_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_DRAWN_NUMBER_H_
