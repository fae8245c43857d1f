#include "core/record/source/record_index.h"

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/storage/byte_source.h"
#include "core/text/foreign_text.h"

namespace systole {

absl::Status TooManyRecords(absl::string_view name, uint64_t max_records) {
  return absl::ResourceExhaustedError(
      absl::StrCat("shard \"", ForeignName(BaseName(name)), "\" has more than ", max_records,
                   " records, the most for a shard that is not on this machine; write smaller "
                   "shards, or copy the shard here"));
}

RecordIndex::RecordIndex(std::vector<uint64_t> ends, std::vector<DamagedRecord> damaged,
                         int64_t num_damaged)
    : ends_(std::move(ends)), damaged_(std::move(damaged)), num_damaged_(num_damaged) {
  uint64_t previous = 0;
  for (const uint64_t end : ends_) {
    SYSTOLE_CHECK(end > previous);
    previous = end;
  }
}

RecordIndex RecordIndex::WithDamage(std::vector<DamagedRecord> damaged, int64_t num_damaged) && {
  damaged_ = std::move(damaged);
  num_damaged_ = num_damaged;
  return std::move(*this);
}

}  // namespace systole
