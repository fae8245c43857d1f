// TFRecord as a format of shards: reads the records of one file in any order, by an index, and
// checks each.
//
// Thread-compatible: immutable, so any number of threads may read. Owns its bytes.
#ifndef SYSTOLE_CORE_RECORD_TFRECORD_TFRECORD_SHARD_H_
#define SYSTOLE_CORE_RECORD_TFRECORD_TFRECORD_SHARD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/example/example_format.h"
#include "core/record/source/shard_format.h"
#include "core/record/source/span_source.h"
#include "core/storage/byte_source.h"

namespace systole {

// The row of TFRecord in the table of formats.
const ShardFormat& TfRecordFormat();

class TfRecordShard final : public SpanSource {
 public:
  // Opens a shard that is not a file: scans `source` and keeps the index in memory.
  static absl::StatusOr<TfRecordShard> Create(std::unique_ptr<ByteSource> source,
                                              const ShardOptions& options = {});

  const ExampleFormat& examples() const override;

 private:
  friend const ShardFormat& TfRecordFormat();

  explicit TfRecordShard(IndexedFile file);
  static absl::StatusOr<std::unique_ptr<RecordSource>> Open(ShardFile file,
                                                            const ShardOptions& options);

  absl::StatusOr<absl::string_view> Check(int64_t record, absl::string_view frame) const override;
  absl::StatusOr<std::string> CauseIfTooLarge(int64_t record) const override;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_TFRECORD_TFRECORD_SHARD_H_
