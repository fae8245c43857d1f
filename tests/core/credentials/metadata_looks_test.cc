#include "core/credentials/metadata_looks.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/credentials/credential_surroundings.h"
#include "core/http/no_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/credentials/fake_surroundings.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

using Looks = MetadataLooks<std::string>;

class MetadataLooksTest : public testing::Test {
 protected:
  // How often a new MetadataLooks looks for the service if none answers.
  int LooksInVain() {
    const CredentialSurroundings surroundings = fake_.Get();
    CredentialServers servers(surroundings);
    Looks looks(surroundings, servers, "amazon", "METADATA_ADDRESS");
    int count = 0;
    const Looks::Found found = looks.Ask(false, [&count]() -> Looks::Found {
      ++count;
      return NoServerError("nobody");
    });
    EXPECT_TRUE(found.ok() && !found->has_value());
    return count;
  }

  FakeSurroundings fake_;
};

TEST_F(MetadataLooksTest, TheServiceIsTriedThreeTimesOnMachinesThatMayHaveIt) {
  EXPECT_EQ(LooksInVain(), 3);  // The firmware says nothing.
  fake_.SetFact("sys_vendor", "\n");
  EXPECT_EQ(LooksInVain(), 3);
  fake_.SetFact("sys_vendor", "Amazon EC2\n");
  EXPECT_EQ(LooksInVain(), 3);
  fake_.SetFact("sys_vendor", "Xen\n");
  fake_.SetFact("bios_version", "4.11.amazon\n");
  EXPECT_EQ(LooksInVain(), 3);
}

TEST_F(MetadataLooksTest, OnOtherVendorsMachinesTheServiceIsTriedOnceUnlessItsAddressIsSet) {
  for (const char* vendor : {"Google\n", "QEMU\n", "Dell Inc.\n"}) {
    fake_.SetFact("sys_vendor", vendor);
    EXPECT_EQ(LooksInVain(), 1) << vendor;
  }
  fake_.Set("METADATA_ADDRESS", "http://127.0.0.1:1");
  EXPECT_EQ(LooksInVain(), 3);
}

TEST_F(MetadataLooksTest, AServiceFoundOnAnotherVendorsMachineIsUsed) {
  fake_.SetFact("sys_vendor", "QEMU\n");
  const CredentialSurroundings surroundings = fake_.Get();
  CredentialServers servers(surroundings);
  Looks looks(surroundings, servers, "google", "METADATA_ADDRESS");
  const auto found = looks.Ask(
      false, []() -> Looks::Found { return CredentialLease<std::string>{.value = "token"}; });
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->value, "token");
  EXPECT_TRUE(looks.has_given());
  // After the service has given a token, its absence is a failure.
  EXPECT_THAT(looks.Ask(false, []() -> Looks::Found { return NoServerError("nobody"); }),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nobody")));
}

TEST_F(MetadataLooksTest, ARequiredServiceThatIsAbsentIsAnError) {
  const CredentialSurroundings surroundings = fake_.Get();
  CredentialServers servers(surroundings);
  Looks looks(surroundings, servers, "google", "METADATA_ADDRESS");
  EXPECT_THAT(looks.Ask(true, []() -> Looks::Found { return NoServerError("nobody"); }),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nobody")));
  EXPECT_FALSE(looks.has_given());
}

}  // namespace
}  // namespace systole
