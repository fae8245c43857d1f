// Manages the memory of slices under one byte budget. Counts the bytes in flight. Decides how many
// bytes each stream may hold, and which stream gives memory back when another stream needs memory.
//
//   budget = used: held by streams, on its way back, or kept (SliceShelf) | free
//
// The budget is divided evenly among peers, and the part of each peer evenly among its streams. So
// each stream has a share. A share is at most a quarter of the budget: one client that stops
// reading must not starve the others. A stream may always have one slice, even a slice that is
// larger than its share, so that every stream makes progress.
//
// The cost of a slice is its bytes (slice_bytes) plus kSliceOverheadBytes. In all other numbers of
// bytes in this file, except window_bytes, a slice counts with its cost. used_bytes() is never more
// than the budget, and 0 once all memory has come back.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_SLICE_BUDGET_H_
#define SYSTOLE_CORE_ENGINE_SLICE_BUDGET_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "core/engine/step_range.h"
#include "core/memory/aligned_buffer.h"
#include "core/memory/buffer_pool.h"

namespace systole {

// The budget is charged with this many bytes for each slice, besides the bytes of the slice itself.
// A slice needs roughly this much memory for bookkeeping: its entries in the scheduler, its shared
// pointers, the allocator's headers.
inline constexpr int64_t kSliceOverheadBytes = 1024;

// Counts the slices that one stream has in flight, but does not own the slices. All slices of a
// stream have the same size.
class StreamHoldings {
 public:
  // A slice has `slice_bytes` bytes, without the overhead. Each step has `num_cores` slices.
  StreamHoldings(int64_t slice_bytes, int num_cores, const StreamMemory& memory)
      : slice_bytes_(slice_bytes), num_cores_(num_cores), memory_(memory) {}

  // A slice is begun for the stream.
  void Begin();
  // The consumer gets a slice. With gives_away (StreamMemory), the slice no longer counts.
  void Deliver();
  // A slice that was begun and not delivered is taken from the stream.
  void TakeBack();
  // The consumer has dropped a slice. REQUIRES: not gives_away.
  void Drop();

  int64_t cost_bytes() const { return slice_bytes_ + kSliceOverheadBytes; }
  // held(): slices that were begun and neither dropped nor given away. pending(): the held slices
  // that are not delivered yet.
  int64_t held() const { return held_; }
  int64_t pending() const { return pending_; }
  int64_t held_bytes() const { return held_ * cost_bytes(); }
  const StreamMemory& memory() const { return memory_; }
  // Whether the consumer has to drop a slice before it gets another slice.
  bool window_is_full() const {
    const int64_t delivered = held_ - pending_;
    return delivered >= 2 && (delivered + 1) * slice_bytes_ > memory_.window_bytes;
  }
  // The most slices that may be pending with `threads` threads: the slices of two steps, or enough
  // slices to keep every thread busy, whichever is more.
  int64_t max_pending(int threads) const {
    return std::max(std::min(int64_t{2} * num_cores_, kMaxSlicesOfTwoSteps), int64_t{4} * threads);
  }

 private:
  // Bounds the slices of two steps in max_pending(). More slices would not keep a client busier.
  static constexpr int64_t kMaxSlicesOfTwoSteps = 1024;

  const int64_t slice_bytes_;
  const int num_cores_;
  const StreamMemory memory_;
  int64_t held_ = 0;
  int64_t pending_ = 0;
};

// The functions are inline, because most of them are called for every stream whenever a stream is
// chosen.
class SliceBudget {
 public:
  SliceBudget(int64_t budget_bytes, int max_sealed_slices)
      : pool_({.budget_bytes = budget_bytes,
               .max_sealed = max_sealed_slices,
               .overhead_bytes = kSliceOverheadBytes}) {}

  // The bytes that a stream may hold: the budget divided by the larger of `parts` and kMinParts,
  // but at most the stream's ahead_bytes. `parts` is the number of peers times the number of
  // streams that the stream's peer has.
  int64_t ShareBytes(const StreamHoldings& stream, int64_t parts) const {
    return std::min(stream.memory().ahead_bytes, budget_bytes() / std::max(kMinParts, parts));
  }

  // A stream's claim on the budget: its slices, its share, and whether its consumer waits for a
  // slice.
  struct Claim {
    const StreamHoldings& holdings;
    int64_t share_bytes = 0;
    bool waits = false;
  };
  // Whether the stream may begin another slice, if there is room.
  static bool MayBegin(const Claim& stream, int threads) {
    const StreamHoldings& holdings = stream.holdings;
    if (holdings.pending() >= holdings.max_pending(threads)) return false;
    return holdings.held() == 0 ||
           holdings.held_bytes() + holdings.cost_bytes() <= stream.share_bytes;
  }
  // Whether the stream would hold at most half of its share with one more slice.
  static bool IsModest(const Claim& stream) {
    return stream.holdings.held_bytes() + stream.holdings.cost_bytes() <= stream.share_bytes / 2;
  }
  // Whether the stream holds no slice at all, and its next slice is needed now. With gives_away, a
  // slice is needed only while the consumer waits.
  static bool IsEmptyHanded(const StreamHoldings& stream, bool waits) {
    return stream.held() == 0 && (!stream.memory().gives_away || waits);
  }
  // Whether `stream` has to give back its last pending slice, to make room for a slice of
  // `starved`, a stream that holds no slice.
  static bool Yields(const Claim& stream, const Claim& starved);

  // Whether `cost_bytes` more fit into the budget once `kept_bytes` of kept slices are given back.
  bool HasRoom(int64_t cost_bytes, int64_t kept_bytes = 0) const {
    return used_bytes() - kept_bytes + cost_bytes <= budget_bytes();
  }
  // Whether HasRoom() will be true once all memory that is on its way back has arrived.
  bool WillHaveRoom(int64_t cost_bytes, int64_t kept_bytes) const;

  // Memory for a slice of `slice_bytes`. ResourceExhausted if the system has none. REQUIRES:
  // HasRoom(slice_bytes + kSliceOverheadBytes).
  absl::StatusOr<AlignedBuffer> Take(int64_t slice_bytes, BufferKind kind);
  // Memory from Take() comes back.
  void Return(AlignedBuffer buffer) { pool_.Release(std::move(buffer)); }

  // Says that the memory of a slice of this cost will come back with ReturnLate(). Until then the
  // memory counts as used.
  void ExpectBack(int64_t cost_bytes) { returning_bytes_ += cost_bytes; }
  void ReturnLate(AlignedBuffer buffer);

  // Memory from Take() belongs to a consumer from now on, and no longer counts.
  void GiveAway(const AlignedBuffer& buffer) { pool_.GiveAway(buffer.size()); }
  // The consumer has dropped memory that was given away.
  void TakeBack(AlignedBuffer buffer) { pool_.TakeBack(std::move(buffer)); }

  int64_t budget_bytes() const { return pool_.budget_bytes(); }
  int64_t used_bytes() const { return pool_.used_bytes(); }

 private:
  // No stream may hold more than 1 / kMinParts of the budget, unless it holds only one slice.
  static constexpr int64_t kMinParts = 4;

  BufferPool pool_;
  int64_t returning_bytes_ = 0;  // The cost of unwanted slices that tasks still write to.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_SLICE_BUDGET_H_
