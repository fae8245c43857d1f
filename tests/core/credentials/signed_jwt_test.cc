#include "core/credentials/signed_jwt.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/credentials/fake_surroundings.h"
#include "tests/core/credentials/test_key.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

JwtClaims Claims() {
  return {.issuer = "me@\"x\".example",
          .scope = "read",
          .audience = "https://token.example/",
          .begin = absl::FromUnixSeconds(1'000),
          .end = absl::FromUnixSeconds(4'600)};
}

TEST(SignedJwtTest, ATokenHasItsClaimsAndItsKeysSignature) {
  const TestKey key;
  JwtClaims claims = Claims();
  claims.key_id = "k1";
  const absl::StatusOr<std::string> token = SignedJwt(claims, key.pem());
  ASSERT_THAT(token, IsOk());
  const std::vector<std::string> parts = absl::StrSplit(*token, '.');
  ASSERT_EQ(parts.size(), 3u);
  std::string decoded[3];
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(absl::WebSafeBase64Unescape(parts[i], &decoded[i]));
  EXPECT_EQ(decoded[0], R"({"alg":"RS256","typ":"JWT","kid":"k1"})");
  EXPECT_EQ(decoded[1], R"({"iss":"me@\"x\".example","scope":"read",)"
                        R"("aud":"https://token.example/","iat":1000,"exp":4600})");
  EXPECT_TRUE(key.Verifies(absl::StrCat(parts[0], ".", parts[1]), decoded[2]));
  EXPECT_FALSE(key.Verifies(absl::StrCat(parts[0], ".", parts[1], "x"), decoded[2]));
  EXPECT_EQ(token->find_first_of("=+/"), std::string::npos);
}

TEST(SignedJwtTest, InvalidAndNonRsaKeysAreErrorsThatDoNotShowTheKey) {
  const std::string good = TestKey().pem();
  for (const std::string& bad :
       {std::string(), std::string("s3cr3t"), good.substr(0, good.size() / 2),
        TestKey::EncryptedPem(), TestKey::EllipticPem()}) {
    EXPECT_THAT(SignedJwt(Claims(), bad),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          HasSubstr("has a private_key that is not an RSA")));
  }
}

}  // namespace
}  // namespace systole
