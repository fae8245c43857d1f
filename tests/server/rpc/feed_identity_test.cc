#include "server/rpc/feed_identity.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

v1::FeedIdentity Own() {
  v1::FeedIdentity identity;
  identity.set_dataset_fingerprint(0xd);
  identity.set_order_fingerprint(0x2);
  identity.set_content_version("systole-4");
  identity.set_spec_fingerprint(0x5);
  return identity;
}

TEST(FeedIdentityTest, AnEqualIdentityIsAccepted) {
  EXPECT_THAT(CheckIdentity(Own(), Own(), {}), IsOk());
}

TEST(FeedIdentityTest, AClientMayExpectAnySpecAndAnyContentVersion) {
  v1::FeedIdentity expected = Own();
  expected.clear_spec_fingerprint();
  expected.clear_content_version();
  EXPECT_THAT(CheckIdentity(expected, Own(), {}), IsOk());
}

TEST(FeedIdentityTest, AMismatchIsRefusedNamingTheFieldAndBothValues) {
  const auto refused = [](const auto& field, const auto& own, const auto& expected) {
    return StatusIs(absl::StatusCode::kFailedPrecondition,
                    AllOf(HasSubstr(field), HasSubstr(own), HasSubstr(expected)));
  };
  v1::FeedIdentity expected = Own();
  expected.set_spec_fingerprint(0x6);
  EXPECT_THAT(CheckIdentity(expected, Own(), {}),
              refused("the spec is not the one", "is 0000000000000005 here",
                      "0000000000000006 was expected"));
  expected = Own();
  expected.set_dataset_fingerprint(0xe);
  EXPECT_THAT(CheckIdentity(expected, Own(), {}),
              refused("the dataset is not the one", "is 000000000000000d here",
                      "000000000000000e was expected"));
  expected = Own();
  expected.set_order_fingerprint(0x1);
  EXPECT_THAT(
      CheckIdentity(expected, Own(), {}),
      refused("the order is not the one", "(0000000000000002 here", "0000000000000001 expected)"));
  expected = Own();
  expected.set_content_version("systole-3");
  EXPECT_THAT(CheckIdentity(expected, Own(), {}),
              refused("the content version", "is systole-4 here", "systole-3 was expected"));
}

TEST(FeedIdentityTest, AnOrderMismatchOfAWhereSpecSuggestsRebuildingTheIndex) {
  v1::FeedSpec spec;
  spec.add_mixture()->add_select()->mutable_where()->set_feature("label");
  v1::FeedIdentity expected = Own();
  expected.set_order_fingerprint(0x1);
  EXPECT_THAT(CheckIdentity(expected, Own(), spec),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("`systole index --columns label --rebuild`")));
}

TEST(FeedIdentityTest, ForAZipTheRebuildCommandNamesColumnsWithoutThePrefix) {
  v1::FeedSpec spec;
  spec.add_zip()->set_dataset("photos");
  v1::Member& depths = *spec.add_zip();
  depths.set_dataset("depths");
  depths.set_prefix("d/");
  spec.add_select()->mutable_where()->set_feature("d/label");
  v1::FeedIdentity expected = Own();
  expected.set_order_fingerprint(0x1);
  EXPECT_THAT(CheckIdentity(expected, Own(), spec),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("`systole index --columns label --rebuild` over the shards of "
                                 "dataset 'depths'")));
}

}  // namespace
}  // namespace systole
