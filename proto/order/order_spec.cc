#include "proto/order/order_spec.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/order/selection.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// What `select` asks for. A step of policy OFF asks for nothing.
absl::StatusOr<std::vector<SelectionStep>> StepsOf(const v1::FeedSpec& spec) {
  std::vector<SelectionStep> steps;
  for (int i = 0; i < spec.select_size(); ++i) {
    const v1::Select& select = spec.select(i);
    switch (select.step_case()) {
      case v1::Select::kSkip:
        steps.emplace_back(SkipRecords{select.skip()});
        break;
      case v1::Select::kTake:
        steps.emplace_back(TakeRecords{select.take()});
        break;
      case v1::Select::kShard:
        steps.emplace_back(ShardRecords{select.shard().count(), select.shard().index()});
        break;
      case v1::Select::kInterleave: {
        const v1::Interleave& interleave = select.interleave();
        steps.emplace_back(
            InterleaveFiles{interleave.cycle_length(),
                            interleave.block_length() == 0 ? 1 : interleave.block_length()});
        break;
      }
      case v1::Select::kAutoShard: {
        const v1::AutoShard& part = select.auto_shard();
        if (part.policy() == v1::AutoShard::DATA) {
          steps.emplace_back(ShardRecords{part.count(), part.index()});
        } else if (part.policy() != v1::AutoShard::OFF) {
          steps.emplace_back(ShardFiles{part.count(), part.index()});
        }
        break;
      }
      case v1::Select::STEP_NOT_SET:
        return absl::InvalidArgumentError(
            absl::StrCat("select[", i,
                         "] names no step; want skip, take, shard, interleave or "
                         "auto_shard"));
    }
  }
  return steps;
}

}  // namespace

bool SelectsByShards(const v1::FeedSpec& spec) {
  const absl::StatusOr<std::vector<SelectionStep>> steps = StepsOf(spec);
  return steps.ok() && Selection::NeedsShards(*steps);
}

absl::StatusOr<OrderSpec> OrderSpecOf(const v1::FeedSpec& spec, int64_t num_records,
                                      absl::Span<const int64_t> records_per_shard) {
  ShuffleMode mode = ShuffleMode::kNone;
  if (spec.shuffle().mode() == v1::Shuffle::GLOBAL) mode = ShuffleMode::kGlobal;
  if (spec.shuffle().mode() == v1::Shuffle::WINDOW) mode = ShuffleMode::kWindow;
  OrderSpec order = {.seed = spec.seed(),
                     .mode = mode,
                     .block_records = spec.shuffle().block_records(),
                     .window_records = spec.shuffle().window_records(),
                     .num_records = num_records,
                     .global_batch = spec.global_batch(),
                     .tail = spec.tail() == v1::PAD ? Tail::kPad : Tail::kDrop,
                     .epochs = spec.epochs(),
                     .num_cores = spec.num_cores(),
                     .split = spec.split() == v1::FILL ? SplitRule::kFill : SplitRule::kBalanced};
  SYSTOLE_ASSIGN_OR_RETURN(const std::vector<SelectionStep> steps, StepsOf(spec));
  if (steps.empty()) return order;
  if (!Selection::NeedsShards(steps)) records_per_shard = {&num_records, 1};
  SYSTOLE_ASSIGN_OR_RETURN(Selection selection, Selection::Create(records_per_shard, steps));
  order.num_records = selection.num_records();
  order.selection = std::make_shared<const Selection>(std::move(selection));
  return order;
}

}  // namespace systole
