// A source that claims more bytes than it has, as a server may.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_COLUMN_BOASTING_SOURCE_H_
#define SYSTOLE_TESTS_CORE_COLUMN_BOASTING_SOURCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/column/column.h"
#include "core/column/column_file.h"
#include "core/storage/byte_source.h"
#include "core/storage/memory_source.h"

namespace systole {

class BoastingSource final : public ByteSource {
 public:
  explicit BoastingSource(std::string bytes, uint64_t claimed)
      : bytes_(std::move(bytes)), claimed_(claimed) {}
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    most_ = std::max(most_, out.size());
    return bytes_.ReadAt(offset, out);
  }
  absl::StatusOr<uint64_t> Size() const override { return claimed_; }
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  absl::string_view name() const override { return "boasting"; }
  size_t most() const { return most_; }  // The size of the largest read.

 private:
  const MemorySource bytes_;
  const uint64_t claimed_;
  mutable size_t most_ = 0;
};

inline constexpr ShardContent kBoastedContent = {.hash = 1, .num_records = int64_t{1} << 40};

// A file with a column of kBoastedContent. The claimed size fits the head, so a reader accepts the
// head. But most numbers are missing.
inline BoastingSource BoastingColumnFile() {
  Column column = {
      .feature = "n", .num_records = kBoastedContent.num_records, .facts = {.first_int64 = 0}};
  column.length = 1;
  const std::string head = ColumnFileText(kBoastedContent.hash, column);
  return BoastingSource(head + std::string(200'000, 'x'),
                        head.size() + uint64_t{8} * kBoastedContent.num_records);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_COLUMN_BOASTING_SOURCE_H_
