// Networks that cut, damage, delay and throttle what passes.
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/chaos_feed.h"

namespace systole {
namespace {

using NetworkTest = ChaosTest;

TEST_F(NetworkTest, AFeedIsUndisturbedByConnectionsCutAtAnyByte) {
  for (int i = 0; i < 3; ++i) AddServer();
  SetAll({.bytes_per_cut = 12 << 20});
  const int wanted = Times(20, 1000);
  // A step has 2 MiB, so about every sixth step has a cut. The steps have more cuts than `wanted`.
  const int steps = Times(400, 7200);
  const auto feed = StartFeed(steps);
  ExpectUndisturbed(*feed, steps);
  int64_t cuts = 0;
  for (int i = 0; i < num_servers(); ++i) cuts += proxy(i).cuts();
  EXPECT_GE(cuts, wanted);
}

TEST_F(NetworkTest, BytesThatAreDamagedOnTheWayAreFoundAndFetchedAgain) {
  for (int i = 0; i < 2; ++i) AddServer();
  SetAll({.bytes_per_flip = 16 << 20});
  const int steps = Times(150, 600);
  const auto feed = StartFeed(steps);
  ExpectUndisturbed(*feed, steps);
  EXPECT_GE(proxy(0).flips() + proxy(1).flips(), 3);
}

TEST_F(NetworkTest, AFeedIsUndisturbedByHighNetworkLatency) {
  for (int i = 0; i < 2; ++i) AddServer();
  SetAll({.delay = absl::Milliseconds(100)});
  const int steps = Times(4, 20);
  const auto feed = StartFeed(steps);
  ExpectUndisturbed(*feed, steps);
}

TEST_F(NetworkTest, AFeedIsUndisturbedByLowNetworkBandwidth) {
  AddServer();
  SetAll({.bytes_per_second = 10'000'000 / 8});
  const int steps = Times(3, 10);
  const auto feed = StartFeed(steps);
  ExpectUndisturbed(*feed, steps);
}

TEST_F(NetworkTest, AFeedAbandonsAConnectionThatSwallowsAllBytes) {
  for (int i = 0; i < 2; ++i) AddServer();
  SetAll({.bytes_per_second = 60 << 20});
  const int steps = Times(200, 600);
  std::string printed;
  const auto feed = FeedInMidStream(steps, printed, {"--silence-timeout", "2"});
  proxy(0).Set({.swallows = true});
  ExpectUndisturbed(*feed, steps, printed);
}

TEST_F(NetworkTest, AFeedIsUndisturbedByRandomlyChangingNetworkFaults) {
  for (int i = 0; i < 3; ++i) AddServer();
  const int steps = Times(150, 600);
  const auto feed = StartFeed(steps);
  while (feed->IsRunning()) {
    for (int i = 0; i < num_servers(); ++i) {
      Faults faults;
      switch (Draw(6)) {
        case 0:
          faults.bytes_per_cut = 8 << 20;
          break;
        case 1:
          faults.bytes_per_flip = 32 << 20;
          break;
        case 2:
          faults.delay = absl::Milliseconds(Draw(20));
          break;
        case 3:
          faults.bytes_per_second = 20 << 20;
          break;
        case 4:
          faults.refuses = true;
          proxy(i).CutAll();
          break;
        default:
          break;
      }
      proxy(i).Set(faults);
    }
    absl::SleepFor(absl::Milliseconds(500));
  }
  ExpectUndisturbed(*feed, steps);
}

}  // namespace
}  // namespace systole
