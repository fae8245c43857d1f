#include "core/record/arrays/array_source.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/dataset/dataset.h"
#include "core/example/example_parser.h"
#include "core/memory/aligned_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/arrays/columns.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<Dataset> MustCreate(std::unique_ptr<const RecordSource> source) {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  shards.push_back(std::move(source));
  absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Create("a", std::move(shards));
  SYSTOLE_CHECK(dataset.ok());
  return *std::move(dataset);
}

TEST(ArraySourceTest, FeaturesAreViewsOfTheArrays) {
  const TestArrays arrays(4);
  const ArraySource source(TableOf(arrays));
  AlignedBuffer scratch;
  const auto record = source.ReadRecord(2, scratch);
  ASSERT_THAT(record, IsOk());
  const auto example = ExampleView::Parse(*record, source.examples());
  ASSERT_THAT(example, IsOk());
  EXPECT_EQ(static_cast<const void*>(example->Find("pixels").BytesAt(0)->data()),
            &arrays.pixels[2 * TestArrays::kPixels]);
  EXPECT_EQ(example->Find("path").FloatsInPlace().data(), &arrays.paths[6]);
  EXPECT_EQ(example->Find("path").count(), 3);
  std::vector<int64_t> pair(2), label(1);
  ASSERT_THAT(example->Find("pair").CopyInt64s(absl::MakeSpan(pair)), IsOk());
  EXPECT_THAT(pair, ElementsAre(arrays.pairs[4], arrays.pairs[5]));
  ASSERT_THAT(example->Find("label").CopyInt64s(absl::MakeSpan(label)), IsOk());
  EXPECT_THAT(label, ElementsAre(202));
}

TEST(ArraySourceTest, ReadsRecordsInTheOrderAsked) {
  const TestArrays arrays(4);
  const ArraySource source(TableOf(arrays));
  AlignedBuffer scratch;
  MadeText made;
  std::vector<std::string> seen;
  ASSERT_THAT(source.ReadRecords({3, 0, 3}, RecordBytes::kInPlace, 1 << 20, scratch,
                                 [&](size_t place, absl::StatusOr<absl::string_view> record) {
                                   EXPECT_EQ(place, seen.size());
                                   return source.examples().Decode(
                                       *record, made, [&](const FeatureView& feature) {
                                         if (feature.name() != "pixels") return;
                                         seen.emplace_back(*feature.BytesAt(0));
                                       });
                                 }),
              IsOk());
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_EQ(seen[1], std::string(arrays.pixels.begin(), arrays.pixels.begin() + 300));
  // The callback's error ends the read.
  EXPECT_THAT(source.ReadRecords({1, 2}, RecordBytes::kCopied, 1 << 20, scratch,
                                 [](size_t, const absl::StatusOr<absl::string_view>&) {
                                   return absl::AbortedError("enough");
                                 }),
              StatusIs(absl::StatusCode::kAborted, _));
}

TEST(ArraySourceTest, HasTheFingerprintAndFeaturesOfAShardOfTheSameRows) {
  const TestArrays arrays(20);
  const auto shard = MustCreate(ShardOf(arrays));
  const auto rows = MustCreate(std::make_unique<ArraySource>(TableOf(arrays)));
  EXPECT_EQ(rows->fingerprint(), shard->fingerprint());
  EXPECT_EQ(rows->mean_record_bytes(), shard->mean_record_bytes());
  EXPECT_EQ(rows->max_payload_bytes(), shard->max_payload_bytes());
  ASSERT_EQ(rows->features().size(), shard->features().size());
  for (size_t i = 0; i < rows->features().size(); ++i) {
    EXPECT_EQ(rows->features()[i].name, shard->features()[i].name);
    EXPECT_EQ(rows->features()[i].kind, shard->features()[i].kind);
  }
}

TEST(ArraySourceTest, RefusesInvalidRowNumbers) {
  const TestArrays arrays(4);
  const ArraySource source(TableOf(arrays));
  AlignedBuffer scratch;
  for (const int64_t record : {-1, 4}) {
    EXPECT_THAT(source.ReadRecord(record, scratch),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 rows")));
  }
  MadeText made;
  for (const std::string record :
       {"", "1234567", "\4\0\0\0\0\0\0", "\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    EXPECT_THAT(source.examples().Decode(record, made, [](const FeatureView&) { FAIL(); }),
                StatusIs(absl::StatusCode::kDataLoss, _));
  }
}

}  // namespace
}  // namespace systole
