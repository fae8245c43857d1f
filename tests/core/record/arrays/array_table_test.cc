#include "core/record/arrays/array_table.h"

#include <memory>
#include <string>
#include <vector>

#include "core/interrupt/interrupt.h"
#include "core/record/source/record_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/arrays/columns.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

absl::Status CreateStatus(std::vector<ArrayColumn> columns) {
  return ArrayTable::Create(std::move(columns), 1, nullptr, 1).status();
}

TEST(ArrayTableTest, CountsAndHashesAsAShardOfTheSameExamplesDoes) {
  for (const size_t rows : {1, 2, 33, 5000}) {
    const TestArrays arrays(rows);
    const std::unique_ptr<RecordSource> shard = ShardOf(arrays);
    for (const int threads : {1, 3}) {
      const std::shared_ptr<const ArrayTable> table = TableOf(arrays, threads);
      EXPECT_EQ(table->num_rows(), shard->num_records());
      EXPECT_EQ(table->content_hash(), shard->content_hash());
      EXPECT_EQ(table->shard_bytes(), shard->size_bytes());
      EXPECT_EQ(table->payload_bytes(), shard->payload_bytes());
    }
  }
}

TEST(ArrayTableTest, RecordOfSerializesARowAsAnExample) {
  const TestArrays arrays(7);
  for (size_t row = 0; row < arrays.rows; ++row) {
    EXPECT_EQ(TableOf(arrays)->RecordOf(static_cast<int64_t>(row)), arrays.Record(row));
  }
}

TEST(ArrayTableTest, AChangedValueOfAnyArrayChangesTheHash) {
  TestArrays arrays(40);
  const uint64_t hash = TableOf(arrays)->content_hash();
  const auto check = [&](auto& value) {
    const auto before = value;
    value += 1;
    EXPECT_NE(TableOf(arrays)->content_hash(), hash);
    value = before;
    EXPECT_EQ(TableOf(arrays)->content_hash(), hash);
  };
  check(arrays.pixels.front());
  check(arrays.pixels.back());
  check(arrays.labels.front());
  check(arrays.labels.back());
  check(arrays.pairs.front());
  check(arrays.pairs.back());
  check(arrays.paths.front());
  check(arrays.paths.back());
}

TEST(ArrayTableTest, ReadsRowsWithANegativeStride) {
  const TestArrays all(9);
  std::vector<ArrayColumn> columns = all.Columns();
  for (ArrayColumn& column : columns) {
    column.data += 8 * column.stride_bytes;
    column.stride_bytes *= -2;
  }
  const auto table = ArrayTable::Create(columns, 5, nullptr, 1);
  ASSERT_THAT(table, IsOk());
  for (const int64_t row : {0, 1, 4}) {
    EXPECT_EQ((*table)->RecordOf(row), all.Record(static_cast<size_t>(8 - 2 * row)));
  }
}

TEST(ArrayTableTest, KeepsTheOwnerOfTheArraysUntilTheTableIsFreed) {
  const TestArrays arrays(2);
  auto owner = std::make_shared<const int>(1);
  const std::weak_ptr<const int> seen = owner;
  auto table = ArrayTable::Create(arrays.Columns(), 2, std::move(owner), 1);
  ASSERT_THAT(table, IsOk());
  EXPECT_FALSE(seen.expired());
  table = absl::CancelledError("");
  EXPECT_TRUE(seen.expired());
}

TEST(ArrayTableTest, RowsWithoutValuesAreEmptyLists) {
  const std::vector<ArrayColumn> columns = {
      {.name = "b", .dtype = DType::kUint8, .row_shape = {0, 5}},
      {.name = "f", .dtype = DType::kFloat32, .row_shape = {0}},
      {.name = "i", .dtype = DType::kInt64, .row_shape = {0}}};
  const auto table = ArrayTable::Create(columns, 2, nullptr, 1);
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ((*table)->RecordOf(1),
            ExampleBuilder().AddBytes("b", "").AddFloats("f", {}).AddInt64s("i", {}).Serialize());
}

TEST(ArrayTableTest, RefusesInvalidColumns) {
  const TestArrays arrays(1);
  EXPECT_THAT(CreateStatus({}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no arrays")));
  std::vector<ArrayColumn> columns = arrays.Columns();
  columns[0].name = "label";
  EXPECT_THAT(CreateStatus(columns),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'label' is named twice")));
  columns = arrays.Columns();
  columns[0].dtype = DType::kInt32;
  EXPECT_THAT(CreateStatus(columns),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the dtype int32")));
  columns = arrays.Columns();
  columns[0].row_shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_THAT(CreateStatus(columns),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'pixels' has rows of more")));
  columns[0].row_shape = {-1};
  EXPECT_THAT(CreateStatus(columns),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("negative")));
}

TEST(ArrayTableTest, AnInterruptedCreateIsCancelled) {
  const TestArrays arrays(1);
  InterruptFlag unwanted;
  unwanted.Raise();
  const InterruptScope scope(unwanted);
  EXPECT_THAT(CreateStatus(arrays.Columns()), StatusIs(absl::StatusCode::kCancelled, _));
}

}  // namespace
}  // namespace systole
