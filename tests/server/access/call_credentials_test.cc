#include "server/access/call_credentials.h"

#include "gtest/gtest.h"
#include "server/access/permissions.h"

namespace systole {
namespace {

TEST(CallCredentialsTest, TheHostOfAPeerIsItsAddressWithoutThePort) {
  EXPECT_EQ(HostOfPeer("ipv4:192.0.2.1:4711"), "ipv4:192.0.2.1");
  EXPECT_EQ(HostOfPeer("ipv6:%5B::1%5D:4711"), "ipv6:%5B::1%5D");
  EXPECT_EQ(HostOfPeer("unix:/run/a:b.sock"), "unix:/run/a:b.sock");
  EXPECT_EQ(HostOfPeer(""), "");
}

TEST(PermissionsTest, ThePeerOfACallerIsItsIdentityOrElseItsHost) {
  EXPECT_EQ(PeerOf({.identity = "a"}, "ipv4:192.0.2.1:4711"), "identity 'a'");
  EXPECT_EQ(PeerOf({}, "ipv4:192.0.2.1:4711"), "ipv4:192.0.2.1");
}

}  // namespace
}  // namespace systole
