#include "proto/framing/grpc_log.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "grpc/support/log.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::ElementsAre;

std::vector<std::string>& Heard() {
  static std::vector<std::string> heard;
  return heard;
}

std::string StderrOf(const char* message) {
  gpr_log_verbosity_init();  // The first channel calls this.
  testing::internal::CaptureStderr();
  gpr_log(GPR_ERROR, "%s", message);
  return testing::internal::GetCapturedStderr();
}

TEST(GrpcLogTest, LinesGoToTheSinkOrNowhereButNotToStderr) {
  RedirectGrpcLog([](absl::string_view message) { Heard().emplace_back(message); });
  EXPECT_EQ(StderrOf("one\nforged"), "");
  EXPECT_THAT(Heard(), ElementsAre("one\nforged"));
  ASSERT_EQ(unsetenv("GRPC_VERBOSITY"), 0);
  SilenceGrpcLog();
  EXPECT_EQ(StderrOf("two"), "");
  EXPECT_EQ(Heard().size(), 1u);
}

TEST(GrpcLogTest, GrpcVerbosityInTheEnvironmentKeepsTheLogOn) {
  RedirectGrpcLog([](absl::string_view message) { Heard().emplace_back(message); });
  Heard().clear();
  ASSERT_EQ(setenv("GRPC_VERBOSITY", "error", 1), 0);
  SilenceGrpcLog();
  EXPECT_EQ(StderrOf("three"), "");
  EXPECT_THAT(Heard(), ElementsAre("three"));
  ASSERT_EQ(unsetenv("GRPC_VERBOSITY"), 0);
}

}  // namespace
}  // namespace systole
