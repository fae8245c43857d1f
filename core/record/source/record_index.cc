#include "core/record/source/record_index.h"

#include "core/status/check.h"

namespace systole {

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
