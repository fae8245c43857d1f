// Which record is at which place of a feed. This is a pure function of the spec, computed for each
// place by itself. An Order has no buffer and no state, and does no I/O. Step 10^9 costs as much as
// step 0.
//
//   step -> (epoch, step in epoch) -> position = step in epoch * global_batch + slot -> record
//
// An epoch is `steps_per_epoch` global batches. `kDrop` leaves out the last num_records mod
// global_batch positions. `kPad` fills the last batch up with empty places.
//
// In a mixture each member goes through its records in passes of its own. A pass does not end with
// the epoch: each epoch goes on where the previous epoch ended. So even kDrop leaves out no record
// of a pass. The mixture's weights may change between steps.
//
// Thread-compatible: const throughout.
#ifndef SYSTOLE_CORE_ORDER_ORDER_H_
#define SYSTOLE_CORE_ORDER_ORDER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/order/core_split.h"
#include "core/order/mixture.h"
#include "core/order/selection.h"

namespace systole {

enum class ShuffleMode {
  kNone,    // Records in the order of the shards.
  kGlobal,  // One permutation of all records per epoch.
  kWindow,  // Blocks of neighbours permuted, then the records inside each window: reads stay local.
};

enum class Tail { kDrop, kPad };

struct OrderSpec {
  // A different seed gives a different order. kNone ignores the seed. The seed still counts in the
  // fingerprint, because augmentation draws from it.
  uint64_t seed = 0;
  ShuffleMode mode = ShuffleMode::kGlobal;
  // Records per block and records per window, both at least 1. Only kWindow uses them. A larger
  // block reads longer runs of neighbours and mixes less. A larger window mixes better and touches
  // more blocks at once (about window_records / block_records + 1).
  int64_t block_records = 0;
  int64_t window_records = 0;
  // Records in the dataset, or in the selection, 1 .. 2^62.
  int64_t num_records = 0;
  // The records of the dataset that the feed has. Null: all of them, in the dataset's order.
  std::shared_ptr<const Selection> selection = nullptr;
  // Instead of `selection`: several datasets that take turns. num_records is then the mixture's
  // number of records.
  std::shared_ptr<const Mixture> mixture = nullptr;
  // Examples per step over all cores, 1 .. 2^62.
  int64_t global_batch = 0;
  Tail tail = Tail::kDrop;
  // Number of epochs; 0 = endless.
  int64_t epochs = 1;
  // How a global batch is shared among cores. Not in the fingerprint: a feed may be resumed with
  // another split.
  int num_cores = 1;
  SplitRule split = SplitRule::kBalanced;
};

// The content of one slot of one step.
struct Place {
  int64_t epoch = 0;
  // How many passes over the record's dataset came before. Random draws are keyed by the pass.
  // Except in a mixture, the pass is the epoch.
  int64_t pass = 0;
  int64_t position = 0;           // In the epoch's order; padding if not in [0, num_records).
  std::optional<int64_t> record;  // nullopt = padding.
};

class Order {
 public:
  // InvalidArgument, with the remedy, if a number is out of range, if epochs * steps_per_epoch is
  // beyond int64, or if kDrop would drop every record (fewer records than one global batch).
  static absl::StatusOr<Order> Create(const OrderSpec& spec);

  const OrderSpec& spec() const { return spec_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  // The number of steps of the feed; nullopt if it is endless. PlaceOf() does not refuse later
  // steps: callers have to check.
  std::optional<int64_t> total_steps() const;

  // How many records `step` has. This is global_batch, but fewer in a step that kPad fills up. The
  // records are in the first slots of the step. REQUIRES: step >= 0.
  int64_t RecordsIn(int64_t step) const;

  // The record at `position` of `epoch`. Over all positions of an epoch each record appears exactly
  // once. In a mixture, it appears once in each pass of its member. Expected O(1), some hundred
  // nanoseconds. REQUIRES: 0 <= position < num_records, epoch >= 0 (CHECK).
  int64_t RecordAt(int64_t epoch, int64_t position) const;

  // The place in `slot` of `step`. Expected O(1). REQUIRES: 0 <= slot < global_batch, step >= 0
  // (CHECK).
  Place PlaceOf(int64_t step, int64_t slot) const;

  // The places of out.size() slots from `first_slot` on. Sets up the epoch's order only once. The
  // set-up is a third of the cost of a look-up.
  void PlacesOf(int64_t step, int64_t first_slot, absl::Span<Place> out) const;

  // How the cores share a step.
  CoreSplit split() const { return CoreSplit(spec_.global_batch, spec_.num_cores, spec_.split); }

  // The place in `slot` of `core`. A place that the split leaves empty is padding, and its position
  // is -1. REQUIRES: 0 <= slot < per_core_batch (CHECK).
  Place PlaceOnCore(int64_t step, int core, int64_t slot) const;
  void PlacesOnCore(int64_t step, int core, int64_t first_slot, absl::Span<Place> out) const;
  // Records that `core` has in `step`. They are in the core's first slots.
  int64_t RecordsOnCore(int64_t step, int core) const;

  // Hash of all that decides the order: dataset, seed, shuffle with its parameters, record count,
  // selection, mixture and tail. Neither the number of epochs nor the global batch counts, because
  // a run may go on with other numbers (feed_position.h).
  uint64_t Fingerprint(uint64_t dataset_fingerprint) const;
  // The fingerprint of the first `positions` positions alone. Later changes of a mixture's weights
  // do not count. So a run that has taken these positions may get other weights for the rest.
  uint64_t FingerprintBefore(uint64_t dataset_fingerprint, absl::uint128 positions) const;
  // What FingerprintBefore() would give for positions that include exactly the first turns.size()
  // changes of a mixture's weights, if change i began at position turns[i]. REQUIRES: the order has
  // turns.size() changes (CHECK).
  uint64_t FingerprintIfChangedAt(uint64_t dataset_fingerprint,
                                  absl::Span<const absl::uint128> turns) const;
  // The changes of a mixture's weights within the first `positions` positions.
  absl::Span<const WeightChange> WeightChangesBefore(absl::uint128 positions) const;

 private:
  Order(const OrderSpec& spec, int64_t steps_per_epoch)
      : spec_(spec), steps_per_epoch_(steps_per_epoch) {}

  // Positions of an epoch that kDrop does not leave out.
  int64_t UsedPositions() const;
  // The order's fingerprint, if the mixture's fingerprint is `mixture_fingerprint`.
  uint64_t FingerprintOf(uint64_t dataset_fingerprint, uint64_t mixture_fingerprint) const;

  OrderSpec spec_;
  int64_t steps_per_epoch_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_ORDER_H_
