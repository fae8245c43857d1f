// The rows of an ArrayTable as records. What ReadRecord() returns is not the record itself, but the
// number of the row, from which examples() finds the values in the arrays. So no value is copied
// before it goes to its place in a batch.
//
// Thread-compatible: immutable, so any number of threads may read.
#ifndef SYSTOLE_CORE_RECORD_ARRAYS_ARRAY_SOURCE_H_
#define SYSTOLE_CORE_RECORD_ARRAYS_ARRAY_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/example_format.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/arrays/array_table.h"
#include "core/record/source/record_source.h"

namespace systole {

class ArraySource final : public RecordSource {
 public:
  explicit ArraySource(std::shared_ptr<const ArrayTable> table);

  absl::string_view path() const override { return "arrays"; }
  // Empty: arrays have no folder, so no index is kept beside them.
  std::string indexed_path() const override { return ""; }
  // The size that a TFRecord shard of these rows would have.
  uint64_t file_bytes() const override { return table_->shard_bytes(); }
  uint64_t size_bytes() const override { return table_->shard_bytes(); }
  const std::string& note() const override { return note_; }
  const ExampleFormat& examples() const override { return rows_; }
  int64_t num_records() const override { return table_->num_rows(); }
  // Rows lie in no file.
  RecordSpan span(int64_t /*record*/) const override { return {}; }
  PayloadRange payload_bytes() const override { return table_->payload_bytes(); }
  uint64_t content_hash() const override { return table_->content_hash(); }
  int64_t num_damaged() const override { return 0; }
  const std::vector<DamagedRecord>& damaged() const override { return damaged_; }

  absl::StatusOr<absl::string_view> ReadRecord(int64_t record,
                                               AlignedBuffer& scratch) const override;
  absl::Status ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                           int64_t max_read_bytes, AlignedBuffer& scratch,
                           RecordCallback callback) const override;
  bool IsTooLarge(int64_t /*record*/) const override { return false; }
  void PrefetchSpan(int64_t /*record*/) const override {}
  void Prefetch(int64_t record) const override { table_->Prefetch(record); }
  // The arrays belong to the caller, who must not change them.
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  absl::Status CheckHoldsRecords() const override { return absl::OkStatus(); }

 private:
  // A record is the number of a row: u64le.
  class Rows final : public ExampleFormat {
   public:
    explicit Rows(const ArrayTable& table) : table_(table) {}
    absl::string_view name() const override { return "row of arrays"; }
    absl::Status Decode(absl::string_view record, MadeText& made,
                        absl::FunctionRef<void(const FeatureView&)> visit) const override;

   private:
    const ArrayTable& table_;
  };

  absl::Status CheckNumber(int64_t record) const;

  const std::shared_ptr<const ArrayTable> table_;
  const Rows rows_;
  const std::string note_;
  const std::vector<DamagedRecord> damaged_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_ARRAYS_ARRAY_SOURCE_H_
