#include "client/verdict/feed_verdict.h"

#include "core/batch/slice_layout.h"
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

TEST(FeedVerdictTest, TheLastLineSaysWhatTheTrainerWaitedFor) {
  const SliceLayout layout = Layout();
  const auto text = [&](const FeedVerdict& verdict) { return VerdictText(verdict, layout); };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({.limit = FeedLimit::kDecode, .waits = 0.12, .share = 0.8, .output = 0}),
            "The trainer waited 12 % of the time: 80 % of that for decode (output image).");
  EXPECT_EQ(text({.limit = FeedLimit::kDecode, .waits = 0.12, .share = 0.8, .output = 7}),
            "The trainer waited 12 % of the time: 80 % of that for decode.");
  EXPECT_EQ(text({.limit = FeedLimit::kStorage, .waits = 0.5, .share = 0.6}),
            "The trainer waited 50 % of the time: 60 % of that for storage.");
  EXPECT_EQ(text({.limit = FeedLimit::kTrainer, .waits = 0.001}),
            "The trainer waited 0.1 % of the time: steps were ready before it wanted them.");
  EXPECT_EQ(text({.limit = FeedLimit::kNothing}),
            "The trainer waited 0.0 % of the time: the feed just kept up.");
  EXPECT_EQ(text({.limit = FeedLimit::kUnknown, .waits = 1, .share = 0.9}),
            "The trainer waited 100 % of the time: 90 % of that for servers of an older release, "
            "which do not say why.");
}

TEST(FeedVerdictTest, TheProgressBarShowsWaitsOnly) {
  EXPECT_EQ(VerdictRemark({}), "");
  EXPECT_EQ(VerdictRemark({.limit = FeedLimit::kTrainer, .waits = 0.001}), "");
  EXPECT_EQ(VerdictRemark({.limit = FeedLimit::kWire, .waits = 0.3, .share = 0.5}),
            "waits 30 % for wire");
  EXPECT_EQ(VerdictRemark({.limit = FeedLimit::kUnknown, .waits = 0.3, .share = 0.5}),
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
