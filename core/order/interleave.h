// The order of tf.data's interleave(cycle_length, block_length) over files, as a function of the
// position.
//
// `cycle_length` slots take turns. In its turn, a slot without a file opens the next file. Then the
// slot gives up to `block_length` records of its file. If the file ends within a turn, the turn
// ends, and the slot is empty until its next turn. So a file of n records takes n / block_length +
// 1 turns of its slot. The last of these turns gives n mod block_length records, maybe 0. When no
// file is left to open, empty slots are skipped.
// (tensorflow/core/kernels/data/interleave_dataset_op.cc, with or without num_parallel_calls.)
//
// Thread-compatible: const throughout.
#ifndef SYSTOLE_CORE_ORDER_INTERLEAVE_H_
#define SYSTOLE_CORE_ORDER_INTERLEAVE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace systole {

// The most slots. The limit exists because the time to look up a record grows with the number of
// slots.
inline constexpr int64_t kMaxCycleLength = 1024;

class Interleave {
 public:
  struct At {
    int64_t file = 0;   // The file's index.
    int64_t index = 0;  // The record's index in the file.
  };

  // REQUIRES: 1 <= cycle_length <= kMaxCycleLength, block_length >= 1; sizes >= 0, their sum <=
  // 2^62. O(files log files) time. Keeps up to 150 bytes a file.
  Interleave(absl::Span<const int64_t> records_per_file, int64_t cycle_length,
             int64_t block_length);

  int64_t num_records() const { return num_records_; }
  // The record at `position`. O(log files + cycle_length * log files). REQUIRES: 0 <= position <
  // num_records() (CHECK).
  At RecordAt(int64_t position) const;

  // Keeps the turns of one round, which makes RecordAt() faster for positions that ascend: O(1) for
  // each position, where most slots have a file. A value type, empty at first. Use it with one
  // Interleave only.
  class Round {
   private:
    friend class Interleave;
    struct Turn {
      int64_t begin = 0;  // The position of its first record.
      At first;
    };
    int64_t end_ = 0;  // The position after the last record.
    std::vector<Turn> turns_;
    size_t turn_ = 0;  // Where the last position was found.
  };
  // Does what the other RecordAt() does. If an earlier call has stored the round of `position` in
  // `round`, reuses it. Otherwise stores that round in `round`.
  At RecordAt(int64_t position, Round& round) const;

 private:
  // A file that a slot opens. In each round every slot has one turn.
  struct Opened {
    int64_t file = 0;
    int64_t size = 0;
    int64_t round = 0;  // The round of its first turn.
  };
  // From round `round` until the next change, each round gives `rate` records.
  struct Change {
    int64_t round = 0;
    int64_t records = 0;  // The records of all earlier rounds.
    int64_t rate = 0;
  };

  // Calls visit(begin, records, first) for each turn of the round of `position`, in order, until
  // `visit` returns false. A turn gives `records` records. They are at the positions from `begin`
  // on, and the first of them is `first`.
  template <typename Visit>
  void VisitTurns(int64_t position, Visit visit) const;
  // Records that `opened` gives in its turn of `round`.
  int64_t RecordsIn(const Opened& opened, int64_t round) const;

  int64_t block_length_;
  int64_t num_records_ = 0;
  std::vector<std::vector<Opened>> slots_;  // By slot, in the order of rounds.
  std::vector<Change> changes_;             // By round.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_INTERLEAVE_H_
