#include "core/engine/busy_share.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(BusyShareTest, ApproachesTheCurrentLoadExponentially) {
  BusyShare share;
  EXPECT_EQ(share.At(absl::Minutes(5)), 0);
  share.Set(1, absl::Minutes(5));
  EXPECT_NEAR(share.At(absl::Minutes(5) + absl::Milliseconds(10)), 0.001, 1e-4);
  EXPECT_NEAR(share.At(absl::Minutes(5) + kBusyMemory), 0.632, 1e-3);
  EXPECT_NEAR(share.At(absl::Minutes(6)), 1, 0.003);
  share.Set(0.5, absl::Minutes(6));
  EXPECT_NEAR(share.At(absl::Minutes(7)), 0.5, 0.003);
}

TEST(BusyShareTest, IsTheFractionOfTimeThatThreadsWork) {
  BusyShare share;
  absl::Duration now;
  for (int i = 0; i < 6000; ++i) {  // A third of each 10 ms, for a minute.
    share.Set(1, now);
    share.Set(0, now + absl::Milliseconds(10) / 3);
    now += absl::Milliseconds(10);
  }
  EXPECT_NEAR(share.At(now), 1.0 / 3, 0.01);
}

}  // namespace
}  // namespace systole
