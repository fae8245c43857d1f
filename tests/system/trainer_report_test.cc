// A trainer's waits: the real client reports them, and the real programs show them.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/admin/http_client.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;

constexpr int kRecordBytes = 16 << 10;

// The number after `before` in `text`; -1 if there is none.
double NumberAfter(const std::string& before, const std::string& text) {
  const size_t at = text.find(before);
  if (at == std::string::npos) return -1;
  const size_t begin = at + before.size();
  double number = -1;
  return absl::SimpleAtod(text.substr(begin, text.find_first_of("\n,}", begin) - begin), &number)
             ? number
             : -1;
}

class TrainerReportSystemTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = ServerProcess::Start(
        {"--admin", "127.0.0.1:0", "--admin-port-file", folder_ / "port", "--dataset",
         "raw=" + folder_.Write("a", RawShard(0, 64, kRecordBytes))});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(folder_ / "port"); }));
    ASSERT_TRUE(absl::SimpleAtoi(ReadWholeFile(folder_ / "port"), &port_));
  }
  std::string Metrics() const { return HttpGet(port_, "/metrics").body; }
  std::string Status(bool json) const {
    std::vector<std::string> args = {"status", "--interval", "0", "--server", server_->address()};
    if (json) args.push_back("--json");
    return RunSystole(args).out;
  }

  const TempFolder folder_;
  std::unique_ptr<ServerProcess> server_;
  int port_ = 0;
};

constexpr char kMean[] = "\nsystole_trainer_wait_ratio{statistic=\"mean\"} ";
constexpr char kMax[] = "\nsystole_trainer_wait_ratio{statistic=\"max\"} ";

TEST_F(TrainerReportSystemTest, ATrainersWaitRatioIsInTheMetricsAndTheStatus) {
  EXPECT_THAT(Metrics(), AllOf(HasSubstr("\nsystole_trainers_reporting 0\n"),
                               HasSubstr("systole_trainer_wait_ratio{statistic=\"max\"} 0\n")));
  // Steps of 1 MiB, so that the stream stays open while the trainer takes no step.
  absl::StatusOr<std::unique_ptr<FeedClient>> feed = FeedClient::Create(
      SpecFromText(RawSpec(kRecordBytes, /*epochs=*/1'000'000)),
      {.servers = {server_->address()}, .prefetch_bytes = 0, .report_every = absl::Seconds(2)});
  ASSERT_THAT(feed, IsOk());
  // Only two steps are fetched ahead, so a trainer that takes many at once waits.
  absl::Status taken;
  std::string metrics;
  ASSERT_TRUE(WaitUntil([&] {
    for (int step = 0; step < 20 && taken.ok(); ++step) taken = (*feed)->Next().status();
    metrics = Metrics();
    return !taken.ok() || NumberAfter(kMax, metrics) > 0;
  }));
  ASSERT_THAT(taken, IsOk());
  EXPECT_THAT(metrics, HasSubstr("\nsystole_trainers_reporting 1\n"));
  const double waits = NumberAfter(kMax, metrics);
  EXPECT_LE(waits, 1);
  EXPECT_EQ(NumberAfter(kMean, metrics), waits);  // There is only one trainer.
  EXPECT_THAT(Metrics(), HasSubstr("\nsystole_trainer_limits{limit=\"decode\"} "));
  const std::string status = Status(/*json=*/true);
  EXPECT_THAT(status,
              AllOf(HasSubstr("\"trainers_reporting\":1,"),
                    HasSubstr("\"streams\":[{\"stream\":1,"), HasSubstr("\"dataset\":\"raw\"")));
  for (const char* before : {"\"trainer_wait_ratio\":{\"mean\":", "\"trainer\":{\"wait_ratio\":"}) {
    EXPECT_THAT(NumberAfter(before, status), AllOf(Gt(0.0), Le(1.0))) << before;
  }
  EXPECT_THAT(Status(/*json=*/false),
              AllOf(ContainsRegex("  stream  dataset  steps/s +MB/s +trainer waits  limit"),
                    HasSubstr("  1       raw   "), HasSubstr("  ipv4:127.0.0.1:")));
  // From now on the trainer takes no step, and so does not wait.
  EXPECT_TRUE(WaitUntil([&] {
    const double now = NumberAfter(kMax, Metrics());
    return now > 0 && now < waits / 2;
  }));
}

}  // namespace
}  // namespace systole
