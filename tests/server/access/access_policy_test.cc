#include "server/access/access_policy.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<AccessPolicy> PolicyOf(const std::string& text) {
  v1::AccessConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  absl::StatusOr<TokenTable> tokens = TokenTable::Parse(absl::StrCat(
      TokenLine({.name = "a", .hash = HashOfToken("a's")}),
      TokenLine({.name = "nobodys", .hash = HashOfToken("nobody's")}),
      TokenLine(
          {.name = "b", .hash = HashOfToken("b's"), .last_day = absl::CivilDay(1970, 1, 1)})));
  if (!tokens.ok()) return tokens.status();
  return AccessPolicy::Create(config, {"cats", "dogs"}, *std::move(tokens));
}

TEST(AccessPolicyTest, EachIdentityMayDoOnlyWhatItsBlockAllows) {
  const absl::StatusOr<AccessPolicy> policy = PolicyOf(
      "token_file: 'tokens' "
      "identities { name: 'a' token_names: 'a' may { read: 'cats' list: 'dogs' status: true } } "
      "identities { name: 'c' certificate_names: 'c.example' may { read: '*' } }");
  ASSERT_THAT(policy, IsOk());
  const Caller a = {.identity = "a"};
  EXPECT_TRUE(policy->MayRead(a, "cats"));
  EXPECT_FALSE(policy->MayRead(a, "dogs"));
  EXPECT_TRUE(policy->MayList(a, "cats"));
  EXPECT_TRUE(policy->MayList(a, "dogs"));
  EXPECT_FALSE(policy->MayList(a, "else"));
  EXPECT_TRUE(policy->MaySeeStatus(a));
  const Caller c = {.identity = "c"};
  EXPECT_TRUE(policy->MayRead(c, "dogs"));
  EXPECT_FALSE(policy->MaySeeStatus(c));
  const Caller anybody;
  EXPECT_FALSE(policy->MayRead(anybody, "cats"));
  EXPECT_FALSE(policy->MayListAny(anybody));
  EXPECT_FALSE(policy->MaySeeStatus(anybody));
}

TEST(AccessPolicyTest, ATokenBeatsCertificateAndUserAndABadTokenIsRefused) {
  const absl::StatusOr<AccessPolicy> policy = PolicyOf(
      "token_file: 'tokens' identities { name: 'a' token_names: 'a' token_names: 'b' may {} } "
      "identities { name: 'c' certificate_names: 'c.example' may {} } "
      "identities { name: 'r' unix_users: 'root' unix_users: '12345' may {} } "
      "anonymous { read: '*' }");
  ASSERT_THAT(policy, IsOk());
  const absl::Time now = absl::UnixEpoch();
  const auto identity = [&](Credentials credentials, absl::Time at) -> absl::StatusOr<std::string> {
    const absl::StatusOr<Caller> caller = policy->Identify(credentials, at);
    if (!caller.ok()) return caller.status();
    return caller->identity;
  };
  EXPECT_THAT(identity({}, now), IsOkAndHolds(""));
  EXPECT_THAT(identity({.certificate_names = {"x", "c.example"}}, now), IsOkAndHolds("c"));
  EXPECT_THAT(identity({.certificate_names = {"x"}}, now), IsOkAndHolds(""));
  EXPECT_THAT(identity({.token = HashOfToken("a's"), .certificate_names = {"c.example"}}, now),
              IsOkAndHolds("a"));
  EXPECT_THAT(identity({.token = HashOfToken("b's")}, now), IsOkAndHolds("a"));
  EXPECT_THAT(policy->unix_users(), ElementsAre(0, 12345));
  EXPECT_THAT(identity({.unix_user = 0}, now), IsOkAndHolds("r"));
  EXPECT_THAT(identity({.unix_user = 12345}, now), IsOkAndHolds("r"));
  EXPECT_THAT(identity({.unix_user = 1}, now), IsOkAndHolds(""));
  EXPECT_THAT(identity({.certificate_names = {"c.example"}, .unix_user = 0}, now),
              IsOkAndHolds("c"));
  EXPECT_THAT(identity({.token = HashOfToken("a's"), .unix_user = 0}, now), IsOkAndHolds("a"));
  for (const auto& [token, at] :
       {std::pair("b's", now + absl::Hours(24)), {"none", now}, {"nobody's", now}}) {
    EXPECT_THAT(
        identity({.token = HashOfToken(token), .certificate_names = {"c.example"}, .unix_user = 0},
                 at),
        StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("token")))
        << token;
  }
}

TEST(AccessPolicyTest, TheErrorForAnInvalidConfigNamesItsField) {
  const std::string file = "token_file: 'tokens' ";
  for (const auto& [config, field] : {
           std::pair<std::string, std::string>{"", "access"},
           {file, "access"},
           {file + "anonymous {}", "access.token_file"},
           {"identities { token_names: 'a' may {} }", "access.identities[0].name"},
           {"identities { name: 'a' may {} }", "access.identities[0]"},
           {"identities { name: 'a' token_names: 'a' may {} }", "access.identities[0].token_names"},
           {file + "identities { name: 'a' token_names: 'a' }", "access.identities[0].may"},
           {file + "identities { name: 'a' token_names: 'a' may { read: 'cat' } }",
            "access.identities[0].may.read"},
           {"anonymous { list: 'birds' }", "access.anonymous.list"},
           {"identities { name: 'a' certificate_names: '' may {} }",
            "access.identities[0].certificate_names"},
           {"identities { name: 'a' certificate_names: 'x' may {} } "
            "identities { name: 'b' certificate_names: 'x' may {} }",
            "access.identities[1].certificate_names"},
           {"identities { name: 'a' unix_users: 'root' may {} } "
            "identities { name: 'b' unix_users: '0' may {} }",
            "access.identities[1].unix_users"},
           {"identities { name: 'a' unix_users: 'no such user' may {} }",
            "access.identities[0].unix_users"},
           {"identities { name: 'a' unix_users: '-1' may {} }", "access.identities[0].unix_users"},
           {"identities { name: 'a' certificate_names: 'x' may {} } "
            "identities { name: 'a' certificate_names: 'y' may {} }",
            "access.identities[1].name"},
       }) {
    EXPECT_THAT(PolicyOf(config),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(absl::StrCat(field, ": "))))
        << config;
  }
  EXPECT_THAT(PolicyOf("anonymous { read: 'cat' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'cat'"), HasSubstr("did you mean 'cats'"))));
}

}  // namespace
}  // namespace systole
