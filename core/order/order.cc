#include "core/order/order.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/checksum/xxh3.h"
#include "core/random/keyed_permutation.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Tweaks keep the permutations of one epoch apart. Window w takes kWindowTweak + w.
constexpr uint64_t kGlobalTweak = 0;
constexpr uint64_t kBlockTweak = 1;
constexpr uint64_t kWindowTweak = 2;

constexpr int64_t kMaxRecords = KeyedPermutation::kMaxSize;

absl::Status CheckRange(absl::string_view field, int64_t value, absl::string_view remedy) {
  if (value >= 1 && value <= kMaxRecords) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", want 1 to 2^62: ", remedy));
}

// The order of one epoch.
class EpochOrder {
 public:
  // Borrows `spec`.
  EpochOrder(const OrderSpec& spec, int64_t epoch) : spec_(spec), epoch_(epoch) {
    switch (spec.mode) {
      case ShuffleMode::kNone:
        break;
      case ShuffleMode::kGlobal:
        permutation_.emplace(spec.num_records, spec.seed, epoch, kGlobalTweak);
        break;
      case ShuffleMode::kWindow:
        block_ = std::min(spec.block_records, spec.num_records);
        num_blocks_ = (spec.num_records - 1) / block_ + 1;
        permutation_.emplace(num_blocks_, spec.seed, epoch, kBlockTweak);
        last_begin_ = permutation_->InverseAt(num_blocks_ - 1) * block_;
        break;
    }
  }

  int64_t RecordAt(int64_t position) const {
    const int64_t shuffled = ShuffledAt(position);
    return spec_.selection == nullptr ? shuffled : spec_.selection->RecordAt(shuffled);
  }

 private:
  int64_t ShuffledAt(int64_t position) const {
    switch (spec_.mode) {
      case ShuffleMode::kNone:
        return position;
      case ShuffleMode::kGlobal:
        return permutation_->At(position);
      case ShuffleMode::kWindow:
        return WindowRecordAt(position);
    }
    return position;
  }

  int64_t WindowRecordAt(int64_t position) const {
    // First undo the shuffle inside the window: where did this position come from among the blocks?
    const int64_t window = position / spec_.window_records;
    const int64_t window_begin = window * spec_.window_records;
    const int64_t window_size = std::min(spec_.window_records, spec_.num_records - window_begin);
    const KeyedPermutation in_window(window_size, spec_.seed, epoch_,
                                     kWindowTweak + static_cast<uint64_t>(window));
    int64_t place = window_begin + in_window.At(position - window_begin);

    // Then find the block there. All blocks are equally long but the last, which after the
    // permutation may stand anywhere: behind it every block begins that much earlier.
    const int64_t last_size = spec_.num_records - (num_blocks_ - 1) * block_;
    int64_t earlier_blocks = 0;
    if (place >= last_begin_) {
      if (place < last_begin_ + last_size) {
        return (num_blocks_ - 1) * block_ + (place - last_begin_);
      }
      place -= last_size;  // As if the last block were not there.
      earlier_blocks = 1;
    }
    return permutation_->At(place / block_ + earlier_blocks) * block_ + place % block_;
  }

  const OrderSpec& spec_;
  const int64_t epoch_;
  std::optional<KeyedPermutation> permutation_;  // Of records (kGlobal) or blocks (kWindow).
  // kWindow only: records per block, blocks, and the position at which the last one begins.
  int64_t block_ = 0;
  int64_t num_blocks_ = 0;
  int64_t last_begin_ = 0;
};

}  // namespace

absl::StatusOr<Order> Order::Create(const OrderSpec& spec) {
  SYSTOLE_RETURN_IF_ERROR(CheckRange("the dataset's number of records", spec.num_records,
                                     "name a dataset that holds records"));
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("global_batch", spec.global_batch, "say how many examples a step has"));
  if (spec.num_cores < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_cores is ", spec.num_cores, ", want 1 or more"));
  }
  if (spec.mode == ShuffleMode::kWindow) {
    SYSTOLE_RETURN_IF_ERROR(
        CheckRange("shuffle.block_records", spec.block_records,
                   "say how many records a block has, or shuffle.mode: GLOBAL"));
    SYSTOLE_RETURN_IF_ERROR(
        CheckRange("shuffle.window_records", spec.window_records,
                   "say how many records a window has, or shuffle.mode: GLOBAL"));
  }
  if (spec.epochs < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("epochs is ", spec.epochs, ", want 1 or more, or 0 for an endless feed"));
  }
  int64_t steps = spec.num_records / spec.global_batch;
  if (spec.tail == Tail::kPad && spec.num_records % spec.global_batch != 0) ++steps;
  if (steps == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "global_batch is ", spec.global_batch,
        spec.selection == nullptr ? ", but the dataset has only " : ", but select leaves only ",
        spec.num_records,
        " records, and tail: DROP leaves them all out; "
        "say tail: PAD, or a global_batch of at most ",
        spec.num_records));
  }
  if (spec.epochs > std::numeric_limits<int64_t>::max() / steps) {
    return absl::InvalidArgumentError(
        absl::StrCat("epochs is ", spec.epochs, " with ", steps,
                     " steps each: more than 2^63 - 1 steps; say epochs: 0 for an endless feed"));
  }
  return Order(spec, steps);
}

std::optional<int64_t> Order::total_steps() const {
  if (spec_.epochs == 0) return std::nullopt;
  return spec_.epochs * steps_per_epoch_;
}

int64_t Order::RecordsIn(int64_t step) const {
  const int64_t begin = (step % steps_per_epoch_) * spec_.global_batch;
  return std::min(spec_.global_batch, spec_.num_records - begin);
}

int64_t Order::RecordAt(int64_t epoch, int64_t position) const {
  SYSTOLE_CHECK(epoch >= 0);
  SYSTOLE_CHECK(position >= 0 && position < spec_.num_records);
  return EpochOrder(spec_, epoch).RecordAt(position);
}

Place Order::PlaceOf(int64_t step, int64_t slot) const {
  Place place;
  PlacesOf(step, slot, absl::MakeSpan(&place, 1));
  return place;
}

void Order::PlacesOf(int64_t step, int64_t first_slot, absl::Span<Place> out) const {
  SYSTOLE_CHECK(step >= 0);
  SYSTOLE_CHECK(first_slot >= 0 && first_slot <= spec_.global_batch);
  SYSTOLE_CHECK(static_cast<int64_t>(out.size()) <= spec_.global_batch - first_slot);
  const int64_t epoch = step / steps_per_epoch_;
  const EpochOrder order(spec_, epoch);
  // Below num_records + global_batch <= 2^63, so it does not overflow.
  int64_t position = (step % steps_per_epoch_) * spec_.global_batch + first_slot;
  for (Place& place : out) {
    place = {.epoch = epoch, .position = position, .record = {}};
    if (position < spec_.num_records) place.record = order.RecordAt(position);
    ++position;
  }
}

Place Order::PlaceOnCore(int64_t step, int core, int64_t slot) const {
  Place place;
  PlacesOnCore(step, core, slot, absl::MakeSpan(&place, 1));
  return place;
}

void Order::PlacesOnCore(int64_t step, int core, int64_t first_slot, absl::Span<Place> out) const {
  const CoreSplit split = this->split();
  const auto count = static_cast<int64_t>(out.size());
  SYSTOLE_CHECK(core >= 0 && core < split.num_cores());
  SYSTOLE_CHECK(first_slot >= 0 && count <= split.per_core_batch() - first_slot);
  const int64_t filled = std::clamp(split.SizeOf(core) - first_slot, int64_t{0}, count);
  if (filled > 0) {
    PlacesOf(step, split.BeginOf(core) + first_slot, out.first(static_cast<size_t>(filled)));
  }
  for (Place& place : out.subspan(static_cast<size_t>(filled))) {
    place = {.epoch = step / steps_per_epoch_, .position = -1, .record = {}};
  }
}

int64_t Order::RecordsOnCore(int64_t step, int core) const {
  const CoreSplit split = this->split();
  return std::clamp(RecordsIn(step) - split.BeginOf(core), int64_t{0}, split.SizeOf(core));
}

uint64_t Order::Fingerprint(uint64_t dataset_fingerprint) const {
  // Parameters that the mode ignores must not count.
  const bool windowed = spec_.mode == ShuffleMode::kWindow;
  Xxh3Hasher hasher;
  hasher.Update("systole order 1");
  hasher.UpdateU64(dataset_fingerprint);
  hasher.UpdateU64(spec_.seed);
  hasher.UpdateU64(static_cast<uint64_t>(spec_.mode));
  hasher.UpdateU64(windowed ? static_cast<uint64_t>(spec_.block_records) : 0);
  hasher.UpdateU64(windowed ? static_cast<uint64_t>(spec_.window_records) : 0);
  hasher.UpdateU64(static_cast<uint64_t>(spec_.num_records));
  hasher.UpdateU64(static_cast<uint64_t>(spec_.global_batch));
  hasher.UpdateU64(static_cast<uint64_t>(spec_.tail));
  if (spec_.selection != nullptr) hasher.UpdateU64(spec_.selection->fingerprint());
  return hasher.Digest64();
}

}  // namespace systole
