// Decides which image goes into which shard. This is the deterministic part of `systole pack`.
//
// Thread-safe: pure functions of values.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_PACK_PLAN_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_PACK_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace systole {

struct PackPlanOptions {
  // The number of train shards: 1 to 99999 (the names have five digits), and at most the number of
  // train images.
  int64_t shards = 16;
  // The part of each class that is set aside for validation, in [0, 1). 0 = no validation shards.
  double validation = 0;
  // The key of the permutations that choose the validation images and the order of all images.
  uint64_t seed = 0;
};

// Each number is an image's index in the list that was passed to PlanPack().
struct PackPlan {
  // By shard. The sizes of shards differ by at most one image.
  std::vector<std::vector<int64_t>> train;
  std::vector<std::vector<int64_t>> validation;  // By shard, like `train`.
};

// Image i is of class labels[i]. Each class is split by itself: of its n images, n * validation go
// to validation, rounded to the nearest whole number. A permutation keyed by the seed and the class
// chooses these images. So the choice does not change if another class gets more images. Then the
// train images and the validation images are each shuffled by a keyed permutation and cut into
// shards. There are ceil(validation images * shards / train images) validation shards, so they are
// about as large as train shards.
//   InvalidArgument  an option is out of range, there are fewer train images than train shards, or
//                    `validation` is above 0 but rounds to no image in every class.
absl::StatusOr<PackPlan> PlanPack(absl::Span<const int64_t> labels, const PackPlanOptions& options);

// "PREFIX-train-00003-of-00016.tfrecord".
std::string ShardPath(absl::string_view prefix, absl::string_view split, int64_t shard,
                      int64_t shards);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_PACK_PLAN_H_
