#include "core/example/example_parser.h"

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/example/encode.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Flower() {
  return ExampleBuilder()
      .AddBytes("image", "jpeg bytes")
      .AddBytes("class", "tulip")
      .AddInt64s("label", {4})
      .AddInt64s("size", {224, 320})
      .AddFloats("weights", {0.5f, -2.0f})
      .Serialize();
}

FeatureView Find(const std::string& record, absl::string_view name) {
  const absl::StatusOr<ExampleView> example = ExampleView::Parse(record);
  EXPECT_THAT(example, IsOk());
  return example->Find(name);
}

bool Inside(absl::string_view part, absl::string_view whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

auto Invalid(const char* what) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
}

TEST(ExampleParserTest, FindsTheChosenFeaturesInTheirOrder) {
  const std::string record = Flower();
  const absl::StatusOr<ExampleParser> parser =
      ExampleParser::Create({"label", "absent", "image", "weights"});
  ASSERT_THAT(parser, IsOk());
  FeatureView views[4];
  MadeText made;
  ASSERT_THAT(parser->Parse(TensorFlowExample(), record, made, views), IsOk());

  int64_t label = 0;
  EXPECT_THAT(views[0].CopyInt64s(absl::MakeSpan(&label, 1)), IsOk());
  EXPECT_EQ(label, 4);
  EXPECT_EQ(views[1].kind(), FeatureKind::kMissing);
  EXPECT_EQ(views[1].name(), "absent");
  EXPECT_THAT(views[2].BytesAt(0), IsOkAndHolds(absl::string_view("jpeg bytes")));
  float weights[2];
  EXPECT_THAT(views[3].CopyFloats(weights), IsOk());
  EXPECT_THAT(weights, ElementsAre(0.5f, -2.0f));
}

TEST(ExampleParserTest, ViewsPointIntoTheRecord) {
  const std::string record = Flower();
  EXPECT_TRUE(Inside(*Find(record, "image").BytesAt(0), record));
  EXPECT_TRUE(Inside(Find(record, "image").name(), record));
}

TEST(ExampleParserTest, NextRecordLeavesNothingOfTheLastOne) {
  const absl::StatusOr<ExampleParser> parser = ExampleParser::Create({"label"});
  FeatureView view;
  const std::string flower = Flower();
  MadeText made;
  ASSERT_THAT(parser->Parse(TensorFlowExample(), flower, made, absl::MakeSpan(&view, 1)), IsOk());
  EXPECT_EQ(view.count(), 1);
  ASSERT_THAT(parser->Parse(TensorFlowExample(), "", made, absl::MakeSpan(&view, 1)), IsOk());
  EXPECT_EQ(view.kind(), FeatureKind::kMissing);
  EXPECT_EQ(view.count(), 0);
}

TEST(ExampleParserTest, MovedParserStillKnowsItsNames) {
  absl::StatusOr<ExampleParser> first = ExampleParser::Create({"label", "x"});
  const ExampleParser second = *std::move(first);
  const std::string record = Flower();
  FeatureView views[2];
  MadeText made;
  ASSERT_THAT(second.Parse(TensorFlowExample(), record, made, views), IsOk());
  EXPECT_EQ(views[0].count(), 1);
  EXPECT_EQ(views[1].name(), "x");
}

TEST(ExampleParserTest, NameAskedForTwiceIsRefused) {
  EXPECT_THAT(ExampleParser::Create({"a", "b", "a"}), Invalid("feature \"a\" is asked for twice"));
  EXPECT_THAT(ExampleParser::Create({}), IsOk());
}

TEST(ExampleParserTest, BadFeatureThatNobodyAskedForIsStillDataLoss) {
  const std::string record =
      Example(Entry("good", BytesList(Field(1, "x"))) + Entry("bad", FloatList(Field(1, "123"))));
  const absl::StatusOr<ExampleParser> parser = ExampleParser::Create({"good"});
  FeatureView view;
  MadeText made;
  EXPECT_THAT(parser->Parse(TensorFlowExample(), record, made, absl::MakeSpan(&view, 1)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("packed floats are cut short")));
}

TEST(ExampleParserTest, DamageIsDataLossNamingTheByte) {
  EXPECT_THAT(ExampleView::Parse(std::string("\x0a\x05") + "ab"),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("not a tf.train.Example"),
                             HasSubstr("a length exceeds the bytes around it at byte 1 of 4"))));
  EXPECT_THAT(ExampleView::Parse("\xff\xd8\xff\xe0 a JPEG, not an Example"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("not a tf.train.Example")));
}

TEST(ExampleParserTest, ANameThatIsNotUtf8DisturbsNoOtherFeature) {
  const std::string record = Example(Entry("\xff\xfe", BytesList(Field(1, "odd"))) +
                                     Entry("good", BytesList(Field(1, "x"))));
  const absl::StatusOr<ExampleParser> parser = ExampleParser::Create({"good"});
  FeatureView view;
  MadeText made;
  ASSERT_THAT(parser->Parse(TensorFlowExample(), record, made, absl::MakeSpan(&view, 1)), IsOk());
  EXPECT_THAT(view.BytesAt(0), IsOkAndHolds("x"));
  EXPECT_THAT(Find(record, "\xff\xfe").BytesAt(0), IsOkAndHolds("odd"));
}

TEST(FeatureViewTest, ErrorsNameTheFeatureWithExpectedAndActualKindAndCount) {
  const std::string record = Flower();
  int64_t one[1];
  float floats[3];
  EXPECT_THAT(Find(record, "image").CopyInt64s(one),
              Invalid("feature \"image\": want int64 with 1 value, the record has bytes with 1"));
  EXPECT_THAT(
      Find(record, "size").CopyInt64s(one),
      Invalid("feature \"size\": want int64 with 1 value, the record has int64 with 2 values"));
  EXPECT_THAT(Find(record, "weights").CopyFloats(floats),
              Invalid("want float with 3 values, the record has float with 2 values"));
  EXPECT_THAT(Find(record, "label").BytesAt(0),
              Invalid("feature \"label\": want bytes value 0, the record has int64 with 1 value"));
  EXPECT_THAT(Find(record, "image").BytesAt(1), Invalid("want bytes value 1"));
  EXPECT_THAT(Find(record, "image").BytesAt(-1), Invalid("want bytes value -1"));
  EXPECT_THAT(Find(record, "depth").BytesAt(0),
              Invalid("feature \"depth\": want bytes value 0, the record has no such feature"));
  EXPECT_THAT(
      Find(record, "a\nb\xc3\xa9").CopyFloats(floats),
      Invalid("feature \"a\\nb\xc3\xa9\": want float with 3 values, the record has no such"));
  EXPECT_THAT(Find(record, "size").Expect(FeatureKind::kInt64, 2), IsOk());
}

TEST(FeatureViewTest, WrongCountLeavesTheDestinationAlone) {
  const std::string record = Flower();
  int64_t three[3] = {7, 8, 9};
  EXPECT_FALSE(Find(record, "size").CopyInt64s(three).ok());
  EXPECT_THAT(three, ElementsAre(7, 8, 9));
}

TEST(FeatureViewTest, FeatureWithoutAKindIsMissing) {
  const std::string record = Example(Entry("k", ""));
  EXPECT_EQ(Find(record, "k").kind(), FeatureKind::kMissing);
  EXPECT_THAT(Find(record, "k").BytesAt(0), Invalid("no such feature"));
}

TEST(FeatureViewTest, EmptyListHasAKindAndNoValues) {
  const std::string record = ExampleBuilder().AddFloats("k", {}).AddInt64s("n", {}).Serialize();
  EXPECT_EQ(Find(record, "k").kind(), FeatureKind::kFloat);
  EXPECT_EQ(Find(record, "k").count(), 0);
  EXPECT_THAT(Find(record, "k").CopyFloats({}), IsOk());
  EXPECT_THAT(Find(record, "n").CopyInt64s({}), IsOk());
}

TEST(FeatureViewTest, LastEntryOfANameWins) {
  const std::string record =
      Example(Entry("k", BytesList(Field(1, "old"))) + Entry("k", BytesList(Field(1, "new"))));
  EXPECT_THAT(Find(record, "k").BytesAt(0), IsOkAndHolds(absl::string_view("new")));
  EXPECT_EQ(ExampleView::Parse(record)->Features().size(), 1);
}

TEST(FeatureViewTest, ConsecutiveListsOfTheLastKindAreJoinedAndEarlierListsIgnored) {
  const std::string record =
      Example(Entry("k", BytesList(Field(1, "a")) + Int64List(VarintField(1, 9)) +
                             BytesList(Field(1, "b")) + BytesList(Field(1, "c") + Field(1, "d"))));
  const FeatureView view = Find(record, "k");
  EXPECT_EQ(view.count(), 3);
  EXPECT_THAT(view.BytesAt(0), IsOkAndHolds(absl::string_view("b")));
  EXPECT_THAT(view.BytesAt(1), IsOkAndHolds(absl::string_view("c")));
  EXPECT_THAT(view.BytesAt(2), IsOkAndHolds(absl::string_view("d")));
}

TEST(FeatureViewTest, PackedAndUnpackedNumbersMix) {
  const std::string record =
      Example(Entry("k", Int64List(VarintField(1, 5) + Field(1, Varint(6) + Varint(~uint64_t{0})) +
                                   VarintField(1, 8))));
  int64_t values[4];
  ASSERT_THAT(Find(record, "k").CopyInt64s(values), IsOk());
  EXPECT_THAT(values, ElementsAre(5, 6, -1, 8));
}

TEST(FeatureViewTest, FloatsKeepEveryBit) {
  const std::string nan("\x01\x02\x83\x7f", 4);  // A signalling NaN with a payload.
  for (const std::string& list : {Field(1, nan), Fixed32Field(1, nan)}) {
    const std::string record = Example(Entry("k", FloatList(list)));
    float value[1];
    ASSERT_THAT(Find(record, "k").CopyFloats(value), IsOk());
    EXPECT_EQ(std::bit_cast<uint32_t>(value[0]), 0x7f830201u);
  }
}

TEST(DescribeFeaturesTest, LimitsTheNumberOfFeaturesAndTheBytesOfNames) {
  ExampleBuilder many;
  for (size_t i = 0; i < kMaxFirstFeatures + 5; ++i) many.AddInt64s(absl::StrCat("f", i), {1});
  const auto described = DescribeFeatures(many.Serialize());
  ASSERT_THAT(described, IsOk());
  EXPECT_EQ(described->size(), kMaxFirstFeatures);

  const std::string record = ExampleBuilder()
                                 .AddInt64s("before", {1})
                                 .AddInt64s(std::string(kMaxFirstNameBytes, 'x'), {2})
                                 .AddInt64s("behind", {3})
                                 .Serialize();
  EXPECT_THAT(DescribeFeatures(record),
              IsOkAndHolds(ElementsAre(FeatureDescription{"before", FeatureKind::kInt64, 1},
                                       FeatureDescription{"behind", FeatureKind::kInt64, 1})));
}

TEST(DescribeFeaturesTest, ListsNameKindAndCountSorted) {
  const std::string record = Flower();
  EXPECT_THAT(DescribeFeatures(record),
              IsOkAndHolds(ElementsAre(FeatureDescription{"class", FeatureKind::kBytes, 1},
                                       FeatureDescription{"image", FeatureKind::kBytes, 1},
                                       FeatureDescription{"label", FeatureKind::kInt64, 1},
                                       FeatureDescription{"size", FeatureKind::kInt64, 2},
                                       FeatureDescription{"weights", FeatureKind::kFloat, 2})));
  EXPECT_THAT(DescribeFeatures("\x0a"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("byte 1")));
}

TEST(FeatureKindNameTest, NamesEachKind) {
  EXPECT_EQ(FeatureKindName(FeatureKind::kMissing), "missing");
  EXPECT_EQ(FeatureKindName(FeatureKind::kBytes), "bytes");
  EXPECT_EQ(FeatureKindName(FeatureKind::kFloat), "float");
  EXPECT_EQ(FeatureKindName(FeatureKind::kInt64), "int64");
}

TEST(ExampleParserDeathTest, WrongNumberOfViewsIsTheCallersBug) {
  const absl::StatusOr<ExampleParser> parser = ExampleParser::Create({"a", "b"});
  FeatureView view;
  MadeText made;
  EXPECT_DEATH(parser->Parse(TensorFlowExample(), "", made, absl::MakeSpan(&view, 1)).IgnoreError(),
               "out.size");
}

}  // namespace
}  // namespace systole
