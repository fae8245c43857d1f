#include "client/cli/shards/pack_plan.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "client/shard_set/shard_set.h"
#include "core/random/keyed_permutation.h"

namespace systole {
namespace {

constexpr int64_t kMostShards = 99999;

// The tweaks of the keyed permutations. Each permutation has a tweak of its own, so that all
// differ. The tweak of class c is kSplitClass + c.
constexpr uint64_t kOrderTrain = 0;
constexpr uint64_t kOrderValidation = 1;
constexpr uint64_t kSplitClass = 2;

// Shuffles `images` and cuts them into `shards` pieces.
std::vector<std::vector<int64_t>> Deal(const std::vector<int64_t>& images, int64_t shards,
                                       uint64_t seed, uint64_t tweak) {
  const int64_t count = static_cast<int64_t>(images.size());
  const KeyedPermutation order(count, seed, /*epoch=*/0, tweak);
  std::vector<std::vector<int64_t>> pieces(shards);
  for (int64_t shard = 0; shard < shards; ++shard) {
    const int64_t begin = shard * count / shards;
    const int64_t end = (shard + 1) * count / shards;
    for (int64_t i = begin; i < end; ++i) pieces[shard].push_back(images[order.At(i)]);
  }
  return pieces;
}

}  // namespace

absl::StatusOr<PackPlan> PlanPack(absl::Span<const int64_t> labels,
                                  const PackPlanOptions& options) {
  if (options.shards < 1 || options.shards > kMostShards) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shards is ", options.shards, ", want 1 to ", kMostShards));
  }
  if (!(options.validation >= 0 && options.validation < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("--validation is ", options.validation,
                                                   ", want a fraction, at least 0 and below 1"));
  }

  std::map<int64_t, std::vector<int64_t>> by_class;
  for (size_t i = 0; i < labels.size(); ++i) by_class[labels[i]].push_back(i);
  std::vector<int64_t> train;
  std::vector<int64_t> validation;
  for (const auto& [label, images] : by_class) {
    const int64_t count = static_cast<int64_t>(images.size());
    const int64_t aside = std::lround(count * options.validation);
    const KeyedPermutation choice(count, options.seed, /*epoch=*/0, kSplitClass + label);
    for (int64_t i = 0; i < count; ++i) {
      (i < aside ? validation : train).push_back(images[choice.At(i)]);
    }
  }

  const int64_t num_train = static_cast<int64_t>(train.size());
  const int64_t num_validation = static_cast<int64_t>(validation.size());
  if (num_train < options.shards) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--shards is ", options.shards, ", but there are only ", num_train, " train images"));
  }
  if (options.validation > 0 && num_validation == 0) {
    return absl::InvalidArgumentError(absl::StrCat("--validation ", options.validation,
                                                   " is too small: of ", labels.size(),
                                                   " images it takes none of any class"));
  }
  PackPlan plan;
  plan.train = Deal(train, options.shards, options.seed, kOrderTrain);
  if (num_validation > 0) {
    const int64_t shards =
        std::min(num_validation, (num_validation * options.shards + num_train - 1) / num_train);
    plan.validation = Deal(validation, shards, options.seed, kOrderValidation);
  }
  return plan;
}

std::string ShardPath(absl::string_view prefix, absl::string_view split, int64_t shard,
                      int64_t shards) {
  return NumberedShardPath(absl::StrCat(prefix, "-", split), shard, shards);
}

}  // namespace systole
