// Random faults, one after the other, for minutes, and a check that memory and descriptors do not
// grow.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/chaos_feed.h"

namespace systole {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// The most bytes by which memory may grow from the second to the last quarter of the measurements.
// The medians of these quarters are compared. If each fault leaked a chunk or a connection, memory
// would grow by many times as much within minutes. Smaller growth is memory that malloc and gRPC
// keep from their busiest moment.
constexpr int64_t kMostGrowth = 16 * kMiB;

struct Look {
  int64_t bytes;
  int64_t files;
};

int64_t Median(const std::vector<Look>& looks, size_t begin, size_t end, int64_t Look::*what) {
  std::vector<int64_t> values;
  for (size_t i = begin; i < end; ++i) values.push_back(looks[i].*what);
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

absl::Duration SoakTime() {
  int seconds = 0;
  const char* const text = std::getenv("SYSTOLE_CHAOS_SOAK");
  return absl::Seconds(text != nullptr && absl::SimpleAtoi(text, &seconds) ? seconds : 600);
}

class SoakTest : public ChaosTest {
 protected:
  // Causes a fault of server `i` or of its proxy.
  void Disturb(int i) {
    Faults faults;
    switch (Draw(7)) {
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
        faults.bytes_per_second = 5 << 20;
        break;
      case 4:
        faults.refuses = true;
        proxy(i).CutAll();
        break;
      case 5:
        server(i).Signal(SIGSTOP);
        break;
      default:
        faults.swallows = true;
        break;
    }
    proxy(i).Set(faults);
  }
  void Calm(int i) {
    server(i).Signal(SIGCONT);
    proxy(i).Set({.bytes_per_second = 20 << 20});
  }

  void ExpectFlat(const std::string& who, const std::vector<Look>& looks) {
    const size_t quarter = looks.size() / 4;
    const auto early = [&](int64_t Look::*what) {
      return Median(looks, quarter, 2 * quarter, what);
    };
    const auto late = [&](int64_t Look::*what) {
      return Median(looks, looks.size() - quarter, looks.size(), what);
    };
    const std::string figures =
        absl::StrCat(who, ": ", early(&Look::bytes) / kMiB, " MiB and ", early(&Look::files),
                     " descriptors in the second quarter, ", late(&Look::bytes) / kMiB, " and ",
                     late(&Look::files), " in the last");
    GTEST_LOG_(INFO) << figures;
    EXPECT_LE(late(&Look::bytes) - early(&Look::bytes), kMostGrowth) << figures;
    EXPECT_LE(late(&Look::files), early(&Look::files)) << figures;
  }
};

TEST_F(SoakTest, MemoryAndDescriptorsDoNotGrow) {
  // Servers 0 and 1 live all the time. Server 2 is killed again and again.
  for (int i = 0; i < 3; ++i) AddServer();
  for (int i = 0; i < 3; ++i) Calm(i);
  // The client prefetches few steps, so its window is full before the first faults.
  const auto feed = StartFeed(
      100'000'000, {"--silence-timeout", "2", "--prefetch-bytes", absl::StrCat(32 * kMiB)});
  const absl::Time end = absl::Now() + SoakTime();
  std::vector<Look> of_feed;
  std::vector<Look> of_servers[2];
  while (absl::Now() < end && feed->IsRunning()) {
    for (int i = 0; i < 3; ++i) {
      if (Draw(2) == 0) Disturb(i);
    }
    const bool kills = Draw(4) == 0;
    if (kills) server(2).Signal(SIGKILL);
    absl::SleepFor(absl::Milliseconds(500 + Draw(1500)));
    if (kills) Restart(2);
    for (int i = 0; i < 3; ++i) Calm(i);
    // Memory is measured at moments without faults.
    absl::SleepFor(absl::Milliseconds(1500));
    of_feed.push_back({feed->MemoryBytes("VmRSS"), feed->OpenFiles()});
    for (int i = 0; i < 2; ++i) {
      of_servers[i].push_back({server(i).MemoryBytes("VmRSS"), server(i).OpenFiles()});
    }
  }
  ASSERT_TRUE(feed->IsRunning()) << feed->err();
  feed->Signal(SIGINT);
  const Finished finished = feed->Wait();
  const int steps =
      static_cast<int>(std::count(finished.out.begin(), finished.out.end(), '\n')) / kChaosRecords;
  GTEST_LOG_(INFO) << of_feed.size() << " rounds of faults, " << steps << " steps";
  EXPECT_GT(steps, 0);
  ExpectUndisturbed(finished.out, steps);
  ASSERT_GE(of_feed.size(), 8u) << "too few rounds to compare: give --soak more seconds";
  ExpectFlat("the feed", of_feed);
  ExpectFlat("server 0", of_servers[0]);
  ExpectFlat("server 1", of_servers[1]);
}

}  // namespace
}  // namespace systole
