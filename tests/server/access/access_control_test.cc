#include "server/access/access_control.h"

#include <sys/stat.h>

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

TEST(AccessControlTest, AGoodNewFileTakesEffectAndABadOneKeepsTheOldTokens) {
  const TempFolder folder;
  const std::string path = folder / "tokens";
  const absl::StatusOr<std::string> first = AddToken(path, "a", std::nullopt);
  ASSERT_THAT(first, IsOk());
  v1::AccessConfig config;
  config.set_token_file(path);
  v1::IdentityConfig& identity = *config.add_identities();
  identity.set_name("a");
  identity.add_token_names("a");
  identity.mutable_may()->add_read("*");
  const absl::StatusOr<std::shared_ptr<AccessControl>> access =
      AccessControl::Create(config, {"cats"}, [] { return absl::UnixEpoch(); });
  ASSERT_THAT(access, IsOk());
  const auto is_good = [&](const std::string& token) {
    return (*access)->policy()->Identify({.token = HashOfToken(token)}, (*access)->Now()).ok();
  };
  EXPECT_TRUE(is_good(*first));

  const absl::StatusOr<std::string> second = AddToken(path, "a", std::nullopt);
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(is_good(*second));
  EXPECT_THAT((*access)->Reload(), IsOk());
  EXPECT_TRUE(is_good(*first));
  EXPECT_TRUE(is_good(*second));

  ::chmod(path.c_str(), 0644);
  EXPECT_THAT((*access)->Reload(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("chmod")));
  EXPECT_THAT((*access)->Reload(), IsOk());  // Told once.
  folder.Write("tokens", "nonsense");
  ::chmod(path.c_str(), 0600);
  EXPECT_THAT((*access)->Reload(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 1")));
  std::filesystem::remove(path);
  EXPECT_THAT((*access)->Reload(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("tokens")));
  EXPECT_THAT((*access)->Reload(), IsOk());
  EXPECT_TRUE(is_good(*first));

  folder.Write("tokens", TokenLine({.name = "a", .hash = HashOfToken(*second)}));
  ::chmod(path.c_str(), 0600);
  EXPECT_THAT((*access)->Reload(), IsOk());
  EXPECT_FALSE(is_good(*first));
  EXPECT_TRUE(is_good(*second));
}

TEST(AccessControlTest, AMissingTokenFileStopsTheStart) {
  v1::AccessConfig config;
  config.set_token_file("/nowhere/tokens");
  v1::IdentityConfig& identity = *config.add_identities();
  identity.set_name("a");
  identity.add_token_names("a");
  identity.mutable_may();
  EXPECT_THAT(AccessControl::Create(config, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/tokens")));
}

}  // namespace
}  // namespace systole
