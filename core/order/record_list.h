// A list of the positions of the records that meet a condition, in ascending order. At() finds a
// position by its rank in the list. A list that was chosen from n positions takes n bits of memory.
// The tables for At() take at most 3/8 n bits more.
//
// Thread-compatible: const throughout.
#ifndef SYSTOLE_CORE_ORDER_RECORD_LIST_H_
#define SYSTOLE_CORE_ORDER_RECORD_LIST_H_

#include <cstdint>
#include <vector>

namespace systole {

// Stands for the number of a record if only a server knows the number (RecordList::OfUnknown()).
inline constexpr int64_t kUnknownRecord = -1;

class RecordList {
 public:
  // Bit i % 64 of words[i / 64] says whether the list has position i, for 0 <= i < num_positions.
  // Other bits are ignored. REQUIRES: enough words.
  RecordList(std::vector<uint64_t> words, int64_t num_positions);
  // A list of `size` positions. This process knows the list's size and hash(), but no position.
  static RecordList OfUnknown(int64_t size, int64_t num_positions, uint64_t hash);

  bool is_known() const { return is_known_; }
  // The number of positions from which the list was chosen.
  int64_t num_positions() const { return num_positions_; }
  int64_t size() const { return size_; }
  // Position number `rank` of the list, counted from 0. kUnknownRecord if !is_known(). Takes O(1)
  // where the list is dense, and O(log(gap)) where neighbours in the list are `gap` positions
  // apart. REQUIRES: 0 <= rank < size() (CHECK).
  int64_t At(int64_t rank) const;

  // Hash of the positions and of their number.
  uint64_t hash() const { return hash_; }

 private:
  RecordList() = default;

  bool is_known_ = true;
  int64_t num_positions_ = 0;
  int64_t size_ = 0;
  uint64_t hash_ = 0;
  std::vector<uint64_t> words_;
  // Two numbers for each block of 512 positions: how many positions of the list lie before the
  // block, and the `sums` for WordAt() (record_list.cc).
  std::vector<int64_t> ranks_;
  // The blocks in which the list's positions of rank 0, 512, 1024, .. lie.
  std::vector<int64_t> samples_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_RECORD_LIST_H_
