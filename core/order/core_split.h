// Which examples of a global batch each accelerator core gets. Every core has ceil(global_batch /
// num_cores) places. Places that the rule leaves empty are padding.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CORE_ORDER_CORE_SPLIT_H_
#define SYSTOLE_CORE_ORDER_CORE_SPLIT_H_

#include <algorithm>
#include <cstdint>

namespace systole {

// The rules differ only if num_cores does not divide global_batch.
enum class SplitRule {
  // The first global_batch mod num_cores cores get one example more than the others: 4 examples on
  // 3 cores are 2, 1, 1. TensorFlow splits a batch of known size like this
  // (batch_sizes_for_worker).
  kBalanced,
  // Each core in turn fills all its places, until no examples are left: 4 examples on 3 cores are
  // 2, 2, 0. TensorFlow splits a batch of unknown size like this.
  kFill,
};

// The number of places that each core has. REQUIRES: global_batch >= 1, num_cores >= 1.
constexpr int64_t PerCoreBatch(int64_t global_batch, int num_cores) {
  return (global_batch - 1) / num_cores + 1;
}

class CoreSplit {
 public:
  // REQUIRES: global_batch >= 1, num_cores >= 1.
  CoreSplit(int64_t global_batch, int num_cores, SplitRule rule)
      : global_batch_(global_batch), num_cores_(num_cores), rule_(rule) {}

  int num_cores() const { return num_cores_; }
  int64_t per_core_batch() const { return PerCoreBatch(global_batch_, num_cores_); }

  // The slots of the global batch that `core` gets: the first one, and their number. These slots
  // fill the core's first places. REQUIRES: 0 <= core < num_cores().
  int64_t BeginOf(int core) const {
    if (rule_ == SplitRule::kFill) return std::min(core * per_core_batch(), global_batch_);
    return core * (global_batch_ / num_cores_) +
           std::min<int64_t>(core, global_batch_ % num_cores_);
  }
  int64_t SizeOf(int core) const {
    if (rule_ == SplitRule::kFill) {
      return std::min(per_core_batch(), global_batch_ - BeginOf(core));
    }
    return global_batch_ / num_cores_ + (core < global_batch_ % num_cores_ ? 1 : 0);
  }

 private:
  int64_t global_batch_;
  int num_cores_;
  SplitRule rule_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_CORE_SPLIT_H_
