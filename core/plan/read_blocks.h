// Which bytes of a far shard are read together. Each record that can be read ahead is in one block:
// a run of neighbours that one request fetches, and that is kept or dropped as a whole. Blocks
// depend on the order, because a block is worth fetching as a whole only if all of it is needed
// soon:
//   no shuffle   runs of some MiB: the feed needs the whole run next.
//   WINDOW       runs of some MiB, too, but a run also ends where a block of the order ends. So a
//                run has no bytes that only another window needs.
//   GLOBAL       the record alone. If all fetched bytes are kept, runs of some 100 KiB, because the
//                neighbours are needed later, and small requests are slow.
//
// Records that are files are always read alone.
//
// A run has all records that begin in one stretch of the file. So there is no table of blocks: two
// binary searches of the index find the block of a record.
//
// The blocks of a compressed file are runs of pieces (core/storage/stored_pieces.h) instead of
// records, with the same lengths. A record that lies in the pieces of two blocks needs both blocks.
// If records are read in order, each piece is read once. With GLOBAL, if not all bytes are kept, a
// piece is read once for each record that lies in it.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CORE_PLAN_READ_BLOCKS_H_
#define SYSTOLE_CORE_PLAN_READ_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "core/order/order.h"
#include "core/record/source/record_source.h"

namespace systole {

// Bytes of RecordSource::far_bytes(), and the records [first, last] of the shard that need them.
struct ReadBlock {
  const RecordSource* shard = nullptr;
  int64_t first = 0;
  int64_t last = 0;
  uint64_t offset = 0;
  uint64_t size = 0;

  int64_t num_records() const { return last - first + 1; }
  friend bool operator==(const ReadBlock&, const ReadBlock&) = default;
};

class ReadBlocks {
 public:
  // The bytes of a run without shuffling, or within a block of WINDOW. A run of this size is large
  // enough that latency is small beside the transfer, and small enough that a window has several
  // runs.
  static constexpr uint64_t kRunBytes = uint64_t{4} << 20;
  // The bytes of a run with GLOBAL, if everything is kept.
  static constexpr uint64_t kKeptRunBytes = uint64_t{256} << 10;

  // `keeps_all`: all bytes of the dataset that were fetched are kept.
  ReadBlocks(const Order& order, bool keeps_all);

  // The blocks of a record. A record of a compressed shard may have several blocks. Any other
  // record has one.
  using Blocks = absl::InlinedVector<ReadBlock, 2>;
  // The blocks of record `index` of `shard`. This record is record number `record` of the dataset
  // or, in a zip, a part of that record.
  // REQUIRES: the shard has far_bytes(), and the record is not too large to be read. O(log records)
  // for each block.
  Blocks BlocksOf(const RecordSource& shard, int64_t index, int64_t record) const;

 private:
  // Records [first, end) of a shard.
  struct Records {
    int64_t first = 0;
    int64_t end = 0;
  };

  // The records that may share blocks with record `index`.
  Records SharingWith(const RecordSource& shard, int64_t index, int64_t record) const;
  // Adds the blocks of a record's pieces of one kind.
  void AddBlocks(const RecordSource& shard, int64_t index, const Records& sharing, size_t kind,
                 Blocks& blocks) const;

  uint64_t run_bytes_;        // 0: each record by itself.
  int64_t window_block_ = 0;  // Records of a block of WINDOW; 0: runs may end anywhere.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_READ_BLOCKS_H_
