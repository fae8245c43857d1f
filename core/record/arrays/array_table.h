// Arrays in the memory of this process, as a table: row i of every array belongs to record i. Each
// array is a feature, as `systole.write` would write it:
//   uint8, one dimension      an int64 feature with one value
//   uint8, more dimensions    a bytes feature with one value, the row's bytes
//   float32                   a float feature with the row's values
//   int64                     an int64 feature with the row's values
// So the records, their sizes and their content hash are those of a TFRecord shard with these
// examples.
//
// Thread-compatible: immutable. The arrays must not change while the table lives.
#ifndef SYSTOLE_CORE_RECORD_ARRAYS_ARRAY_TABLE_H_
#define SYSTOLE_CORE_RECORD_ARRAYS_ARRAY_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/example/example_builder.h"
#include "core/example/feature_view.h"
#include "core/record/source/shard_facts.h"
#include "core/tensor/dtype.h"

namespace systole {

// One array.
struct ArrayColumn {
  std::string name;
  DType dtype = DType::kUint8;  // kUint8, kFloat32 or kInt64.
  // The array's dimensions without the first. Empty: a row is one value.
  std::vector<int64_t> row_shape = {};
  const char* data = nullptr;  // Row 0. The values of a row lie one after the other.
  // The distance from one row to the next. May be negative, or 0.
  int64_t stride_bytes = 0;
};

class ArrayTable {
 public:
  // Makes a table of `rows` rows. Reads all rows once, on `threads` threads, for the content hash.
  // `owner` owns the arrays. The table holds `owner` as long as it lives.
  //   InvalidArgument  there is no column, two columns have the same name, a dtype is not uint8,
  //                    float32 or int64, or a row is too large.
  //   Cancelled        InterruptRequested().
  static absl::StatusOr<std::shared_ptr<const ArrayTable>> Create(std::vector<ArrayColumn> columns,
                                                                  int64_t rows,
                                                                  std::shared_ptr<const void> owner,
                                                                  int threads);

  int64_t num_rows() const { return rows_; }
  // The size in bytes of a TFRecord shard with these records, framing included.
  uint64_t shard_bytes() const { return shard_bytes_; }
  // The sizes in bytes of the smallest and of the largest record, without framing.
  PayloadRange payload_bytes() const { return payload_bytes_; }
  // The content hash of a TFRecord shard with these records.
  uint64_t content_hash() const { return content_hash_; }

  // Calls `visit` with each feature of the row, in the order of names. The views borrow the table.
  // REQUIRES: 0 <= row < num_rows().
  void Visit(int64_t row, absl::FunctionRef<void(const FeatureView&)> visit) const;

  // The row as a tf.train.Example. REQUIRES: 0 <= row < num_rows().
  std::string RecordOf(int64_t row) const;

  // Loads the beginning of the row into the processor's cache.
  void Prefetch(int64_t row) const;

 private:
  struct Column {
    ArrayColumn array;
    FeatureKind kind = FeatureKind::kBytes;
    uint64_t row_bytes = 0;
  };
  // A record in two parts: the value of column `largest_`, and the bytes around it.
  struct CutRecord {
    RecordAround around;
    absl::string_view value;

    uint64_t size() const { return around.size() + value.size(); }
  };

  ArrayTable(std::vector<Column> columns, int64_t rows, std::shared_ptr<const void> owner);

  static absl::StatusOr<Column> Checked(ArrayColumn array);
  absl::string_view BytesOf(const Column& column, int64_t row) const {
    return {column.array.data + row * column.array.stride_bytes, column.row_bytes};
  }
  FeatureView ViewOf(const Column& column, int64_t row) const;
  CutRecord Cut(int64_t row) const;
  // Sets the sizes and the content hash.
  absl::Status Hash(int threads);

  const std::vector<Column> columns_;  // Sorted by name.
  const int64_t rows_;
  const std::shared_ptr<const void> owner_;
  // Among the columns whose values have the same bytes in a record as in memory, the one with the
  // largest rows. RecordOf() copies its values only once, and Hash() reads them in place.
  // columns_.size() if there is no such column.
  size_t largest_;
  uint64_t shard_bytes_ = 0;
  PayloadRange payload_bytes_ = {};
  uint64_t content_hash_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_ARRAYS_ARRAY_TABLE_H_
