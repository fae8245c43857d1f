// Arrays for tests, and the shard that has the same examples.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_RECORD_ARRAYS_COLUMNS_H_
#define SYSTOLE_TESTS_CORE_RECORD_ARRAYS_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/example_builder.h"
#include "core/record/arrays/array_table.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"
#include "tests/core/record/tfrecord/shard_builder.h"

namespace systole {

// Arrays of every kind, with `rows` rows.
struct TestArrays {
  static constexpr size_t kPixels = 300;

  explicit TestArrays(size_t rows_wanted) : rows(rows_wanted) {
    for (size_t i = 0; i < rows * kPixels; ++i) pixels.push_back(static_cast<uint8_t>(i * 7));
    for (size_t i = 0; i < rows; ++i) labels.push_back(static_cast<uint8_t>(200 + i % 50));
    for (size_t i = 0; i < rows * 2; ++i) {
      pairs.push_back(i % 3 == 0 ? -int64_t{1} << (i % 60) : static_cast<int64_t>(i));
    }
    for (size_t i = 0; i < rows * 3; ++i) paths.push_back(static_cast<float>(i) / 4 - 1);
  }

  template <typename Number>
  static const char* BytesOf(const std::vector<Number>& numbers) {
    return reinterpret_cast<const char*>(numbers.data());
  }

  // The columns are not sorted by name.
  std::vector<ArrayColumn> Columns() const {
    return {{.name = "pixels",
             .dtype = DType::kUint8,
             .row_shape = {10, 30},
             .data = BytesOf(pixels),
             .stride_bytes = kPixels},
            {.name = "label", .dtype = DType::kUint8, .data = BytesOf(labels), .stride_bytes = 1},
            {.name = "path",
             .dtype = DType::kFloat32,
             .row_shape = {3},
             .data = BytesOf(paths),
             .stride_bytes = 12},
            {.name = "pair",
             .dtype = DType::kInt64,
             .row_shape = {2},
             .data = BytesOf(pairs),
             .stride_bytes = 16}};
  }

  std::string Record(size_t row) const {
    return ExampleBuilder()
        .AddBytes("pixels", absl::string_view(BytesOf(pixels) + row * kPixels, kPixels))
        .AddInt64s("label", {labels[row]})
        .AddFloats("path", absl::MakeConstSpan(paths).subspan(row * 3, 3))
        .AddInt64s("pair", absl::MakeConstSpan(pairs).subspan(row * 2, 2))
        .Serialize();
  }

  std::string Shard() const {
    ShardBuilder builder;
    for (size_t row = 0; row < rows; ++row) builder.Add(Record(row));
    return builder.Build();
  }

  size_t rows;
  std::vector<uint8_t> pixels, labels;
  std::vector<int64_t> pairs;
  std::vector<float> paths;
};

inline std::unique_ptr<RecordSource> ShardOf(const TestArrays& arrays) {
  absl::StatusOr<TfRecordShard> shard =
      TfRecordShard::Create(std::make_unique<MemorySource>(arrays.Shard()));
  SYSTOLE_CHECK(shard.ok());
  return std::make_unique<TfRecordShard>(*std::move(shard));
}

// The arrays must outlive the table.
inline std::shared_ptr<const ArrayTable> TableOf(const TestArrays& arrays, int threads = 1) {
  auto table = ArrayTable::Create(arrays.Columns(), static_cast<int64_t>(arrays.rows),
                                  /*owner=*/nullptr, threads);
  SYSTOLE_CHECK(table.ok());
  return *std::move(table);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_RECORD_ARRAYS_COLUMNS_H_
