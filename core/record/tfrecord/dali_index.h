// The index of a TFRecord shard as text, as DALI's tfrecord2idx writes it: one `<offset> <size>\n`
// per record in file order, with the offset and size of the whole frame.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_TFRECORD_DALI_INDEX_H_
#define SYSTOLE_CORE_RECORD_TFRECORD_DALI_INDEX_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/record/source/record_index.h"

namespace systole {

// InvalidArgument if the records do not cover [0, shard_bytes) in order. The message names the
// line.
absl::StatusOr<RecordIndex> ParseDaliIndex(absl::string_view text, uint64_t shard_bytes);

// The most bytes that the index text of a shard of `shard_bytes` and at most `max_records` can
// have. Longer texts need not be read.
uint64_t MaxDaliIndexBytes(uint64_t shard_bytes, uint64_t max_records = kMaxIndexedRecords);

// The text of an index, byte for byte as tfrecord2idx writes it. A damaged stretch is one line like
// any other line. A reader checks each record's header anyway, and so finds the damage again.
std::string DaliIndexText(const RecordIndex& index);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_TFRECORD_DALI_INDEX_H_
