#include "core/record/images/bytes_in_flight.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(BytesInFlightTest, HoldsStayWithinTheBoundAndALargerHoldIsAlone) {
  BytesInFlight all(10);
  std::atomic<uint64_t> held = 0;
  std::atomic<uint64_t> most_shared = 0;
  std::atomic<int> shared_with_large = 0;
  const auto work = [&](uint64_t bytes) {
    for (int i = 0; i < 200; ++i) {
      const BytesInFlight::Hold hold(all, bytes);
      const uint64_t now = held += bytes;
      if (bytes > 10) {
        shared_with_large += now == bytes ? 0 : 1;
      } else {
        uint64_t seen = most_shared;
        while (seen < now && !most_shared.compare_exchange_weak(seen, now)) {
        }
      }
      held -= bytes;
    }
  };
  std::vector<std::thread> threads;
  for (const uint64_t bytes : {3, 4, 5, 6, 10, 25}) threads.emplace_back(work, bytes);
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most_shared, 10u);
  EXPECT_EQ(shared_with_large, 0);
}

TEST(BytesInFlightTest, HoldsOfAnySizeAreGrantedEvenIfTheBoundIsZero) {
  BytesInFlight all(0);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    const BytesInFlight::Hold hold(all, bytes);
  }
}

}  // namespace
}  // namespace systole
