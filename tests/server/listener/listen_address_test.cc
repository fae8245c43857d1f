#include "server/listener/listen_address.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ListenAddressTest, HostAndPortAreSplitAtTheLastColon) {
  const absl::StatusOr<HostAndPort> where = HostAndPortOf("--admin", "[::1]:8471", "HOST:PORT");
  ASSERT_THAT(where, IsOk());
  EXPECT_EQ(where->host, "[::1]");
  EXPECT_EQ(where->port, 8471);
}

TEST(ListenAddressTest, AnInvalidAddressErrorNamesTheFlagAndTheFormat) {
  for (const char* text : {"", "host", ":1", "host:", "host:x", "host:65536", "host:-1"}) {
    EXPECT_THAT(HostAndPortOf("--admin", text, "HOST:PORT"),
                StatusIs(kInvalid, AllOf(HasSubstr("--admin '"), HasSubstr("want HOST:PORT"))))
        << text;
  }
}

TEST(ListenAddressTest, AddressesBeyondLoopbackNeedTlsOrInsecure) {
  EXPECT_THAT(CheckReach("127.0.0.1:1", "127.0.0.1", /*tls=*/false, /*insecure=*/false), IsOk());
  EXPECT_THAT(CheckReach("0.0.0.0:1", "0.0.0.0", /*tls=*/false, /*insecure=*/false),
              StatusIs(kInvalid, AllOf(HasSubstr("0.0.0.0:1"), HasSubstr("--insecure"))));
  EXPECT_THAT(CheckReach("0.0.0.0:1", "0.0.0.0", /*tls=*/true, /*insecure=*/false), IsOk());
  EXPECT_THAT(CheckReach("0.0.0.0:1", "0.0.0.0", /*tls=*/false, /*insecure=*/true), IsOk());
}

TEST(ListenAddressTest, TheErrorForATakenPortNamesTheAddressAndItsFlag) {
  const absl::StatusOr<ListeningSockets> first =
      ListenAt("--admin", "127.0.0.1:0", {.host = "127.0.0.1", .port = 0});
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(ListenAt("--admin", "there", {.host = "127.0.0.1", .port = first->port}),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("'there'"), HasSubstr("choose another --admin"))));
}

}  // namespace
}  // namespace systole
