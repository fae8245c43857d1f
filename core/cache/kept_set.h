// Which values a cache keeps: those that came first, as long as their users are active.
//
// A feed goes through all of its records before it needs the first record again. If not all of the
// records fit, a cache that always makes room for new values loses each record before it is needed
// again. So this set fills up and then stays as it is. If half of the records fit, half of the
// look-ups find a value. Each look-up names its user, and a value belongs to the user that found it
// last. A user that has looked up nothing during many look-ups by other users counts as gone. Its
// values then make room for the values of other users.
//
// Thread-compatible. Knows keys and sizes, not the values.
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
  // A user counts as gone after this many look-ups by other users, or after twice as many look-ups
  // as there are kept values, whichever is more.
  static constexpr int64_t kIdleLookUps = 10'000;
  // The user of values that no feed has asked for yet, such as those found on disk at the start.
  static constexpr uint64_t kNobody = 0;

  // `budget` bounds the costs of all values together.
  explicit KeptSet(int64_t budget) : budget_(budget) {}

  // Whether `key` is kept. If so, it belongs to `user` from now on.
  bool Find(const CacheKey& key, uint64_t user);

  // Whether a value of this cost would be kept. A value that costs more than an eighth of the
  // budget is not kept.
  bool Admits(int64_t cost) const;

  // How many values of this cost an empty set would keep. REQUIRES: cost > 0.
  int64_t RoomFor(int64_t cost) const;

  // Keeps `key` for `user`. Calls `evict` for each key that is removed to make room. Returns false
  // if `key` is not admitted, or is kept already.
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

  // Returns the user of this name, which is added if it is new. Notes that the user has just asked
  // for something.
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
