// Which values a cache keeps: those that came first, as long as their users are active.
//
// A feed goes through all of its records before it needs the first record again. If the values of
// all records do not fit, a cache that always makes room for new values loses each value before the
// feed needs it again. So this set fills up, and then keeps what it has. If half of the values fit,
// half of the look-ups find a value.
//
// Each look-up names its user. A value belongs to the user that inserted it, or that found it last.
// A user that has looked up nothing during many look-ups by other users counts as gone. The values
// of this user then make room for the values of other users.
//
// Thread-compatible. Has keys and costs, not the values. A cost is a number of bytes.
#ifndef SYSTOLE_CORE_CACHE_KEPT_SET_H_
#define SYSTOLE_CORE_CACHE_KEPT_SET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <unordered_map>

#include "core/cache/cache_key.h"

namespace systole {

class KeptSet {
 public:
  // A user counts as gone after this number of look-ups by other users, or after twice the number
  // of kept values, whichever is more.
  static constexpr int64_t kIdleLookUps = 10'000;
  // The user of values that no feed has looked up yet, such as values found on disk at the start.
  static constexpr uint64_t kNobody = 0;

  // `budget` is the most that all values together may cost.
  explicit KeptSet(int64_t budget) : budget_(budget) {}

  // Whether the value of `key` is kept. If so, the value belongs to `user` from now on.
  bool Find(const CacheKey& key, uint64_t user);

  // Whether a new value of this cost would be kept now. A value that costs more than an eighth of
  // the budget is never kept.
  bool Admits(int64_t cost) const;

  // How many values of this cost an empty set would keep. REQUIRES: cost > 0.
  int64_t RoomFor(int64_t cost) const;

  // Keeps `key` for `user`. Calls `evict` for each key that is removed to make room. Returns false
  // if `key` is kept already, if its value costs too much (Admits()), or if there is no room for
  // it.
  bool Insert(const CacheKey& key, uint64_t user, int64_t cost,
              const std::function<void(const CacheKey&)>& evict);

  bool Contains(const CacheKey& key) const { return entries_.contains(key); }

  // Stops keeping `key`, if it is kept.
  void Remove(const CacheKey& key);

  int64_t budget() const { return budget_; }
  int64_t used() const { return used_; }
  size_t size() const { return entries_.size(); }

 private:
  struct User {
    uint64_t name = 0;
    int64_t last_look_up = 0;
    std::list<CacheKey> keys;
  };
  using Users = std::list<User>;
  struct Entry {
    int64_t cost = 0;
    Users::iterator user;
    std::list<CacheKey>::iterator place;  // The key's place in the user's list of keys.
  };

  // Returns the user of this name. Adds the user if there is none. Makes it the user with the last
  // look-up.
  Users::iterator Ask(uint64_t name);
  bool IsGone(const User& user) const;

  const int64_t budget_;
  int64_t used_ = 0;
  int64_t look_ups_ = 0;
  std::unordered_map<CacheKey, Entry, CacheKeyHash> entries_;
  Users users_;  // Only users that have values, in the order of their last look-ups.
  std::unordered_map<uint64_t, Users::iterator> by_name_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CACHE_KEPT_SET_H_
