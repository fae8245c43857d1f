#include "server/access/access_control.h"

#include <sys/stat.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

// A config in which the token "a" of the file allows reading everything.
v1::AccessConfig ConfigOf(const std::string& token_file) {
  v1::AccessConfig config;
  config.set_token_file(token_file);
  v1::IdentityConfig& identity = *config.add_identities();
  identity.set_name("a");
  identity.add_token_names("a");
  identity.mutable_may()->add_read("*");
  return config;
}

TEST(AccessControlTest, ANewConfigTakesEffectAsAWholeOrNotAtAll) {
  const TempFolder folder;
  const absl::StatusOr<std::string> token = AddToken(folder / "tokens", "a", std::nullopt);
  ASSERT_THAT(token, IsOk());
  v1::AccessConfig config;
  config.mutable_anonymous()->add_read("cats");
  const absl::StatusOr<std::shared_ptr<AccessControl>> access =
      AccessControl::Create(config, {"cats"});
  ASSERT_THAT(access, IsOk());
  const auto knows_a = [&] {
    return (*access)->policy()->Identify({.token = HashOfToken(*token)}, (*access)->Now()).ok();
  };
  EXPECT_FALSE(knows_a());
  EXPECT_THAT((*access)->Configure(ConfigOf(folder / "none"), {"dogs"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT((*access)->Reload(), IsOk());
  EXPECT_TRUE((*access)->policy()->MayRead(Caller(), "cats"));
  EXPECT_THAT((*access)->Configure(ConfigOf(folder / "tokens"), {"dogs"}), IsOk());
  EXPECT_TRUE(knows_a());
  EXPECT_FALSE((*access)->policy()->MayRead(Caller(), "cats"));
}

TEST(AccessControlTest, AValidTokenFileReplacesTheTokensAndAnInvalidOneDoesNot) {
  const TempFolder folder;
  const std::string path = folder / "tokens";
  const absl::StatusOr<std::string> first = AddToken(path, "a", std::nullopt);
  ASSERT_THAT(first, IsOk());
  const v1::AccessConfig config = ConfigOf(path);
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
  EXPECT_THAT((*access)->Reload(), IsOk());  // The error is returned only once.
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

// The access of a server that uses a token file, and a clock that the test sets.
struct Guarded {
  // The file holds `tokens` when `Create` reads it.
  explicit Guarded(const std::string& tokens) : path(folder / "tokens") {
    Write(tokens);
    const v1::AccessConfig config = ConfigOf(path);
    absl::StatusOr<std::shared_ptr<AccessControl>> created = AccessControl::Create(
        config, {"cats"}, [] { return absl::UnixEpoch(); }, [this] { return now; });
    EXPECT_THAT(created, IsOk());
    access = *std::move(created);
  }

  // Overwrites the file in place, without a rename.
  void Write(const std::string& tokens) {
    folder.Write("tokens", tokens);
    ::chmod(path.c_str(), 0600);
  }
  bool LetsIn(const std::string& token) {
    EXPECT_THAT(access->Reload(), IsOk());
    return access->policy()->Identify({.token = HashOfToken(token)}, access->Now()).ok();
  }

  const TempFolder folder;
  const std::string path;
  absl::Duration now = absl::Hours(1);
  std::shared_ptr<AccessControl> access;
};

std::string Line(const std::string& token) {
  return TokenLine({.name = "a", .hash = HashOfToken(token)});
}

TEST(AccessControlTest, AnEmptiedTokenFileTakesEffectOnlyAfterADelay) {
  for (const std::string nothing : {"", "# Tokens of the day.\n"}) {
    Guarded guarded(Line("one"));
    guarded.Write(nothing);
    EXPECT_TRUE(guarded.LetsIn("one"));
    guarded.now += kEmptyFileCountsAfter - absl::Milliseconds(1);
    EXPECT_TRUE(guarded.LetsIn("one"));
    guarded.now += absl::Milliseconds(1);
    EXPECT_FALSE(guarded.LetsIn("one"));  // All tokens were withdrawn.
    guarded.Write(Line("two"));
    EXPECT_TRUE(guarded.LetsIn("two"));  // New tokens count at once.
  }
}

TEST(AccessControlTest, RewritingTheTokenFileInPlaceKeepsItsTokensValid) {
  Guarded guarded(Line("one"));
  for (int i = 0; i < 3; ++i) {
    guarded.Write("");
    EXPECT_TRUE(guarded.LetsIn("one"));
    guarded.now += kEmptyFileCountsAfter - absl::Milliseconds(1);
    EXPECT_TRUE(guarded.LetsIn("one"));
    guarded.Write(absl::StrCat(Line("one"), Line(absl::StrCat("more ", i))));
    EXPECT_TRUE(guarded.LetsIn(absl::StrCat("more ", i)));
    EXPECT_TRUE(guarded.LetsIn("one"));
  }
}

TEST(AccessControlTest, ATokenFileEmptyAtTheStartLetsNobodyInAndChangesCountAtOnce) {
  Guarded guarded("");
  EXPECT_FALSE(guarded.LetsIn("one"));
  guarded.Write(Line("one"));
  EXPECT_TRUE(guarded.LetsIn("one"));
  guarded.Write(Line("two"));
  EXPECT_FALSE(guarded.LetsIn("one"));  // A replaced token is withdrawn at once.
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
