// `pace`, `replay` and `load` with real servers. The tests check what the programs print, and that
// the programs agree with each other. The tests do not check how fast this machine is.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TimingTest : public testing::Test {
 protected:
  void SetUp() override {
    PackFlowers(folder_, /*images=*/60, /*shards=*/2);
    // ResNet-50 takes images of 224 x 224 pixels.
    spec_ = folder_.Write(
        "spec.textproto",
        absl::StrReplaceAll(FlowersSpec(), {{"height: 24 width: 32", "height: 224 width: 224"}}));
    auto server = ServerProcess::Start(
        {"--dataset", absl::StrCat("flowers=", folder_ / "flowers-train-*.tfrecord")});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  const TempFolder folder_;
  std::string spec_;
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(TimingTest, PacesAFewStepsBeyondTheSpecsEpochs) {
  const Finished pace = RunSystole({"pace", "--server", server_->address(), "--spec", spec_,
                                    "--model", "resnet50", "--slice", "v3-8", "--steps", "12"});
  ASSERT_EQ(pace.exit_code, 0) << pace.err;
  EXPECT_THAT(pace.out,
              AllOf(StartsWith("mode            paced\ncores           8 x 2 examples, "
                               "resnet50 on v3-8, steps of "),
                    HasSubstr(" 11 steps, the first left out\n"), HasSubstr("AU, wall clock  ")));
}

TEST_F(TimingTest, ReplayingARecordingTwiceGivesTheSameOutput) {
  const std::string arrivals = folder_ / "flowers.arrivals";
  const Finished record = RunSystole({"replay", "--server", server_->address(), "--spec", spec_,
                                      "--steps", "20", "--save-arrivals", arrivals});
  ASSERT_EQ(record.exit_code, 0) << record.err;
  EXPECT_THAT(record.out, HasSubstr("recorded        20 steps of 8 x 2 examples"));
  server_.reset();  // From here on there is no server.
  const auto replay = [&arrivals](const std::string& slice) {
    return RunSystole(
        {"replay", "--arrivals", arrivals, "--model", "resnet50", "--slice", slice, "--json"});
  };
  const Finished first = replay("v2-8");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(
      first.out,
      AllOf(StartsWith("{\"mode\":\"replay\",\"verdict\":"), HasSubstr("\"dataset\":\"flowers\","),
            HasSubstr("\"model\":\"resnet50\","), HasSubstr("\"counted_steps\":19,")));
  EXPECT_EQ(first.out, replay("v2-8").out);
  EXPECT_NE(first.out, replay("v3-8").out);
}

TEST_F(TimingTest, LoadReportsCpuAndMemoryOfTheServers) {
  const Finished load =
      RunSystole({"load", "--server", server_->address(), "--spec", spec_, "--trainers", "2",
                  "--step-time-us", "5000", "--duration", "1s"});
  ASSERT_EQ(load.exit_code, 0) << load.err;
  EXPECT_THAT(load.out, AllOf(StartsWith("mode            load\n"), HasSubstr("\nfed             "),
                              HasSubstr("\ncores fed per server CPU "), Not(HasSubstr("not known")),
                              HasSubstr("note: a server runs on this machine")));
  const Finished ramp =
      RunSystole({"load", "--server", server_->address(), "--spec", spec_, "--trainers", "3",
                  "--ramp", "--rate", "200", "--duration", "500ms", "--json"});
  ASSERT_EQ(ramp.exit_code, 0) << ramp.err;
  EXPECT_THAT(ramp.out, AllOf(HasSubstr("{\"trainers\":1,"), HasSubstr("{\"trainers\":2,"),
                              HasSubstr("{\"trainers\":3,"), HasSubstr("\"retries\":"),
                              Not(HasSubstr("\"server_resident_bytes\":0,")),
                              Not(HasSubstr("\"server_resident_bytes\":null"))));
}

}  // namespace
}  // namespace systole
