#include "client/servers/known_server.h"

#include <map>
#include <memory>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;

KnownServer At(const char* address) {
  KnownServer server;
  server.address = address;
  ReceiveWatch watch;
  // A link connects when it is first used, so this one never connects.
  server.link =
      std::make_unique<ServerLink>(address, std::make_shared<const ChannelSecurity>(), watch);
  return server;
}

TEST(KnownServerTest, AFailureClearsTheIdentityAndSetsTheLastError) {
  KnownServer server = At("127.0.0.1:1");
  server.identity.emplace();
  server.Failed(absl::UnavailableError("gone"));
  EXPECT_FALSE(server.identity.has_value());
  EXPECT_THAT(server.last_error, StatusIs(absl::StatusCode::kUnavailable, "gone"));
}

TEST(KnownServerTest, ErrorsNameTheServer) {
  EXPECT_THAT(At("127.0.0.1:1").Named(absl::DataLossError("a flipped bit")),
              StatusIs(absl::StatusCode::kDataLoss, "a flipped bit [server 127.0.0.1:1]"));
}

TEST(KnownServerTest, UnreachableNamesEveryServerWithItsLastError) {
  std::map<int, KnownServer> servers;
  servers.emplace(3, At("127.0.0.1:1"));
  servers.emplace(7, At("127.0.0.1:2"));
  servers.at(7).Failed(absl::UnavailableError("refused"));
  EXPECT_THAT(Unreachable("no step came", servers, /*tls=*/false),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("no step came: 127.0.0.1:1: no answer; 127.0.0.1:2: refused. ")));
}

TEST(KnownServerTest, AClosedConnectionHintsAtTlsAndARefusedOneAtAMissingServer) {
  std::map<int, KnownServer> servers;
  servers.emplace(3, At("127.0.0.1:1"));
  servers.at(3).Failed(absl::UnavailableError("Socket closed"));
  EXPECT_THAT(Unreachable("no step came", servers, /*tls=*/false),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("with TLS does (--tls)")));
  servers.at(3).Failed(absl::UnavailableError("Connection refused"));
  EXPECT_THAT(
      Unreachable("no step came", servers, /*tls=*/false),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Is systole-server running there")));
}

}  // namespace
}  // namespace systole
