#include "server/streams/stream_log.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<std::shared_ptr<const FeedPlan>> SmallPlan() {
  return FeedPlan::Create(
      SpecFromText("dataset: 'test' global_batch: 4 num_cores: 2 outputs { name: 'id' feature: "
                   "'record_id' dtype: INT64 }"),
      OpenTestDataset(TestShards({12})));
}

TEST(StreamLogTest, LogsTheOpeningAndTheEndOfAStreamAndNoStepsBetween) {
  const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = SmallPlan();
  ASSERT_THAT(plan, IsOk());
  std::vector<std::string> lines;
  EventLog events([&lines](LogLevel, const std::string& line) { lines.push_back(line); });
  absl::Duration now = absl::Seconds(7);
  StreamLog log(events, 12, {.client = "ipv4:1.2.3.4:5\nforged"}, **plan,
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

TEST(StreamLogTest, TheFirstLineNamesTheClientsTrace) {
  const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = SmallPlan();
  ASSERT_THAT(plan, IsOk());
  std::vector<std::string> lines;
  EventLog events([&lines](LogLevel, const std::string& line) { lines.push_back(line); });
  const StreamLog log(events, 1, {.client = "unix:/run/s", .trace = "4bf92f35"}, **plan,
                      {.count = 1, .core_end = 2});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("for unix:/run/s, trace 4bf92f35"));
}

TEST(StreamLogTest, JsonLinesHaveFeedClientIdentityDatasetAndStep) {
  const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = SmallPlan();
  ASSERT_THAT(plan, IsOk());
  std::vector<std::string> lines;
  EventLog events([&lines](LogLevel, const std::string& line) { lines.push_back(line); },
                  {.format = LogFormat::kJson});
  StreamLog log(events, 1, {.client = "unix:/run/s", .identity = "a"}, **plan,
                {.first_step = 5, .count = 100, .stride = 2, .core_begin = 0, .core_end = 2});
  log.CountStep();
  log.CountStep();
  log.End(LogLevel::kWarn, "cut");
  ASSERT_EQ(lines.size(), 2u);
  const std::string fields =
      absl::StrFormat(R"("feed":"%016x","client":"unix:/run/s","identity":"a","dataset":"test",)",
                      (*plan)->fingerprint());
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("for identity 'a' at unix:/run/s\""),
                    HasSubstr(R"("cause":"stream_opened")"), HasSubstr(fields + R"("step":5})")));
  EXPECT_THAT(lines[1], AllOf(HasSubstr(R"("level":"warn","cause":"stream_ended")"),
                              HasSubstr(fields + R"("step":9})")));
}

TEST(StreamLogTest, AStepBeyondInt64IsLoggedAsTheLargestInt64) {
  const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = SmallPlan();
  ASSERT_THAT(plan, IsOk());
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  std::string last_line;
  EventLog events([&last_line](LogLevel, const std::string& line) { last_line = line; },
                  {.format = LogFormat::kJson});
  StreamLog log(
      events, 1, {}, **plan,
      {.first_step = kMax - 1, .count = kMax, .stride = kMax, .core_begin = 0, .core_end = 2});
  log.CountStep();
  log.End(LogLevel::kInfo, "all sent");
  EXPECT_THAT(last_line, HasSubstr(absl::StrCat(R"("step":)", kMax, "}")));
}

}  // namespace
}  // namespace systole
