#include "server/stream_log.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pipeline/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(StreamLogTest, TellsTheBeginningAndTheEndAndNothingBetween) {
  const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText("dataset: 'test' global_batch: 4 num_cores: 2 outputs { name: 'id' feature: "
                   "'record_id' dtype: INT64 }"),
      OpenTestDataset(TestShards({12})));
  ASSERT_THAT(plan, IsOk());
  std::vector<std::string> lines;
  EventLog events([&lines](LogLevel, const std::string& line) { lines.push_back(line); });
  absl::Duration now = absl::Seconds(7);
  StreamLog log(events, 12, "ipv4:1.2.3.4:5\nforged", **plan,
                {.first_step = 5, .count = 100, .stride = 2, .core_begin = 0, .core_end = 2},
                [&now] { return now; });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("stream 12 of feed "), HasSubstr("dataset 'test'"),
                              HasSubstr("cores 0 to 1, 100 steps from 5 on in strides of 2"),
                              HasSubstr("for ipv4:1.2.3.4:5\\nforged"), Not(HasSubstr("\n"))));
  for (int step = 0; step < 50; ++step) {
    log.CountBytes(2'000'000);
    log.CountStep();
  }
  EXPECT_EQ(lines.size(), 1u);
  now += absl::Seconds(10);
  log.End(LogLevel::kInfo, "all sent");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[1], AllOf(HasSubstr("stream 12 of feed "),
                              HasSubstr("ended: 50 steps in 10.0 s, 5.0/s, 10.0 MB/s: all sent")));
}

}  // namespace
}  // namespace systole
