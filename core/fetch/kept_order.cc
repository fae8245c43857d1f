#include "core/fetch/kept_order.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace systole {

namespace {

// If moved_ has more than this many numbers plus two for each block, Move() calls PutInOrder(),
// which empties moved_. Otherwise the numbers of removed blocks could pile up in moved_.
constexpr size_t kMostMoved = 64;

}  // namespace

KeptOrder::Rank KeptOrder::RankOf(const Kept& kept) {
  if (kept.passes.empty()) return Rank::kGone;
  const bool is_spent = std::all_of(kept.passes.begin(), kept.passes.end(),
                                    [](const Pass& pass) { return pass.left <= 0; });
  return is_spent ? Rank::kSpent : Rank::kWanted;
}

KeptOrder::Place KeptOrder::PlaceOf(const Kept& kept) {
  const Rank rank = RankOf(kept);
  return {rank, rank == Rank::kSpent ? kept.spent_at : kept.read_at, kept.number};
}

void KeptOrder::Touch(uint64_t feed) {
  ++now_;
  if (!feeds_.empty() && feeds_.back().name == feed) {
    feeds_.back().read_at = now_;
  } else if (const auto known = by_name_.find(feed); known == by_name_.end()) {
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
    const bool was_wanted = RankOf(kept) == Rank::kWanted;
    const auto end = std::remove_if(kept.passes.begin(), kept.passes.end(),
                                    [feed](const Pass& pass) { return pass.feed == feed; });
    kept.passes.erase(end, kept.passes.end());
    if (was_wanted && RankOf(kept) == Rank::kSpent) kept.spent_at = now_;
    Move(kept);
  }
}

KeptOrder::Kept& KeptOrder::Of(int64_t block) {
  Kept& kept = blocks_[block];
  kept.number = block;
  return kept;
}

void KeptOrder::Read(Kept& kept, uint64_t feed, int64_t records, int64_t records_in_block) {
  Touch(feed);
  kept.read_at = now_;
  auto pass = std::find_if(kept.passes.begin(), kept.passes.end(),
                           [feed](const Pass& each) { return each.feed == feed; });
  if (pass == kept.passes.end()) {
    if (kept.passes.size() == kMaxFeeds) kept.passes.erase(kept.passes.begin());
    pass = kept.passes.insert(kept.passes.end(), Pass{.feed = feed});
  }
  if (pass->left <= 0) pass->left = records_in_block;
  pass->left -= records;
  if (RankOf(kept) == Rank::kSpent) kept.spent_at = now_;
  Move(kept);
}

void KeptOrder::Unread(Kept& kept, uint64_t feed, int64_t records) {
  for (Pass& pass : kept.passes) {
    if (pass.feed == feed) pass.left += records;
  }
  Move(kept);
}

void KeptOrder::SetFree(Kept& kept, bool is_free) {
  kept.is_free = is_free;
  Move(kept);
}

void KeptOrder::Move(Kept& kept) {
  if (kept.has_moved) return;
  kept.has_moved = true;
  moved_.push_back(kept.number);
  if (moved_.size() > kMostMoved + 2 * blocks_.size()) PutInOrder();
}

void KeptOrder::PutInOrder() {
  for (const int64_t block : moved_) {
    const auto known = blocks_.find(block);
    if (known == blocks_.end()) continue;
    Kept& kept = known->second;
    kept.has_moved = false;
    if (kept.place.has_value()) free_.erase(*kept.place);
    kept.place.reset();
    if (!kept.is_free) continue;
    kept.place = PlaceOf(kept);
    free_.insert(*kept.place);
  }
  moved_.clear();
}

std::optional<int64_t> KeptOrder::First() {
  PutInOrder();
  if (free_.empty()) return std::nullopt;
  const Place& first = *free_.begin();
  if (std::get<Rank>(first) != Rank::kSpent || feeds_.size() > 1) return std::get<2>(first);
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  return std::get<2>(*std::prev(free_.lower_bound({Rank::kWanted, kLowest, kLowest})));
}

void KeptOrder::Remove(int64_t block) {
  const auto known = blocks_.find(block);
  if (known == blocks_.end()) return;
  if (known->second.place.has_value()) free_.erase(*known->second.place);
  blocks_.erase(known);
}

bool KeptOrder::IsSpent(const Kept& kept) { return RankOf(kept) == Rank::kSpent; }

}  // namespace systole
