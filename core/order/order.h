// Says which record is at a place of a feed. The answer is a pure function of the spec and the
// place. An Order has no buffer and no state, and does no I/O. A place in step 10^9 costs as much
// time as a place in step 0.
//
//   step -> (epoch, step in epoch) -> position = step in epoch * global_batch + slot -> record
//
// An epoch is `steps_per_epoch` global batches. `kDrop` leaves out the last num_records mod
// global_batch positions. `kPad` fills the last batch up with empty places.
//
// In a mixture, each member has passes of its own. A pass goes through all of the member's records.
// It does not end with the epoch: each epoch goes on where the previous epoch ended. So even kDrop
// leaves out no record of a pass. The mixture's weights may change between steps.
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
  kNone,    // No shuffle: the records are in the order of the shards or of the selection.
  kGlobal,  // Each epoch is one permutation of all records.
  kWindow,  // Permutes blocks of neighbours, then the records inside each window. Reads stay local.
};

enum class Tail { kDrop, kPad };

struct OrderSpec {
  // A different seed gives a different order, except with kNone. The seed always counts in the
  // fingerprint, because random transforms draw from it.
  uint64_t seed = 0;
  ShuffleMode mode = ShuffleMode::kGlobal;
  // For kWindow: records per block and records per window, both at least 1. Larger blocks give
  // longer reads of neighbours, but mix records less well. Larger windows mix records better, but a
  // feed then reads from more blocks at once (about window_records / block_records + 1).
  int64_t block_records = 0;
  int64_t window_records = 0;
  // Records in the dataset, or in the selection, 1 .. 2^62.
  int64_t num_records = 0;
  // The records of the dataset that the feed has. Null: all records, in the dataset's order.
  std::shared_ptr<const Selection> selection = nullptr;
  // Instead of `selection`: several datasets that take turns. num_records is then the mixture's
  // number of records.
  std::shared_ptr<const Mixture> mixture = nullptr;
  // Examples per step over all cores, 1 .. 2^62.
  int64_t global_batch = 0;
  Tail tail = Tail::kDrop;
  // Number of epochs; 0 = endless.
  int64_t epochs = 1;
  // How a global batch is shared among cores. The fingerprint does not cover this, so a feed may be
  // resumed with another split.
  int num_cores = 1;
  SplitRule split = SplitRule::kBalanced;
};

// The content of one slot of one step.
struct Place {
  int64_t epoch = 0;
  // How many passes over the record's dataset came before. In a feed without a mixture, this is the
  // epoch. Random draws depend on the pass, not on the epoch.
  int64_t pass = 0;
  int64_t position = 0;           // In the epoch's order; padding if not in [0, num_records).
  std::optional<int64_t> record;  // nullopt = padding.
};

class Order {
 public:
  //   InvalidArgument  a number is out of range, epochs * steps_per_epoch is beyond int64, or kDrop
  //                    would drop every record, because global_batch is more than num_records. The
  //                    message names the remedy.
  static absl::StatusOr<Order> Create(const OrderSpec& spec);

  const OrderSpec& spec() const { return spec_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  // The number of steps of the feed; nullopt if it is endless. PlaceOf() does not refuse later
  // steps: callers have to check.
  std::optional<int64_t> total_steps() const;

  // How many records `step` has: global_batch, or fewer in a step that kPad fills up. The records
  // are in the first slots of the step. REQUIRES: step >= 0.
  int64_t RecordsIn(int64_t step) const;

  // The record at `position` of `epoch`. Each record is at exactly one position of an epoch. In a
  // mixture, each record of a member comes once in each pass of the member. Expected O(1), some
  // hundred nanoseconds. REQUIRES: 0 <= position < num_records, epoch >= 0 (CHECK).
  int64_t RecordAt(int64_t epoch, int64_t position) const;

  // The place in `slot` of `step`. Expected O(1). REQUIRES: 0 <= slot < global_batch, step >= 0
  // (CHECK).
  Place PlaceOf(int64_t step, int64_t slot) const;

  // The places of out.size() slots from `first_slot` on. Cheaper than a call of PlaceOf() for each
  // slot: a third of such a call's time goes into setting up the epoch's order.
  void PlacesOf(int64_t step, int64_t first_slot, absl::Span<Place> out) const;

  // How the cores share a step.
  CoreSplit split() const { return CoreSplit(spec_.global_batch, spec_.num_cores, spec_.split); }

  // The place in `slot` of `core`. If the split leaves this slot of the core empty, the place is
  // padding, with position -1. REQUIRES: 0 <= slot < per_core_batch (CHECK).
  Place PlaceOnCore(int64_t step, int core, int64_t slot) const;
  void PlacesOnCore(int64_t step, int core, int64_t first_slot, absl::Span<Place> out) const;
  // How many records `core` has in `step`. These records are in the core's first slots.
  int64_t RecordsOnCore(int64_t step, int core) const;

  // Hash of all that decides the order: dataset, seed, shuffle with its parameters, record count,
  // selection, mixture and tail. The number of epochs and the global batch do not count, because a
  // run may be resumed with others (feed_position.h).
  uint64_t Fingerprint(uint64_t dataset_fingerprint) const;
  // Fingerprint() without the changes of a mixture's weights after the first `positions` positions
  // of the feed. So a run that has taken these positions may get other weights for the rest.
  uint64_t FingerprintBefore(uint64_t dataset_fingerprint, absl::uint128 positions) const;
  // What FingerprintBefore() would give for positions that include exactly the first turns.size()
  // changes of a mixture's weights, if change i began at position turns[i]. REQUIRES: the order has
  // at least turns.size() changes (CHECK).
  uint64_t FingerprintIfChangedAt(uint64_t dataset_fingerprint,
                                  absl::Span<const absl::uint128> turns) const;
  // The changes of a mixture's weights within the first `positions` positions.
  absl::Span<const WeightChange> WeightChangesBefore(absl::uint128 positions) const;

 private:
  Order(const OrderSpec& spec, int64_t steps_per_epoch)
      : spec_(spec), steps_per_epoch_(steps_per_epoch) {}

  // How many positions of an epoch kDrop does not leave out. With kPad, these are all positions.
  int64_t UsedPositions() const;
  // The order's fingerprint with `mixture_fingerprint` for the mixture, if there is a mixture.
  uint64_t FingerprintOf(uint64_t dataset_fingerprint, uint64_t mixture_fingerprint) const;

  OrderSpec spec_;
  int64_t steps_per_epoch_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_ORDER_H_
