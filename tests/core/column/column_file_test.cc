#include "core/column/column_file.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/column/column.h"
#include "core/example/feature_view.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/column/boasting_source.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ShardContent kContent = {.hash = 0xabc, .num_records = 3};

// Columns with each form of numbers (int64s, floats, none) and with equal and different lengths.
std::vector<Column> Columns() {
  ColumnBuilder bytes("bytes");
  ColumnBuilder label("label");
  ColumnBuilder some("some");
  ColumnBuilder weight("weight");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(bytes.Add(FeatureView::OfBytes("bytes", "x")), IsOk());
    EXPECT_THAT(label.Add(FeatureView::OfInt64("label", i - 1)), IsOk());
    if (i == 1) {
      some.AddDamaged();
    } else {
      EXPECT_THAT(some.Add(i == 0 ? FeatureView("some") : FeatureView::OfInt64("some", 7)), IsOk());
    }
    EXPECT_THAT(weight.Add(FeatureView::OfFloat("weight", 0.5F * static_cast<float>(i))), IsOk());
  }
  return {std::move(bytes).Build(), std::move(label).Build(), std::move(some).Build(),
          std::move(weight).Build()};
}

absl::StatusOr<Column> Read(const std::string& text, const ShardContent& content = kContent) {
  return ReadColumnFile(MemorySource(text), content, "");
}

TEST(ColumnFileTest, AColumnIsReadAsItWasWritten) {
  const std::vector<Column> columns = Columns();
  EXPECT_THAT(columns[1].lengths, IsEmpty());
  EXPECT_THAT(columns[1].int64s, ElementsAre(-1, 0, 1));
  EXPECT_THAT(columns[2].lengths, ElementsAre(kAbsentFeature, kDamagedRecord, 1));
  EXPECT_EQ(columns[2].CountPresent(), 1);
  EXPECT_THAT(columns[3].floats, ElementsAre(0, 0.5F, 1));
  for (const Column& column : columns) {
    EXPECT_THAT(Read(ColumnFileText(kContent.hash, column)), IsOkAndHolds(column));
  }
  const Column empty = {.feature = "n"};
  EXPECT_THAT(Read(ColumnFileText(0, empty), {}), IsOkAndHolds(empty));
}

TEST(ColumnFileTest, AColumnOfAnotherFeatureIsRefused) {
  const MemorySource file(ColumnFileText(kContent.hash, Columns()[1]));
  EXPECT_THAT(ReadColumnFile(file, kContent, "label"), IsOk());
  EXPECT_THAT(ReadColumnFile(file, kContent, "labels"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("another feature")));
}

TEST(ColumnFileTest, AColumnWhoseHashOrRecordCountDiffersFromTheShardIsRefused) {
  const std::string text = ColumnFileText(kContent.hash, Columns()[1]);
  for (const ShardContent& other : {ShardContent{.hash = 0xabd, .num_records = 3},
                                    ShardContent{.hash = 0xabc, .num_records = 4}}) {
    EXPECT_THAT(Read(text, other),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another content")));
  }
}

TEST(ColumnFileTest, EveryFlippedBitAndEveryTruncationIsDetected) {
  for (const Column& column : Columns()) {
    const std::string good = ColumnFileText(kContent.hash, column);
    for (size_t i = 0; i < good.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
        EXPECT_FALSE(Read(bad).ok()) << i;
      }
      EXPECT_FALSE(Read(good.substr(0, i)).ok()) << i;
    }
    EXPECT_THAT(Read(good + "x"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes, want")));
  }
}

// ColumnMemoryTest measures the memory.
TEST(ColumnFileTest, AFalseFileSizeFailsAndCausesNoReadLargerThanOneMiB) {
  const BoastingSource file = BoastingColumnFile();
  EXPECT_THAT(
      ReadColumnFile(file, kBoastedContent, ""),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends at byte 200096; wanted 262144 bytes")));
  EXPECT_LE(file.most(), size_t{1} << 20);
}

}  // namespace
}  // namespace systole
