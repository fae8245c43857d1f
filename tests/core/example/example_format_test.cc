// Tests the features that a format other than tf.train.Example can give.
#include "core/example/example_format.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "core/example/example_parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;

// Each letter of a record is the name of a feature. The feature's value is a text that Decode()
// makes.
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

TEST(FeatureViewTest, AnArrayIsReadFromAnyAddress) {
  alignas(8) char memory[40];
  for (const size_t shift : {0, 1}) {
    const int64_t ints[] = {-3, 1LL << 40, 7};
    std::memcpy(memory + shift, ints, sizeof(ints));
    const FeatureView view =
        FeatureView::OfInt64Array("i", absl::string_view(memory + shift, sizeof(ints)));
    EXPECT_THAT(view.Expect(FeatureKind::kInt64, 3), IsOk());
    std::vector<int64_t> got(3), first(2);
    ASSERT_THAT(view.CopyInt64s(absl::MakeSpan(got)), IsOk());
    EXPECT_THAT(got, ElementsAre(-3, 1LL << 40, 7));
    ASSERT_THAT(view.CopyFirstInt64s(absl::MakeSpan(first)), IsOk());
    EXPECT_THAT(first, ElementsAre(-3, 1LL << 40));
    EXPECT_EQ(view.FloatsInPlace().data(), nullptr);
    EXPECT_THAT(view.BytesAt(0), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("int64")));

    const float floats[] = {0.5f, -2.0f};
    std::memcpy(memory + shift, floats, sizeof(floats));
    const FeatureView other =
        FeatureView::OfFloatArray("f", absl::string_view(memory + shift, sizeof(floats)));
    std::vector<float> copied(2);
    ASSERT_THAT(other.CopyFloats(absl::MakeSpan(copied)), IsOk());
    EXPECT_THAT(copied, ElementsAre(0.5f, -2.0f));
    EXPECT_EQ(static_cast<const void*>(other.FloatsInPlace().data()),
              shift == 0 ? memory : nullptr);
  }
  const FeatureView empty = FeatureView::OfFloatArray("f", {});
  EXPECT_THAT(empty.Expect(FeatureKind::kFloat, 0), IsOk());
  EXPECT_THAT(empty.CopyFloats({}), IsOk());
}

TEST(FeatureViewTest, GetBytesReturnsAllValuesOfAFeature) {
  const std::string record =
      ExampleBuilder().AddBytes("b", {"one", "", "three"}).AddBytes("c", "x").Serialize();
  const auto example = ExampleView::Parse(record);
  ASSERT_THAT(example, IsOk());
  std::vector<absl::string_view> values(3), one(1);
  ASSERT_THAT(example->Find("b").GetBytes(absl::MakeSpan(values)), IsOk());
  EXPECT_THAT(values, ElementsAre("one", "", "three"));
  ASSERT_THAT(example->Find("c").GetBytes(absl::MakeSpan(one)), IsOk());
  EXPECT_THAT(one, ElementsAre("x"));
  EXPECT_THAT(example->Find("b").GetBytes(absl::MakeSpan(one)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 values")));
  ASSERT_THAT(FeatureView::OfBytes("b", "v").GetBytes(absl::MakeSpan(one)), IsOk());
  EXPECT_THAT(one, ElementsAre("v"));
}

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

TEST(ExampleFormatTest, TextMadeByAFormatLivesAsLongAsTheView) {
  const absl::StatusOr<ExampleView> view = ExampleView::Parse("ba", kLetters);
  ASSERT_THAT(view, IsOk());
  const FeatureView a = view->Find("a");
  const std::vector<FeatureView> features = view->Features();
  ASSERT_EQ(features.size(), 2u);
  EXPECT_THAT(a.BytesAt(0), IsOkAndHolds(Eq("a at byte 1")));
  EXPECT_THAT(features[1].BytesAt(0), IsOkAndHolds(Eq("b at byte 0")));
  EXPECT_EQ(view->Find("c").kind(), FeatureKind::kMissing);
}

TEST(ExampleFormatTest, TheLastFeatureOfANameWinsAndTheFormatsErrorIsReturned) {
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
