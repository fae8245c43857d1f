// The numbers that a BlockReader counts.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CORE_FETCH_BLOCK_READER_STATS_H_
#define SYSTOLE_CORE_FETCH_BLOCK_READER_STATS_H_

#include <cstdint>

namespace systole {

struct BlockReaderStats {
  // These numbers show the present state.
  int64_t threads = 0;
  int64_t reads_under_way = 0;  // Including reads that hang.
  int64_t reads_queued = 0;
  int64_t reads_hung = 0;  // Reads that have timed out and have not returned.
  int64_t memory_bytes = 0;
  // The part of memory_bytes for blocks that wait to be read, are being read, or are in use.
  int64_t memory_in_use_bytes = 0;
  // These numbers are totals since the BlockReader began.
  int64_t blocks_read = 0;  // Read from their sources, not from disk.
  int64_t blocks_failed = 0;
  int64_t blocks_timed_out = 0;
  int64_t bytes_read = 0;
  int64_t bytes_from_memory = 0;
  int64_t bytes_from_disk = 0;
  int64_t reads_hedged = 0;  // Second reads of a block whose first read was slow.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_BLOCK_READER_STATS_H_
