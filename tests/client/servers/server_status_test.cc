#include "client/servers/server_status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/fake_server.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/status_metrics.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ServerStatusTest, ReturnsWhatTheServerSays) {
  const FakeServer server({.status = [](v1::ServerStatusResponse& answer) {
    answer.set_version("1.2.3");
    AddMetric(answer, "moons", 12.5);
    return absl::OkStatus();
  }});
  const absl::StatusOr<v1::ServerStatusResponse> status =
      AskServerStatus(server.address(), absl::FromChrono(kLongestWait));
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->version(), "1.2.3");
  EXPECT_EQ(MetricOf(*status, "moons"), 12.5);
}

TEST(ServerStatusTest, AnErrorNamesTheServer) {
  const FakeServer server(
      {.status = [](v1::ServerStatusResponse&) { return absl::PermissionDeniedError("not you"); }});
  EXPECT_THAT(AskServerStatus(server.address(), absl::FromChrono(kLongestWait)).status(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr(server.address() + ", asked for its status: not you")));
  EXPECT_THAT(AskServerStatus("nowhere", absl::Seconds(1)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nowhere")));
}

// The call has no timeout, so only the refused connection can end the call.
TEST(ServerStatusTest, ARefusedConnectionFailsAtOnce) {
  const std::string nobody = DeadAddress();
  EXPECT_THAT(AskServerStatus(nobody, absl::InfiniteDuration()).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(nobody), HasSubstr("Connection refused"),
                             HasSubstr("Is systole-server running there"))));
}

}  // namespace
}  // namespace systole
