// Decides which of the unused blocks is dropped first when memory is short.
//
// A block has a count for each feed that has begun to read it. The count is the number of the
// block's records that the feed will still read in this pass. When none of these feeds has a record
// left to read, the block is *spent*. Blocks are dropped in this order:
//   1. blocks that were read only by feeds that are gone, the least recently read block first;
//   2. spent blocks. With one feed, the block that was spent last is dropped first, because the
//      next epoch needs the other blocks sooner. With several feeds, the block that was spent first
//      is dropped first, because a feed that is behind the others still needs the newer blocks;
//   3. the other blocks, the least recently read block first.
// A feed counts as gone if it has read nothing during many reads of other feeds.
//
// Thread-compatible. A KeptOrder holds the numbers of the blocks, not the blocks themselves.
#ifndef SYSTOLE_CORE_FETCH_KEPT_ORDER_H_
#define SYSTOLE_CORE_FETCH_KEPT_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace systole {

class KeptOrder {
  enum class Rank { kGone, kSpent, kWanted };
  // The records of a block that a feed will still read in this pass.
  struct Pass {
    uint64_t feed = 0;
    int64_t left = 0;
  };
  // The order of the blocks: by rank, and then by time.
  using Place = std::tuple<Rank, int64_t, int64_t>;

 public:
  // A block has counts for at most this many feeds. If one more feed reads the block, the oldest
  // count is dropped.
  static constexpr size_t kMaxFeeds = 8;
  // A feed counts as gone if, since its last read, other feeds have made more than this many reads,
  // and also more than four times as many reads as there are blocks in the KeptOrder.
  static constexpr int64_t kIdleReads = 1000;

  // The facts about a block. Only KeptOrder uses the members. The address of a Kept stays the same
  // until the block is removed, so a caller may keep the reference.
  struct Kept {
    int64_t number = 0;
    absl::InlinedVector<Pass, 1> passes;  // Most blocks have one feed.
    int64_t read_at = 0;                  // now_ when the block was last read.
    int64_t spent_at = 0;                 // now_ when the block was last spent.
    bool is_free = false;                 // The block is unused.
    bool has_moved = false;               // `number` is in moved_.
    std::optional<Place> place;           // The block's place in free_.
  };

  // Returns the block's facts. A new block is added as a block in use.
  Kept& Of(int64_t block);

  // Notes that a feed reads `records` records of a block. In a whole pass the feed reads
  // `records_in_block` records of this block. If the feed had already read all of these, this read
  // begins the feed's next pass.
  void Read(Kept& kept, uint64_t feed, int64_t records, int64_t records_in_block);
  // Takes back a Read() whose read did not happen.
  void Unread(Kept& kept, uint64_t feed, int64_t records);

  // Sets whether the block is unused.
  void SetFree(Kept& kept, bool is_free);

  // The unused block that is dropped first. nullopt if no block is unused. Blocks are put in order
  // here, and not at each read. So as long as all blocks have room, a read costs little.
  std::optional<int64_t> First();

  // Forgets the block, if it was added.
  void Remove(int64_t block);

  static bool IsSpent(const Kept& kept);
  size_t size() const { return blocks_.size(); }

 private:
  struct Feed {
    uint64_t name = 0;
    int64_t read_at = 0;
  };
  static Rank RankOf(const Kept& kept);
  static Place PlaceOf(const Kept& kept);
  // Notes that the feed reads now, and forgets feeds that are gone.
  void Touch(uint64_t feed);
  void Forget(uint64_t feed);
  // Notes that the block's place has changed.
  void Move(Kept& kept);
  // Moves blocks whose place has changed to their new place.
  void PutInOrder();

  int64_t now_ = 0;  // Counts reads.
  std::unordered_map<int64_t, Kept> blocks_;
  // The numbers of blocks whose place has changed, each once. Some of these blocks may have been
  // removed.
  std::vector<int64_t> moved_;
  std::set<Place> free_;   // The unused blocks, as of the last PutInOrder().
  std::list<Feed> feeds_;  // The feed that has read last is at the end.
  std::unordered_map<uint64_t, std::list<Feed>::iterator> by_name_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_KEPT_ORDER_H_
