// Tests the features that a format other than tf.train.Example can give.
#include "core/example/example_format.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/example/example_parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;

// Each letter of the record is a feature of that name. The format makes the text of the feature.
class Letters final : public ExampleFormat {
 public:
  absl::string_view name() const override { return "word"; }
  absl::Status Decode(absl::string_view record, MadeText& made,
                      absl::FunctionRef<void(const FeatureView&)> visit) const override {
    for (size_t i = 0; i < record.size(); ++i) {
      if (record[i] == '?') return absl::DataLossError(absl::StrCat("'?' at byte ", i));
      const absl::string_view name = made.Keep(std::string(1, record[i]));
      visit(FeatureView::OfBytes(name, made.Keep(absl::StrCat(name, " at byte ", i))));
    }
    return absl::OkStatus();
  }
};

const Letters kLetters;

TEST(FeatureViewTest, OneValueIsReadAsAListOfOne) {
  const FeatureView bytes = FeatureView::OfBytes("b", "value");
  EXPECT_THAT(bytes.Expect(FeatureKind::kBytes, 1), IsOk());
  EXPECT_THAT(bytes.BytesAt(0), IsOkAndHolds(Eq("value")));
  EXPECT_THAT(bytes.BytesAt(1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("value 1")));
  EXPECT_THAT(FeatureView::OfBytes("b", "").BytesAt(0), IsOkAndHolds(Eq("")));

  int64_t int64s[2] = {0, 0};
  const FeatureView int64 = FeatureView::OfInt64("i", -7);
  EXPECT_THAT(int64.CopyInt64s(absl::MakeSpan(int64s, 1)), IsOk());
  EXPECT_EQ(int64s[0], -7);
  EXPECT_THAT(int64.CopyFirstInt64s(absl::MakeSpan(int64s, 0)), IsOk());
  EXPECT_THAT(int64.CopyInt64s(int64s),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want int64 with 2 values")));

  float floats[2] = {0, 0};
  const FeatureView float32 = FeatureView::OfFloat("f", 0.5f);
  EXPECT_THAT(float32.CopyFloats(absl::MakeSpan(floats, 1)), IsOk());
  EXPECT_EQ(floats[0], 0.5f);
  EXPECT_THAT(float32.CopyFirstFloats(absl::MakeSpan(floats, 0)), IsOk());
  EXPECT_THAT(float32.CopyInt64s(int64s),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has float with 1 value")));
}

TEST(ExampleFormatTest, WhatAFormatMadeStaysAsLongAsTheView) {
  const absl::StatusOr<ExampleView> view = ExampleView::Parse("ba", kLetters);
  ASSERT_THAT(view, IsOk());
  const FeatureView a = view->Find("a");
  const std::vector<FeatureView> features = view->Features();
  ASSERT_EQ(features.size(), 2u);
  EXPECT_THAT(a.BytesAt(0), IsOkAndHolds(Eq("a at byte 1")));
  EXPECT_THAT(features[1].BytesAt(0), IsOkAndHolds(Eq("b at byte 0")));
  EXPECT_EQ(view->Find("c").kind(), FeatureKind::kMissing);
}

TEST(ExampleFormatTest, TheLastOfANameCountsAndDamageIsTheFormats) {
  const absl::StatusOr<ExampleParser> parser = ExampleParser::Create({"x", "a"});
  ASSERT_THAT(parser, IsOk());
  FeatureView views[2];
  MadeText made;
  ASSERT_THAT(parser->Parse(kLetters, "aba", made, views), IsOk());
  EXPECT_EQ(views[0].kind(), FeatureKind::kMissing);
  EXPECT_THAT(views[1].BytesAt(0), IsOkAndHolds(Eq("a at byte 2")));
  EXPECT_THAT(parser->Parse(kLetters, "a?", made, views),
              StatusIs(absl::StatusCode::kDataLoss, "'?' at byte 1"));
  EXPECT_THAT(ExampleView::Parse("?", kLetters),
              StatusIs(absl::StatusCode::kDataLoss, "'?' at byte 0"));
}

}  // namespace
}  // namespace systole
