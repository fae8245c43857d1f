#include "core/order/core_split.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/order/order.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

TEST(CoreSplitTest, SizesAreThoseOfTensorFlow) {
  std::ifstream file("tests/golden/tensorflow/splits.txt");  // Tests run at the top of the tree.
  std::string line;
  int cases = 0;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) continue;
    SCOPED_TRACE(line);
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" |"), absl::SkipEmpty());
    int64_t global_batch = 0;
    int num_cores = 0;
    ASSERT_TRUE(absl::SimpleAtoi(words[1], &global_batch) &&
                absl::SimpleAtoi(words[2], &num_cores));
    const CoreSplit split(global_batch, num_cores,
                          words[0] == "FILL" ? SplitRule::kFill : SplitRule::kBalanced);
    ASSERT_EQ(words.size(), 3u + static_cast<size_t>(num_cores));
    int64_t begin = 0;
    for (int core = 0; core < num_cores; ++core) {
      EXPECT_EQ(std::to_string(split.SizeOf(core)), words[3 + static_cast<size_t>(core)]);
      EXPECT_EQ(split.BeginOf(core), begin);
      EXPECT_LE(split.SizeOf(core), split.per_core_batch());
      begin += split.SizeOf(core);
    }
    EXPECT_EQ(begin, global_batch);
    ++cases;
  }
  EXPECT_EQ(cases, 126);
}

TEST(CoreSplitTest, AnOrderPutsEveryRecordOnOneCore) {
  for (const SplitRule rule : {SplitRule::kBalanced, SplitRule::kFill}) {
    const absl::StatusOr<Order> order = Order::Create({.seed = 1,
                                                       .num_records = 23,
                                                       .global_batch = 7,
                                                       .tail = Tail::kPad,
                                                       .num_cores = 3,
                                                       .split = rule});
    ASSERT_THAT(order, IsOk());
    std::vector<int64_t> by_core;
    std::vector<int64_t> whole;
    for (int64_t step = 0; step < order->steps_per_epoch(); ++step) {
      for (int core = 0; core < 3; ++core) {
        int64_t records = 0;
        for (int64_t slot = 0; slot < 3; ++slot) {
          const Place place = order->PlaceOnCore(step, core, slot);
          if (!place.record.has_value()) continue;
          EXPECT_EQ(slot, records++);  // The first slots have the records.
          by_core.push_back(*place.record);
        }
        EXPECT_EQ(records, order->RecordsOnCore(step, core));
      }
      for (int64_t slot = 0; slot < order->RecordsIn(step); ++slot) {
        whole.push_back(*order->PlaceOf(step, slot).record);
      }
    }
    EXPECT_EQ(by_core, whole);
    EXPECT_EQ(whole.size(), 23u);
  }
}

}  // namespace
}  // namespace systole
