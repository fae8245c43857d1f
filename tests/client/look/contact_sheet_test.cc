#include "client/look/contact_sheet.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/spec/order_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/look/sheet_page.h"
#include "tests/client/look/sheet_steps.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// ---- Places ----

SheetFeed FeedWithHoles() {
  // In two steps of 8 places, place i holds record i. Record 2 is damaged. Places 13, 14 and 15 are
  // padding.
  return {.tensors = {LabelTensor()}, .valid = [](int64_t step, int64_t example) {
            return step * 8 + example < 13 && step * 8 + example != 2;
          }};
}

const char kLabel[] = "outputs { name: 'label' feature: 'label' dtype: INT64 }";

TEST(ContactSheetTest, MaskedRecordsAndPaddingAreMarkedAndCounted) {
  const v1::FeedSpec spec = ParseSpec(SpecText(kLabel, "tail: PAD on_corrupt: MASK"));
  const std::string page =
      MustRender(spec, MakeSteps(FeedWithHoles(), 0, 2), {.order = OrderOf(spec, 13)});
  const std::vector<std::string> cards = CardsOf(page);
  ASSERT_THAT(cards, SizeIs(16));
  for (int64_t place = 0; place < 16; ++place) {
    SCOPED_TRACE(place);
    const std::string& card = cards[static_cast<size_t>(place)];
    if (place == 2) {
      EXPECT_THAT(card, AllOf(HasSubstr("masked"), HasSubstr("<b>Masked</b>"),
                              HasSubstr("record 2<"), Not(HasSubstr("label"))));
    } else if (place < 13) {
      EXPECT_THAT(card,
                  AllOf(HasSubstr(absl::StrCat("<b>", place / 8 * 100 + place % 8, "</b>")),
                        HasSubstr(absl::StrCat("record ", place, "<")), Not(HasSubstr("missing"))));
    } else {
      EXPECT_THAT(card, AllOf(HasSubstr("padding"), HasSubstr("<b>Padding</b>"),
                              Not(HasSubstr("record 1")), Not(HasSubstr("label"))));
    }
    EXPECT_THAT(card, AllOf(HasSubstr(absl::StrCat("core ", place / 4 % 2, "<")),
                            HasSubstr(absl::StrCat("slot ", place % 4, "<"))));
  }
  EXPECT_THAT(page,
              AllOf(HasSubstr("<dt>Examples</dt><dd>12</dd>"),
                    HasSubstr("<dt>Padding</dt><dd>3</dd>"), HasSubstr("<dt>Masked</dt><dd>1</dd>"),
                    HasSubstr("1 example is masked: the record is damaged (record_id 2).")));
}

TEST(ContactSheetTest, WithoutARecordCountTheSpecDecidesHowAHoleIsLabelled) {
  const struct {
    const char* policy;
    const char* marked;
  } kCases[] = {{"tail: PAD on_corrupt: FAIL", "<b>Padding</b>"},
                {"tail: DROP on_corrupt: MASK", "<b>Masked</b>"},
                {"tail: PAD on_corrupt: MASK", "<b>Empty</b>"}};
  for (const auto& test : kCases) {
    const std::string page =
        MustRender(ParseSpec(SpecText(kLabel, test.policy)), MakeSteps(FeedWithHoles(), 0, 1));
    EXPECT_THAT(CardsOf(page)[2], HasSubstr(test.marked));
    EXPECT_THAT(page, Not(HasSubstr("<span>record ")));
  }
}

TEST(ContactSheetTest, RecordNumbersFollowTheShuffleOrder) {
  const v1::FeedSpec spec = ParseSpec(SpecText(kLabel,
                                               "seed: 5 shuffle { mode: WINDOW "
                                               "block_records: 2 window_records: 8 }"));
  const SheetFeed feed = {.tensors = {LabelTensor()}};
  const std::vector<std::string> cards =
      CardsOf(MustRender(spec, MakeSteps(feed, 3, 1), {.order = OrderOf(spec, 40)}));
  const std::optional<Order> order = OrderOf(spec, 40);
  ASSERT_TRUE(order.has_value());
  for (int64_t slot = 0; slot < 8; ++slot) {
    EXPECT_THAT(cards[static_cast<size_t>(slot)],
                HasSubstr(absl::StrCat("record ", *order->PlaceOf(3, slot).record, "<")));
  }
}

// ---- The table ----

TEST(ContactSheetTest, RangesAndMeansAreOfAllValidExamplesOfAllSteps) {
  const v1::FeedSpec spec = ParseSpec(
      SpecText(absl::StrCat(kLabel,
                            "outputs { name: 'weights' feature: 'w' shape: 3 dtype: BFLOAT16 }"
                            "outputs { name: 'big' feature: 'big' dtype: INT64 }"),
               "tail: PAD on_corrupt: MASK"));
  SheetFeed feed = FeedWithHoles();
  feed.tensors.push_back(
      {"weights", DType::kBfloat16, {3}, v1::NHWC, [](int64_t, int64_t example, int64_t element) {
         return element == 1 ? 0.5 : static_cast<double>(example) - 4;
       }});
  // 2^53 + 2. A double can hold this integer, but not the next one. PutValue() turns it into an
  // int64.
  feed.tensors.push_back({"big", DType::kInt64, {}, v1::NHWC, [](int64_t, int64_t, int64_t) {
                            return 9007199254740994.0;
                          }});
  for (const StepPlacement placement : {StepPlacement::kCoreMajor, StepPlacement::kTensorMajor}) {
    feed.placement = placement;
    // The page shows one example, but its table counts all examples.
    const std::string page = MustRender(spec, MakeSteps(feed, 0, 2), {.max_examples = 1});
    // The labels are 0, 1, 3 .. 7 and 100 .. 104.
    EXPECT_THAT(RowOf(page, "label"), ElementsAre("int64", "4", "–", "0", "104", "44.67"));
    // The valid examples are 0, 1, 3 .. 7 in step 0, and 0 .. 4 in step 1. An example has three
    // weights: two are its number minus 4, and one is 0.5.
    EXPECT_THAT(RowOf(page, "weights"), ElementsAre("bfloat16", "4 × 3", "–", "-4", "3", "-0.5"));
    EXPECT_THAT(RowOf(page, "valid"), ElementsAre("uint8", "4", "–", "0", "1", "0.75"));
    EXPECT_THAT(RowOf(page, "big"), ElementsAre("int64", "4", "–", "9007199254740994",
                                                "9007199254740994", "9.007e+15"));
    EXPECT_THAT(page, HasSubstr("<dt>Steps</dt><dd>0 to 1</dd>"));
  }
}

TEST(ContactSheetTest, OutputsThatAreMixedNameMixupOrCutmix) {
  const std::string outputs =
      "outputs { name: 'weights' feature: 'w' shape: 3 dtype: FLOAT32 }"
      "outputs { name: 'label' feature: 'label' dtype: INT64 }";
  const SheetFeed feed = {
      .tensors = {LabelTensor(),
                  {"weights", DType::kFloat32, {3}, v1::NHWC, [](int64_t, int64_t, int64_t) {
                     return 0.5;
                   }}}};
  for (const auto& [mix, text] : {std::pair("mixup {}", "mixup"),
                                  {"cutmix {}", "cutmix"},
                                  {"cutmix {} mixup {}", "mixup or cutmix"}}) {
    const std::string page =
        MustRender(ParseSpec(SpecText(outputs, absl::StrCat("mix { labels: 'weights' ", mix, "}"))),
                   MakeSteps(feed, 0, 1));
    EXPECT_THAT(page, HasSubstr(absl::StrCat("feature w; ", text, "</small>")));
    EXPECT_THAT(page, HasSubstr("feature label</small>"));
  }
}

TEST(ContactSheetTest, WithTheBatchInnermostOnlyValidExamplesCount) {
  const v1::FeedSpec spec =
      ParseSpec(SpecText("outputs { name: 'image' feature: 'image' shape: [2, 2, 1] dtype: FLOAT32 "
                         "layout: HWCN }",
                         "on_corrupt: MASK"));
  const SheetFeed feed = {.tensors = {{"image",
                                       DType::kFloat32,
                                       {2, 2, 1},
                                       v1::HWCN,
                                       [](int64_t, int64_t example, int64_t element) {
                                         return static_cast<double>(10 * example + element);
                                       }}},
                          .valid = [](int64_t, int64_t example) { return example % 2 == 1; }};
  EXPECT_THAT(RowOf(MustRender(spec, MakeSteps(feed, 0, 1)), "image"),
              ElementsAre("float32", "2 × 2 × 1 × 4", "HWCN", "10", "73", "41.5"));
}

TEST(ContactSheetTest, WithoutAnExampleThereIsNoRange) {
  const v1::FeedSpec spec = ParseSpec(SpecText(kLabel, "on_corrupt: MASK"));
  const SheetFeed feed = {.tensors = {LabelTensor()},
                          .valid = [](int64_t, int64_t) { return false; }};
  EXPECT_THAT(RowOf(MustRender(spec, MakeSteps(feed, 0, 1)), "label"),
              ElementsAre("int64", "4", "–", "–", "–", "–"));
}

// ---- Bounds ----

TEST(ContactSheetTest, NoMoreExamplesThanWantedAreShown) {
  const v1::FeedSpec spec = ParseSpec(SpecText(kLabel));
  const SheetFeed feed = {.tensors = {LabelTensor()}};
  const std::string page = MustRender(spec, MakeSteps(feed, 0, 3), {.max_examples = 10});
  EXPECT_THAT(CardsOf(page), SizeIs(10));
  EXPECT_THAT(page, AllOf(HasSubstr("The first 10 of 24 places are shown"), HasSubstr(">Step 1<"),
                          Not(HasSubstr(">Step 2<"))));
  EXPECT_THAT(MustRender(spec, MakeSteps(feed, 0, 3)), Not(HasSubstr("places are shown")));
}

TEST(ContactSheetTest, OfALongListTheFirst32ValuesAreShown) {
  const v1::FeedSpec spec =
      ParseSpec(SpecText("outputs { name: 'v' feature: 'v' shape: [10, 10] dtype: FLOAT32 }"));
  const SheetFeed feed = {
      .tensors = {{"v", DType::kFloat32, {10, 10}, v1::NHWC, [](int64_t, int64_t, int64_t i) {
                     return i + 0.5;
                   }}}};
  EXPECT_THAT(CardsOf(MustRender(spec, MakeSteps(feed, 0, 1)))[7],
              AllOf(HasSubstr("<b>0.5, 1.5, "), HasSubstr(", 31.5, … (100 values)</b>")));
}

// ---- The page ----

TEST(ContactSheetTest, HostileNamesAreEscaped) {
  const std::string hostile = "<script>alert('x')</script>\"&";
  v1::FeedSpec spec = ParseSpec(
      SpecText(absl::StrCat("outputs { name: 'n' feature: 'image' ", kDecode, " } ", kLabel)));
  spec.set_dataset(hostile);
  spec.mutable_outputs(0)->set_name(hostile);
  spec.mutable_outputs(0)->set_feature(hostile);
  spec.mutable_outputs(1)->set_name(hostile + "2");
  SheetFeed feed = {
      .tensors = {BlocksTensor(hostile, DType::kUint8, v1::NHWC, 3, AsItIs), LabelTensor()}};
  feed.tensors[1].name = hostile + "2";
  const std::string page = MustRender(spec, MakeSteps(feed, 0, 1),
                                      {.title = hostile, .source = hostile, .version = hostile});
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("alert('x')")),
                          HasSubstr("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;")));
}

TEST(ContactSheetTest, DescribesItsSourceAndLoadsNothingFromElsewhere) {
  const v1::FeedSpec spec = ParseSpec(SpecText(kLabel, "seed: 77"));
  const SheetFeed feed = {.tensors = {LabelTensor()}};
  const std::string page = MustRender(spec, MakeSteps(feed, 5, 1),
                                      {.title = "A title",
                                       .source = "127.0.0.1:8470",
                                       .version = "1.2",
                                       .order = OrderOf(spec, 99)});
  EXPECT_THAT(page, AllOf(HasSubstr("<h1>A title</h1>"), HasSubstr("<dd>flowers</dd>"),
                          HasSubstr("<dd>127.0.0.1:8470</dd>"), HasSubstr("<dd>1.2</dd>"),
                          HasSubstr("<dd>99</dd>"), HasSubstr("<dt>Step</dt><dd>5</dd>"),
                          HasSubstr("seed: 77"), HasSubstr("default-src 'none'")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("http://")), Not(HasSubstr("https://")),
                          Not(HasSubstr("<script")), Not(HasSubstr("<link"))));
  EXPECT_THAT(MustRender(spec, MakeSteps(feed, 5, 1)),
              AllOf(HasSubstr("<h1>flowers</h1>"), Not(HasSubstr("<dt>Source"))));
}

TEST(ContactSheetTest, TheSameStepsGiveTheSamePageInBothPlacements) {
  const v1::FeedSpec spec = ParseSpec(
      SpecText(absl::StrCat("outputs { name: 'image' feature: 'image' ", kDecode, " } ", kLabel)));
  SheetFeed feed = {
      .tensors = {BlocksTensor("image", DType::kUint8, v1::NHWC, 3, AsItIs), LabelTensor()}};
  const std::string core_major = MustRender(spec, MakeSteps(feed, 0, 2));
  feed.placement = StepPlacement::kTensorMajor;
  EXPECT_EQ(MustRender(spec, MakeSteps(feed, 0, 2)), core_major);
}

TEST(ContactSheetTest, InvalidInputIsRefusedWithAMessageThatNamesTheFault) {
  const v1::FeedSpec spec = ParseSpec(SpecText(kLabel));
  const std::vector<Step> steps = MakeSteps({.tensors = {LabelTensor()}}, 0, 1);
  const auto refusal = [](const v1::FeedSpec& spec, absl::Span<const Step> steps,
                          const ContactSheetOptions& options) {
    const absl::StatusOr<std::string> page = ContactSheet(spec, steps, options);
    EXPECT_EQ(page.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(page.status().message());
  };
  EXPECT_THAT(refusal(spec, {}, {}), HasSubstr("no steps"));
  EXPECT_THAT(refusal(spec, steps, {.max_examples = 0}), HasSubstr("max_examples is 0, want 1 to"));
  EXPECT_THAT(refusal(spec, steps, {.max_examples = 2000}), HasSubstr("max_examples is 2000"));
  v1::FeedSpec other = spec;
  other.mutable_outputs(0)->set_name("klass");
  EXPECT_THAT(refusal(other, steps, {}), HasSubstr("no tensor 'klass'"));
  v1::FeedSpec small = spec;
  small.set_global_batch(4);
  EXPECT_THAT(refusal(small, steps, {}),
              HasSubstr("cores up to 1 with 4 places each, but the spec has global_batch: 4 and"
                        " num_cores: 2"));
  std::vector<Step> mixed = MakeSteps({.tensors = {LabelTensor()}}, 0, 1);
  mixed.push_back(MakeStep({.per_core = 2, .tensors = {LabelTensor()}}, 1));
  EXPECT_THAT(refusal(spec, mixed, {}), HasSubstr("steps 0 and 1 have different tensors"));
  // The spec normalizes three channels, but the tensor has one channel.
  const v1::FeedSpec three =
      ParseSpec(SpecText(absl::StrCat("outputs { name: 'image' feature: 'image' ", kDecode,
                                      " transforms { normalize { mean: [1, 2, 3] } } }")));
  const SheetFeed grey = {.tensors = {BlocksTensor("image", DType::kFloat32, v1::NHWC, 1, AsItIs)}};
  EXPECT_THAT(refusal(three, MakeSteps(grey, 0, 1), {}), HasSubstr("'image' has 1 channels"));
}

}  // namespace
}  // namespace systole
