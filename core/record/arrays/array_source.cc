#include "core/record/arrays/array_source.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "core/memory/little_endian.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr size_t kRowBytes = 8;

}  // namespace

ArraySource::ArraySource(std::shared_ptr<const ArrayTable> table)
    : table_(std::move(table)), rows_(*table_) {}

absl::Status ArraySource::Rows::Decode(absl::string_view record, MadeText& /*made*/,
                                       absl::FunctionRef<void(const FeatureView&)> visit) const {
  const uint64_t row = record.size() == kRowBytes ? LoadU64Le(record.data()) : ~uint64_t{0};
  if (row >= static_cast<uint64_t>(table_.num_rows())) {
    return absl::DataLossError("the record is not the number of a row");
  }
  table_.Visit(static_cast<int64_t>(row), visit);
  return absl::OkStatus();
}

absl::Status ArraySource::CheckNumber(int64_t record) const {
  if (record >= 0 && record < num_records()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("there is no record ", record, "; the arrays have ", num_records(), " rows"));
}

absl::StatusOr<absl::string_view> ArraySource::ReadRecord(int64_t record,
                                                          AlignedBuffer& scratch) const {
  SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  if (scratch.size() < static_cast<int64_t>(kRowBytes)) {
    SYSTOLE_ASSIGN_OR_RETURN(scratch, AlignedBuffer::Create(kBufferAlignment));
  }
  char* const row = reinterpret_cast<char*>(scratch.data());
  StoreU64Le(static_cast<uint64_t>(record), row);
  return absl::string_view(row, kRowBytes);
}

absl::Status ArraySource::ReadRecords(absl::Span<const int64_t> records, RecordBytes /*bytes*/,
                                      int64_t /*max_read_bytes*/, AlignedBuffer& /*scratch*/,
                                      RecordCallback callback) const {
  std::array<char, kRowBytes> row;
  for (size_t i = 0; i < records.size(); ++i) {
    SYSTOLE_RETURN_IF_ERROR(CheckNumber(records[i]));
    StoreU64Le(static_cast<uint64_t>(records[i]), row.data());
    SYSTOLE_RETURN_IF_ERROR(callback(i, absl::string_view(row.data(), row.size())));
  }
  return absl::OkStatus();
}

}  // namespace systole
