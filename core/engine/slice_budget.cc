#include "core/engine/slice_budget.h"

#include <optional>
#include <utility>

#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
void StreamHoldings::Begin() {
  ++held_;
  ++pending_;
}

void StreamHoldings::Deliver() {
  SYSTOLE_CHECK(pending_ > 0);
  --pending_;
  if (memory_.gives_away) --held_;
}

void StreamHoldings::TakeBack() {
  SYSTOLE_CHECK(pending_ > 0);
  --pending_;
  --held_;
}

void StreamHoldings::Drop() {
  SYSTOLE_CHECK(held_ > pending_);
  --held_;
}

// The budget is used up, and the starved stream has no slice at all. All other streams may be
// waiting too, because trainers of one job wait for the slowest trainer. Then the starved stream's
// turn would never come. So streams that are over their share give their last slices back. (A share
// shrinks when streams come.) If the starved stream needs more than a share, streams that hold more
// than half of their share give slices back, too. All these slices are made again later, in their
// turn.
//
// If the starved stream's consumer is in this process, that consumer is waiting. Then every stream
// whose consumer is in this process and does not wait gives back all its slices. A feed that is
// never read must not stop another feed.
bool SliceBudget::Yields(const Claim& stream, const Claim& starved) {
  const StreamHoldings& holdings = stream.holdings;
  // If the consumer waits for a slice and may get one, the stream moves on by itself.
  const bool moves = stream.waits && !holdings.window_is_full();
  if (holdings.pending() == 0 || moves) return false;
  const bool needs_more = starved.holdings.cost_bytes() > starved.share_bytes;
  const int64_t keep_bytes = stream.share_bytes / (needs_more ? 2 : 1);
  const bool has_too_much = holdings.held() > 1 && holdings.held_bytes() > keep_bytes;
  const bool is_look_ahead = holdings.memory().gives_away && !stream.waits;
  return has_too_much || (is_look_ahead && starved.holdings.memory().gives_away);
}

bool SliceBudget::WillHaveRoom(int64_t cost_bytes, int64_t kept_bytes) const {
  return HasRoom(cost_bytes, kept_bytes + returning_bytes_);
}

absl::StatusOr<AlignedBuffer> SliceBudget::Take(int64_t slice_bytes, BufferKind kind) {
  SYSTOLE_ASSIGN_OR_RETURN(std::optional<AlignedBuffer> buffer,
                           pool_.TryAcquire(slice_bytes, kind));
  SYSTOLE_CHECK(buffer.has_value());
  return *std::move(buffer);
}

void SliceBudget::ReturnLate(AlignedBuffer buffer) {
  returning_bytes_ -= buffer.size() + kSliceOverheadBytes;
  SYSTOLE_CHECK(returning_bytes_ >= 0);
  Return(std::move(buffer));
}

}  // namespace systole
