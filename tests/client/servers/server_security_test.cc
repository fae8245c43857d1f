#include "client/servers/server_security.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;

TEST(ServerSecurityTest, CertificatesAreCheckedForTheDnsNameOrTheGivenServerName) {
  const ServerSecurity tls = {.tls = true};
  EXPECT_THAT(NameInCertificates(tls, {"dns:///feeds:8470"}), IsOkAndHolds("feeds"));
  EXPECT_THAT(NameInCertificates(tls, {"dns:///feeds:1", "dns:///feeds:2"}), IsOkAndHolds("feeds"));
  // Without a name for all servers, each certificate must have the name in its server's address.
  EXPECT_THAT(NameInCertificates(tls, {"a:1", "file:b"}), IsOkAndHolds(""));
  EXPECT_THAT(NameInCertificates({}, {"dns:///feeds:8470"}), IsOkAndHolds(""));
  const ServerSecurity named = {.tls = true, .server_name = "other"};
  EXPECT_THAT(NameInCertificates(named, {"dns:///feeds:8470", "a:1"}), IsOkAndHolds("other"));
}

TEST(ServerSecurityTest, ADnsNameAmongOtherServersRequiresTlsServerName) {
  for (const char* second : {"dns:///others:8470", "10.0.0.1:8470", "file:servers.txt"}) {
    EXPECT_THAT(NameInCertificates({.tls = true}, {"dns:///feeds:8470", second}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--tls-server-name")))
        << second;
  }
}

}  // namespace
}  // namespace systole
