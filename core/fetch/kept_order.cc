#include "core/fetch/kept_order.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/status/check.h"

namespace systole {

KeptOrder::Rank KeptOrder::RankOf(const Kept& kept) {
  if (kept.passes.empty()) return Rank::kGone;
  const bool is_spent = std::all_of(kept.passes.begin(), kept.passes.end(),
                                    [](const Pass& pass) { return pass.left <= 0; });
  return is_spent ? Rank::kSpent : Rank::kWanted;
}

KeptOrder::Place KeptOrder::PlaceOf(int64_t block, const Kept& kept) {
  const Rank rank = RankOf(kept);
  return {rank, rank == Rank::kSpent ? kept.spent_at : kept.read_at, block};
}

void KeptOrder::Touch(uint64_t feed) {
  ++now_;
  const auto known = by_name_.find(feed);
  if (known == by_name_.end()) {
    by_name_[feed] = feeds_.insert(feeds_.end(), {.name = feed, .read_at = now_});
  } else {
    known->second->read_at = now_;
    feeds_.splice(feeds_.end(), feeds_, known->second);
  }
  const int64_t idle = std::max(kIdleReads, 4 * static_cast<int64_t>(blocks_.size()));
  while (now_ - feeds_.front().read_at > idle) Forget(feeds_.front().name);
}

void KeptOrder::Forget(uint64_t feed) {
  const auto known = by_name_.find(feed);
  feeds_.erase(known->second);
  by_name_.erase(known);
  for (auto& [block, kept] : blocks_) {
    if (kept.is_free) free_.erase(PlaceOf(block, kept));
    const bool was_wanted = RankOf(kept) == Rank::kWanted;
    std::erase_if(kept.passes, [feed](const Pass& pass) { return pass.feed == feed; });
    if (was_wanted && RankOf(kept) == Rank::kSpent) kept.spent_at = now_;
    if (kept.is_free) free_.insert(PlaceOf(block, kept));
  }
}

void KeptOrder::Read(int64_t block, uint64_t feed, int64_t records, int64_t records_in_block) {
  Touch(feed);
  Kept& kept = blocks_[block];
  if (kept.is_free) free_.erase(PlaceOf(block, kept));
  kept.read_at = now_;
  auto pass = std::find_if(kept.passes.begin(), kept.passes.end(),
                           [feed](const Pass& each) { return each.feed == feed; });
  if (pass == kept.passes.end()) {
    if (kept.passes.size() == kMaxFeeds) kept.passes.erase(kept.passes.begin());
    pass = kept.passes.insert(kept.passes.end(), {.feed = feed});
  }
  if (pass->left <= 0) pass->left = records_in_block;
  pass->left -= records;
  if (RankOf(kept) == Rank::kSpent) kept.spent_at = now_;
  if (kept.is_free) free_.insert(PlaceOf(block, kept));
}

void KeptOrder::Unread(int64_t block, uint64_t feed, int64_t records) {
  const auto known = blocks_.find(block);
  if (known == blocks_.end()) return;
  Kept& kept = known->second;
  if (kept.is_free) free_.erase(PlaceOf(block, kept));
  for (Pass& pass : kept.passes) {
    if (pass.feed == feed) pass.left += records;
  }
  if (kept.is_free) free_.insert(PlaceOf(block, kept));
}

void KeptOrder::SetFree(int64_t block, bool is_free) {
  const auto known = blocks_.find(block);
  SYSTOLE_CHECK(known != blocks_.end());
  Kept& kept = known->second;
  if (kept.is_free == is_free) return;
  kept.is_free = is_free;
  if (is_free) {
    free_.insert(PlaceOf(block, kept));
  } else {
    free_.erase(PlaceOf(block, kept));
  }
}

std::optional<int64_t> KeptOrder::First() const {
  if (free_.empty()) return std::nullopt;
  const Place& first = *free_.begin();
  if (std::get<Rank>(first) != Rank::kSpent || feeds_.size() > 1) return std::get<2>(first);
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  return std::get<2>(*std::prev(free_.lower_bound({Rank::kWanted, kLowest, kLowest})));
}

void KeptOrder::Remove(int64_t block) {
  const auto known = blocks_.find(block);
  if (known == blocks_.end()) return;
  if (known->second.is_free) free_.erase(PlaceOf(block, known->second));
  blocks_.erase(known);
}

bool KeptOrder::IsSpent(int64_t block) const {
  const auto known = blocks_.find(block);
  return known != blocks_.end() && RankOf(known->second) == Rank::kSpent;
}

}  // namespace systole
