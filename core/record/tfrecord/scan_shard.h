// Builds the index of a shard from its bytes. Damage is part of the result, not an error: a damaged
// stretch counts as one record, and the scan goes on after it.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_TFRECORD_SCAN_SHARD_H_
#define SYSTOLE_CORE_RECORD_TFRECORD_SCAN_SHARD_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/record/source/record_index.h"
#include "core/storage/byte_source.h"

namespace systole {

struct ScanOptions {
  // Whether to read every payload and check its CRC. If false, only framing is checked, and of a
  // large record only the 16 bytes of framing are read.
  bool verify_payloads = false;
  // The bytes of one read from the storage, at least 4096. A larger number makes fewer reads, but
  // the scan takes this many bytes of memory. If the source is not local, reads are larger
  // (read_window.h).
  int64_t read_bytes = 256 << 10;
  // A shard with more records than this is an error. Each record takes 8 bytes of memory. Not set:
  // any number of records.
  std::optional<uint64_t> max_records = {};
};

struct ScannedShard {
  RecordIndex index;
  // A hash of the shard's content: XXH3-64 over two numbers of each record, in order: the size of
  // the record's frame in bytes (u64le), and the payload CRC that is stored in the last 4 bytes of
  // the frame (u32le; 0 for a damaged stretch that is too short to be a record). File names and
  // times are not hashed.
  uint64_t content_hash = 0;
};

// Scans all of `source`. A length is trusted only if its CRC matches and the record ends within the
// shard. Otherwise the scan looks for the next header that has a matching CRC and whose record is
// confirmed. A record is confirmed if it ends at the shard's end or at another header with a
// matching CRC, or if its payload has the CRC that is stored after it. The bytes from the untrusted
// header to that header, or to the shard's end if there is none, are one damaged record. An empty
// shard has no records.
//   InvalidArgument    an option is out of range.
//   ResourceExhausted  more than `max_records` records. The message names the shard.
//   Otherwise only errors of `source`.
absl::StatusOr<ScannedShard> ScanShard(const ByteSource& source, const ScanOptions& options = {});

// Like ScanShard(), for a shard whose index is known. Checks the framing of each record of the
// index, and does not search for other records. Costs at most one read for each record. REQUIRES:
// the index covers `source`.
absl::StatusOr<ScannedShard> ScanIndexed(const ByteSource& source, RecordIndex index);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_TFRECORD_SCAN_SHARD_H_
