#include "core/order/order.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/checksum/xxh3.h"
#include "core/random/keyed_permutation.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Each permutation of an epoch has a tweak of its own, so that no two are alike. Window w has the
// tweak kWindowTweak + w.
constexpr uint64_t kGlobalTweak = 0;
constexpr uint64_t kBlockTweak = 1;
constexpr uint64_t kWindowTweak = 2;

absl::Status CheckRange(absl::string_view field, int64_t value, absl::string_view remedy) {
  if (value >= 1 && value <= KeyedPermutation::kMaxSize) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", want 1 to 2^62: ", remedy));
}

// The seed of a member of a mixture. Each member has its own, because members of equal size must
// not be shuffled alike.
uint64_t MemberSeed(uint64_t seed, int member) {
  Xxh3Hasher hasher;
  hasher.Update("systole mixture's member");
  hasher.UpdateU64(seed);
  hasher.UpdateU64(static_cast<uint64_t>(member));
  return hasher.Digest64();
}

// The order of `num_records` records in one pass over them, as `spec` shuffles them.
class PassOrder {
 public:
  // Borrows `spec`, and ignores its num_records and seed.
  PassOrder(const OrderSpec& spec, int64_t num_records, uint64_t seed, int64_t pass)
      : spec_(spec), num_records_(num_records), seed_(seed), pass_(pass) {
    switch (spec.mode) {
      case ShuffleMode::kNone:
        break;
      case ShuffleMode::kGlobal:
        permutation_.emplace(num_records, seed, pass, kGlobalTweak);
        break;
      case ShuffleMode::kWindow:
        block_ = std::min(spec.block_records, num_records);
        num_blocks_ = (num_records - 1) / block_ + 1;
        permutation_.emplace(num_blocks_, seed, pass, kBlockTweak);
        last_begin_ = permutation_->InverseAt(num_blocks_ - 1) * block_;
        break;
    }
  }

  int64_t pass() const { return pass_; }

  // The record at `position`.
  int64_t At(int64_t position) const {
    switch (spec_.mode) {
      case ShuffleMode::kNone:
        return position;
      case ShuffleMode::kGlobal:
        return permutation_->At(position);
      case ShuffleMode::kWindow:
        return AtInWindow(position);
    }
    return position;
  }

  // The records at positions `first`, `first` + 1, ..
  void At(int64_t first, absl::Span<int64_t> records) const {
    if (spec_.mode == ShuffleMode::kGlobal) {
      permutation_->At(first, records);
      return;
    }
    for (int64_t& record : records) record = At(first++);
  }

 private:
  int64_t AtInWindow(int64_t position) const {
    // First undo the shuffle inside the window. `place` is where the record at `position` was
    // before that shuffle, in the sequence of permuted blocks.
    const int64_t window = position / spec_.window_records;
    const int64_t window_begin = window * spec_.window_records;
    const int64_t window_size = std::min(spec_.window_records, num_records_ - window_begin);
    const KeyedPermutation in_window(window_size, seed_, pass_,
                                     kWindowTweak + static_cast<uint64_t>(window));
    int64_t place = window_begin + in_window.At(position - window_begin);

    // Then find the block that `place` is in. The last block may be shorter than the others, and
    // the permutation may put it anywhere. The blocks after it begin earlier, by the number of
    // records that the last block lacks.
    const int64_t last_size = num_records_ - (num_blocks_ - 1) * block_;
    int64_t earlier_blocks = 0;
    if (place >= last_begin_) {
      if (place < last_begin_ + last_size) {
        return (num_blocks_ - 1) * block_ + (place - last_begin_);
      }
      place -= last_size;  // Where `place` would be without the last block.
      earlier_blocks = 1;
    }
    return permutation_->At(place / block_ + earlier_blocks) * block_ + place % block_;
  }

  const OrderSpec& spec_;
  const int64_t num_records_;
  const uint64_t seed_;
  const int64_t pass_;
  std::optional<KeyedPermutation> permutation_;  // Permutes records or blocks.
  // kWindow only: records per block, number of blocks, and where the last block begins after the
  // permutation.
  int64_t block_ = 0;
  int64_t num_blocks_ = 0;
  int64_t last_begin_ = 0;
};

// The order of one epoch.
class EpochOrder {
 public:
  // Borrows `spec`. `used` is the result of UsedPositions().
  EpochOrder(const OrderSpec& spec, int64_t epoch, int64_t used) : spec_(spec), epoch_(epoch) {
    if (spec.mixture == nullptr) {
      order_.emplace(spec, spec.num_records, spec.seed, epoch);
    } else {
      begin_ = absl::uint128(static_cast<uint64_t>(epoch)) * static_cast<uint64_t>(used);
      members_.resize(spec.mixture->members().size());
    }
  }

  // Sets the pass and the record of each of `places`, which are at positions `first`, `first` + 1,
  // .. of the epoch.
  void Fill(int64_t first, absl::Span<Place> places) {
    if (spec_.mixture != nullptr) {
      for (Place& place : places) FillMixed(first++, place);
      return;
    }
    constexpr size_t kTogether = 64;
    int64_t records[kTogether];
    for (; !places.empty(); places.remove_prefix(std::min(kTogether, places.size()))) {
      const absl::Span<Place> some = places.first(std::min(kTogether, places.size()));
      order_->At(first, absl::MakeSpan(records, some.size()));
      for (size_t i = 0; i < some.size(); ++i) {
        some[i].pass = epoch_;
        some[i].record =
            spec_.selection == nullptr ? records[i] : spec_.selection->RecordAt(records[i]);
      }
      first += static_cast<int64_t>(some.size());
    }
  }

 private:
  void FillMixed(int64_t position, Place& place) {
    const auto [member, count] = spec_.mixture->TurnAt(begin_ + static_cast<uint64_t>(position));
    const auto m = static_cast<size_t>(member);
    const SelectedRecords& records = spec_.mixture->members()[m].records;
    const auto size = static_cast<uint64_t>(records.size());
    // At steps beyond any feed's end a pass may not fit into an int64, and is cut to 63 bits.
    const auto pass = static_cast<int64_t>(absl::Uint128Low64(count / size) & (~uint64_t{0} >> 1));
    place.pass = pass;
    std::optional<PassOrder>& order = members_[m];
    if (!order.has_value() || order->pass() != pass) {
      order.emplace(spec_, records.size(), MemberSeed(spec_.seed, member), pass);
    }
    place.record =
        records.RecordAt(order->At(static_cast<int64_t>(absl::Uint128Low64(count % size))));
  }

  const OrderSpec& spec_;
  const int64_t epoch_;
  std::optional<PassOrder> order_;  // Set if there is no mixture.
  // For a mixture: how many positions all earlier epochs used.
  absl::uint128 begin_ = 0;
  // For a mixture: each member's order in the pass of the member's last filled place. Not set
  // before the member's first place.
  std::vector<std::optional<PassOrder>> members_;
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
    return absl::InvalidArgumentError(
        absl::StrCat("global_batch is ", spec.global_batch,
                     spec.selection != nullptr ? ", but select leaves only "
                     : spec.mixture != nullptr ? ", but the members have only "
                                               : ", but the dataset has only ",
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

int64_t Order::UsedPositions() const {
  return std::min(spec_.num_records, steps_per_epoch_ * spec_.global_batch);
}

int64_t Order::RecordAt(int64_t epoch, int64_t position) const {
  SYSTOLE_CHECK(epoch >= 0);
  SYSTOLE_CHECK(position >= 0 && position < spec_.num_records);
  Place place;
  EpochOrder(spec_, epoch, UsedPositions()).Fill(position, absl::MakeSpan(&place, 1));
  return *place.record;
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
  EpochOrder order(spec_, epoch, UsedPositions());
  // No position overflows: the largest one is below num_records + global_batch <= 2^63.
  const int64_t first = (step % steps_per_epoch_) * spec_.global_batch + first_slot;
  int64_t position = first;
  for (Place& place : out) {
    place = {.epoch = epoch, .pass = epoch, .position = position++, .record = {}};
  }
  const int64_t filled =
      std::clamp(spec_.num_records - first, int64_t{0}, static_cast<int64_t>(out.size()));
  order.Fill(first, out.first(static_cast<size_t>(filled)));
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
    const int64_t epoch = step / steps_per_epoch_;
    place = {.epoch = epoch, .pass = epoch, .position = -1, .record = {}};
  }
}

int64_t Order::RecordsOnCore(int64_t step, int core) const {
  const CoreSplit split = this->split();
  return std::clamp(RecordsIn(step) - split.BeginOf(core), int64_t{0}, split.SizeOf(core));
}

uint64_t Order::Fingerprint(uint64_t dataset_fingerprint) const {
  return FingerprintOf(dataset_fingerprint,
                       spec_.mixture == nullptr ? 0 : spec_.mixture->fingerprint());
}

uint64_t Order::FingerprintBefore(uint64_t dataset_fingerprint, absl::uint128 positions) const {
  return FingerprintOf(dataset_fingerprint,
                       spec_.mixture == nullptr ? 0 : spec_.mixture->FingerprintBefore(positions));
}

uint64_t Order::FingerprintIfChangedAt(uint64_t dataset_fingerprint,
                                       absl::Span<const absl::uint128> turns) const {
  SYSTOLE_CHECK(spec_.mixture != nullptr || turns.empty());
  return FingerprintOf(dataset_fingerprint,
                       spec_.mixture == nullptr ? 0 : spec_.mixture->FingerprintIfChangedAt(turns));
}

absl::Span<const WeightChange> Order::WeightChangesBefore(absl::uint128 positions) const {
  if (spec_.mixture == nullptr) return {};
  return spec_.mixture->ChangesBefore(positions);
}

uint64_t Order::FingerprintOf(uint64_t dataset_fingerprint, uint64_t mixture_fingerprint) const {
  // Parameters that the mode ignores must not change the fingerprint.
  const bool windowed = spec_.mode == ShuffleMode::kWindow;
  Xxh3Hasher hasher;
  hasher.Update("systole order 2");
  hasher.UpdateU64(dataset_fingerprint);
  hasher.UpdateU64(spec_.seed);
  hasher.UpdateU64(static_cast<uint64_t>(spec_.mode));
  hasher.UpdateU64(windowed ? static_cast<uint64_t>(spec_.block_records) : 0);
  hasher.UpdateU64(windowed ? static_cast<uint64_t>(spec_.window_records) : 0);
  hasher.UpdateU64(static_cast<uint64_t>(spec_.num_records));
  hasher.UpdateU64(static_cast<uint64_t>(spec_.tail));
  if (spec_.selection != nullptr) hasher.UpdateU64(spec_.selection->fingerprint());
  if (spec_.mixture != nullptr) hasher.UpdateU64(mixture_fingerprint);
  return hasher.Digest64();
}

}  // namespace systole
