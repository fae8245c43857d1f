#include "core/cache/kept_set.h"

#include <algorithm>
#include <iterator>

namespace systole {
namespace {

// A value may take at most 1 / kLargestPart of the budget.
constexpr int64_t kLargestPart = 8;

}  // namespace

KeptSet::Users::iterator KeptSet::Ask(uint64_t name) {
  auto [found, is_new] = by_name_.try_emplace(name, users_.end());
  if (is_new) {
    found->second = users_.insert(users_.end(), User{.name = name});
  } else {
    users_.splice(users_.end(), users_, found->second);
  }
  found->second->last_look_up = look_ups_;
  return found->second;
}

bool KeptSet::IsGone(const User& user) const {
  const auto values = static_cast<int64_t>(entries_.size());
  return look_ups_ - user.last_look_up > std::max(kIdleLookUps, 2 * values);
}

bool KeptSet::Find(const CacheKey& key, uint64_t user) {
  ++look_ups_;
  // Users without values are not recorded. The names of users come from peers, so there may be any
  // number of names.
  if (const auto asking = by_name_.find(user); asking != by_name_.end()) Ask(user);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  const Users::iterator before = entry.user;
  if (before->name != user) {
    entry.user = Ask(user);
    entry.user->keys.splice(entry.user->keys.end(), before->keys, entry.place);
    if (before->keys.empty()) {
      by_name_.erase(before->name);
      users_.erase(before);
    }
  }
  return true;
}

bool KeptSet::Admits(int64_t cost) const {
  if (cost > budget_ / kLargestPart) return false;
  return used_ + cost <= budget_ || (!users_.empty() && IsGone(users_.front()));
}

int64_t KeptSet::RoomFor(int64_t cost) const {
  return cost > budget_ / kLargestPart ? 0 : budget_ / cost;
}

bool KeptSet::Insert(const CacheKey& key, uint64_t user, int64_t cost,
                     const std::function<void(const CacheKey&)>& evict) {
  if (cost > budget_ / kLargestPart || entries_.contains(key)) return false;
  while (used_ + cost > budget_) {
    if (users_.empty() || !IsGone(users_.front())) return false;
    const CacheKey oldest = users_.front().keys.front();
    evict(oldest);
    Remove(oldest);
  }
  const Users::iterator owner = Ask(user);
  owner->keys.push_back(key);
  entries_.emplace(key, Entry{.cost = cost, .user = owner, .place = std::prev(owner->keys.end())});
  used_ += cost;
  return true;
}

void KeptSet::Remove(const CacheKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  const Users::iterator owner = found->second.user;
  owner->keys.erase(found->second.place);
  if (owner->keys.empty()) {
    by_name_.erase(owner->name);
    users_.erase(owner);
  }
  used_ -= found->second.cost;
  entries_.erase(found);
}

}  // namespace systole
