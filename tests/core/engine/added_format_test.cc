// A feed of shards in two formats: TFRecord, and one that is not in the table of formats
// (line_format.h). To add a format, nothing but the format itself has to be written.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/batch/slice_layout.h"
#include "core/engine/example_maker.h"
#include "core/example/example_builder.h"
#include "core/record/shard_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/line_format.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ShardFormat* const kFormats[] = {ShardFormats().front(), &kLineFormat};

constexpr char kSpec[] =
    "dataset: 'test' global_batch: 4 num_cores: 1 "
    "outputs { name: 'text' feature: 'text' padded { length: 3 value: 46 } dtype: UINT8 } "
    "outputs { name: 'length' feature: 'length' dtype: INT64 } ";

TEST(AddedFormatTest, AFeedReadsADatasetOfShardsInTwoFormats) {
  const TempFolder folder;
  folder.Write("a.lines", "lines\nab\n\nabc\n");
  ShardBuilder()
      .Add(ExampleBuilder().AddBytes("text", "z").AddInt64s("length", {1}).Serialize())
      .WriteTo(folder / "b.tfrecord");
  const auto dataset =
      Dataset::Open("test", {folder / "a.lines", folder / "b.tfrecord"}, {.formats = kFormats});
  ASSERT_THAT(dataset, IsOk());
  EXPECT_THAT((*dataset)->features(),
              ElementsAre(FeatureDescription{"length", FeatureKind::kInt64, 1},
                          FeatureDescription{"text", FeatureKind::kBytes, 1}));
  EXPECT_EQ((*dataset)->min_payload_bytes(), 0);
  const auto plan = FeedPlan::Create(SpecFromText(kSpec), *dataset);
  ASSERT_THAT(plan, IsOk());
  std::vector<uint8_t> slice(static_cast<size_t>((*plan)->layout().slice_bytes()));
  ExampleMaker maker;
  ASSERT_THAT(maker.Make(*plan, 0, 0, 0, 4, slice.data()), IsOk());
  std::string text;
  for (const SliceTensor& tensor : (*plan)->layout().tensors()) {
    if (tensor.spec.name == "text")
      text.assign(slice.begin() + tensor.offset, slice.begin() + tensor.offset + 12);
  }
  EXPECT_EQ(text, "ab....abcz..");
}

TEST(AddedFormatTest, ARecordThatItsFormatCannotReadIsDataLossNamingTheRecord) {
  const TempFolder folder;
  folder.Write("a.lines", "lines\nab\nbad\nabc\nx\n");
  const auto dataset = Dataset::Open("test", {folder / "a.lines"}, {.formats = kFormats});
  ASSERT_THAT(dataset, IsOk());
  const auto plan = FeedPlan::Create(SpecFromText(kSpec), *dataset);
  ASSERT_THAT(plan, IsOk());
  std::vector<uint8_t> slice(static_cast<size_t>((*plan)->layout().slice_bytes()));
  EXPECT_THAT(
      ExampleMaker().Make(*plan, 0, 0, 0, 4, slice.data()),
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr("shard 'a.lines', offset 9, record 1"), HasSubstr("a bad line"))));
}

}  // namespace
}  // namespace systole
