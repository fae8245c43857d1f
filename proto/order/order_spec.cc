#include "proto/order/order_spec.h"

namespace systole {

OrderSpec OrderSpecOf(const v1::FeedSpec& spec, int64_t num_records) {
  ShuffleMode mode = ShuffleMode::kNone;
  if (spec.shuffle().mode() == v1::Shuffle::GLOBAL) mode = ShuffleMode::kGlobal;
  if (spec.shuffle().mode() == v1::Shuffle::WINDOW) mode = ShuffleMode::kWindow;
  return {.seed = spec.seed(),
          .mode = mode,
          .block_records = spec.shuffle().block_records(),
          .window_records = spec.shuffle().window_records(),
          .num_records = num_records,
          .global_batch = spec.global_batch(),
          .tail = spec.tail() == v1::PAD ? Tail::kPad : Tail::kDrop,
          .epochs = spec.epochs()};
}

}  // namespace systole
