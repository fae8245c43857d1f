// The order of tf.data's interleave(cycle_length, block_length) over files, as a function of the
// position.
//
// `cycle_length` slots take turns. In its turn, a slot without a file opens the next file. Then the
// slot gives `block_length` records of its file. If the file ends within a turn, the turn ends, and
// the slot is empty until its next turn. So a file of n records takes floor(n / block_length) + 1
// turns of its slot. The last of these turns gives the remaining n mod block_length records, which
// may be none. When no file is left to open, empty slots are skipped.
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

// The most slots. The time to look up a record grows with the number of slots.
inline constexpr int64_t kMaxCycleLength = 1024;

class Interleave {
 public:
  struct At {
    int64_t file = 0;   // The file's index.
    int64_t index = 0;  // The record's index in the file.
  };

  // Takes O(files * log files) time, and up to 150 bytes of memory for each file. REQUIRES: 1 <=
  // cycle_length <= kMaxCycleLength, block_length >= 1 (CHECK); each file has 0 or more records,
  // all files together at most 2^62.
  Interleave(absl::Span<const int64_t> records_per_file, int64_t cycle_length,
             int64_t block_length);

  int64_t num_records() const { return num_records_; }
  // The record at `position`. O(cycle_length * log files). REQUIRES: 0 <= position < num_records()
  // (CHECK).
  At RecordAt(int64_t position) const;

  // Keeps the turns of one round, in which each slot has one turn. For positions in ascending
  // order, RecordAt() with a Round takes only O(1) each while most slots have a file. A value type,
  // empty at first. Use a Round with one Interleave only.
  class Round {
   private:
    friend class Interleave;
    struct Turn {
      int64_t begin = 0;  // The position of `first`.
      At first;           // The turn's first record.
    };
    int64_t end_ = 0;  // The position after the round's last record.
    std::vector<Turn> turns_;
    size_t turn_ = 0;  // The turn of the position that was looked up last.
  };
  // Does what the other RecordAt() does, with `round` as a cache. If `round` does not hold the
  // turns of the round in which `position` lies, stores these turns in `round`.
  At RecordAt(int64_t position, Round& round) const;

 private:
  // A file that a slot opens.
  struct Opened {
    int64_t file = 0;
    int64_t size = 0;
    int64_t round = 0;  // The round of the file's first turn.
  };
  // From round `round` until the next change, each round gives `rate` records.
  struct Change {
    int64_t round = 0;
    int64_t records = 0;  // The records of all earlier rounds.
    int64_t rate = 0;
  };

  // Calls visit(begin, records, first) for each turn of the round in which `position` lies, in
  // order, until `visit` returns false. The turn gives `records` records, 1 or more, at the
  // positions from `begin` on. `first` is the first of these records.
  template <typename Visit>
  void VisitTurns(int64_t position, Visit visit) const;
  // Records that `opened` gives in its turn of `round`.
  int64_t RecordsIn(const Opened& opened, int64_t round) const;

  int64_t block_length_;
  int64_t num_records_ = 0;
  std::vector<std::vector<Opened>> slots_;  // For each slot: its files, in the order of rounds.
  std::vector<Change> changes_;             // In the order of rounds.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_INTERLEAVE_H_
