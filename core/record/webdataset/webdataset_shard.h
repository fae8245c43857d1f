// WebDataset's tar archives as a format of shards. A record is a sample, which means the
// consecutive files of one key. Its payload is the stretch of the archive with these files.
//
// Thread-compatible: immutable, so any number of threads may read. Owns its bytes.
#ifndef SYSTOLE_CORE_RECORD_WEBDATASET_WEBDATASET_SHARD_H_
#define SYSTOLE_CORE_RECORD_WEBDATASET_WEBDATASET_SHARD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/example/example_format.h"
#include "core/record/source/shard_format.h"
#include "core/record/source/span_source.h"
#include "core/record/webdataset/scan_archive.h"

namespace systole {

// The row of WebDataset in the table of formats.
const ShardFormat& WebDatasetFormat();

class WebDatasetShard final : public SpanSource {
 public:
  const ExampleFormat& examples() const override;

 private:
  friend const ShardFormat& WebDatasetFormat();

  WebDatasetShard(IndexedFile file, std::vector<Sample> samples);
  static absl::StatusOr<std::unique_ptr<RecordSource>> Open(ShardFile file,
                                                            const ShardOptions& options);

  absl::StatusOr<absl::string_view> Check(int64_t record, absl::string_view bytes) const override;
  absl::StatusOr<std::string> CauseIfTooLarge(int64_t record) const override;
  // The cause of a damaged sample.
  std::string CauseOf(int64_t record) const;

  std::vector<Sample> samples_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_WEBDATASET_WEBDATASET_SHARD_H_
