#include "client/verdict/feed_verdict.h"

#include <climits>

#include "core/batch/slice_layout.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

SliceLayout Layout() {
  absl::StatusOr<SliceLayout> layout =
      SliceLayout::Create({{.spec = {.name = "image", .dtype = DType::kUint8, .shape = {4, 2}}},
                           {.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {4}}}});
  EXPECT_THAT(layout, IsOk());
  return *std::move(layout);
}

v1::FeedSpec Spec() {
  v1::FeedSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "outputs { name: 'label' transforms { one_hot {} } } "
      "outputs { name: 'image' transforms { decode_jpeg {} } transforms { random_crop {} } }",
      &spec));
  return spec;
}

FeedVerdict Decoding(int output, int operation) {
  return {.limit = FeedLimit::kDecode,
          .waits = 0.12,
          .share = 0.8,
          .output = output,
          .operation = operation};
}

TEST(FeedVerdictTest, TheLastLineSaysWhatTheTrainerWaitedFor) {
  const SliceLayout layout = Layout();
  const v1::FeedSpec spec = Spec();
  const auto text = [&](const FeedVerdict& verdict) { return VerdictText(verdict, layout, spec); };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({.limit = FeedLimit::kDecode, .waits = 0.12, .share = 0.8, .output = 0}),
            "The trainer waited 12 % of the time: 80 % of that for decode (output image).");
  EXPECT_EQ(text({.limit = FeedLimit::kDecode, .waits = 0.12, .share = 0.8, .output = 7}),
            "The trainer waited 12 % of the time: 80 % of that for decode.");
  EXPECT_EQ(text({.limit = FeedLimit::kStorage, .waits = 0.5, .share = 0.6}),
            "The trainer waited 50 % of the time: 60 % of that for storage.");
  EXPECT_EQ(
      text({.limit = FeedLimit::kTrainer, .waits = 0.001}),
      "The trainer waited 0.1 % of the time: steps were ready before the trainer asked for them.");
  EXPECT_EQ(text({.limit = FeedLimit::kNothing}),
            "The trainer waited 0.0 % of the time: the feed just kept up.");
  EXPECT_EQ(text({.limit = FeedLimit::kUnknown, .waits = 1, .share = 0.9}),
            "The trainer waited 100 % of the time: 90 % of that for servers of an older release, "
            "which do not say why.");
}

TEST(FeedVerdictTest, TheOperationHasTheNameThatTheSpecGivesIt) {
  const SliceLayout layout = Layout();
  const v1::FeedSpec spec = Spec();
  EXPECT_EQ(VerdictText(Decoding(0, 1), layout, spec),
            "The trainer waited 12 % of the time: 80 % of that for decode (output image, operation "
            "random_crop).");
  EXPECT_EQ(CostliestOperation(Decoding(0, 0), layout, spec), "decode_jpeg");
  EXPECT_EQ(VerdictRemark(Decoding(0, 0), layout, spec),
            "waits 12 % for decode (output image, operation decode_jpeg)");
}

TEST(FeedVerdictTest, AnOperationThatTheSpecDoesNotHaveIsNotNamed) {
  const SliceLayout layout = Layout();
  const v1::FeedSpec spec = Spec();
  for (const int operation : {-1, 2, INT_MAX, INT_MIN}) {
    EXPECT_EQ(VerdictRemark(Decoding(0, operation), layout, spec),
              "waits 12 % for decode (output image)");
  }
  // Tensor 1 is `valid`, which is no output of the spec.
  EXPECT_EQ(VerdictRemark(Decoding(1, 0), layout, spec), "waits 12 % for decode (output valid)");
  // These tensors do not exist.
  for (const int output : {-1, 2, INT_MAX, INT_MIN}) {
    EXPECT_EQ(VerdictRemark(Decoding(output, 0), layout, spec), "waits 12 % for decode");
  }
}

TEST(FeedVerdictTest, TheProgressBarShowsWaitsOnly) {
  const SliceLayout layout = Layout();
  const v1::FeedSpec spec = Spec();
  const auto remark = [&](const FeedVerdict& verdict) {
    return VerdictRemark(verdict, layout, spec);
  };
  EXPECT_EQ(remark({}), "");
  EXPECT_EQ(remark({.limit = FeedLimit::kTrainer, .waits = 0.001}), "");
  EXPECT_EQ(remark({.limit = FeedLimit::kWire, .waits = 0.3, .share = 0.5}), "waits 30 % for wire");
  EXPECT_EQ(remark({.limit = FeedLimit::kUnknown, .waits = 0.3, .share = 0.5}),
            "waits 30 % for servers");
}

TEST(FeedVerdictTest, EveryLimitHasAName) {
  EXPECT_EQ(LimitName(FeedLimit::kUnknown), "unknown");
  EXPECT_EQ(LimitName(FeedLimit::kStorage), "storage");
  EXPECT_EQ(LimitName(FeedLimit::kDecode), "decode");
  EXPECT_EQ(LimitName(FeedLimit::kWire), "wire");
  EXPECT_EQ(LimitName(FeedLimit::kClient), "client");
  EXPECT_EQ(LimitName(FeedLimit::kTrainer), "trainer");
  EXPECT_EQ(LimitName(FeedLimit::kNothing), "nothing");
}

}  // namespace
}  // namespace systole
