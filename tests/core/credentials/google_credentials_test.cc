// Tests where Google's credentials are taken from, which requests servers get for them, and the
// errors.
#include "core/credentials/google_credentials.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/credentials/google_key.h"
#include "core/http/http_headers.h"
#include "core/json/json_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/credentials/fake_surroundings.h"
#include "tests/core/credentials/test_key.h"
#include "tests/core/http/faulty_http_server.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kPermissionDenied = absl::StatusCode::kPermissionDenied;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

constexpr char kMetadataPath[] =
    "/computeMetadata/v1/instance/service-accounts/default/token"
    "?scopes=https://www.googleapis.com/auth/devstorage.read_only";

// Matches the n-th token that the stub server gives.
auto HoldsToken(int n) { return IsOkAndHolds(Optional(Eq(absl::StrCat("ya29.s3cr3t-", n)))); }

std::string JsonOf(const std::vector<std::pair<std::string, std::string>>& fields) {
  JsonWriter json;
  json.BeginObject();
  for (const auto& [name, value] : fields) json.Field(name, value);
  json.EndObject();
  return json.text();
}

class GoogleCredentialsTest : public testing::Test {
 protected:
  std::string Login() {
    return JsonOf({{"type", "authorized_user"},
                   {"client_id", "me"},
                   {"client_secret", "s3cr3t-client"},
                   {"refresh_token", "s3cr3t/refresh"},
                   {"token_uri", server_.Url("/token")}});
  }
  std::string Account(const std::string& pem) {
    return JsonOf({{"type", "service_account"},
                   {"client_email", "me@example"},
                   {"private_key", pem},
                   {"private_key_id", "k1"},
                   {"token_uri", server_.Url("/token")}});
  }
  void UseFile(const std::string& text) {
    fake_.Set("GOOGLE_APPLICATION_CREDENTIALS", fake_.folder().Write("key.json", text));
  }
  void UseMetadata() {
    fake_.Set("NO_GCE_CHECK", "");
    fake_.Set("GCE_METADATA_HOST", absl::StrCat("127.0.0.1:", server_.port()));
  }
  absl::StatusOr<std::optional<std::string>> Get() {
    return GoogleTokensOfEnvironment(fake_.Get())->Get(kLongTime);
  }
  StubAnswer Usual(const StubRequest& request) {
    const bool is_metadata = request.target == kMetadataPath &&
                             FindHeader(request.headers, "metadata-flavor") == "Google";
    if (!is_metadata && request.target != "/token") return Reply(404, "");
    return Reply(200,
                 absl::StrCat(R"({"access_token":"ya29.s3cr3t-)", ++given_,
                              R"(","expires_in":3600,"token_type":"Bearer"})"),
                 {{"Metadata-Flavor", "Google"}});
  }

  FakeSurroundings fake_;
  std::atomic<int> given_ = 0;
  FaultyHttpServer faulty_{[this](const StubRequest& request) { return Usual(request); }};
  StubHttpServer& server_ = faulty_.server();
};

TEST_F(GoogleCredentialsTest, AnEnvironmentWithoutCredentialsIsNoError) {
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
  fake_.Set("HOME", "");
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
}

TEST_F(GoogleCredentialsTest, HmacKeysNeedBothVariablesAndAreIgnoredIfUnsignedIsSet) {
  const auto keys = [this] { return GoogleHmacKeysOfEnvironment(fake_.Get()); };
  EXPECT_THAT(keys(), IsOkAndHolds(std::nullopt));
  fake_.Set("GS_SECRET_ACCESS_KEY", "s3cr3t");
  EXPECT_THAT(keys(), FailsWith(kFailedPrecondition, HasSubstr("but no GS_ACCESS_KEY_ID")));
  fake_.Set("GS_ACCESS_KEY_ID", "GOOG1E");
  EXPECT_THAT(keys(), IsOkAndHolds(Optional(Eq(AwsCredentials{"GOOG1E", "s3cr3t"}))));
  fake_.Set("SYSTOLE_GS_UNSIGNED", "1");
  EXPECT_THAT(keys(), IsOkAndHolds(std::nullopt));
  fake_.Set("SYSTOLE_GS_UNSIGNED", "");
  fake_.Set("GS_SECRET_ACCESS_KEY", "s3cr3t\n");
  EXPECT_THAT(keys(), FailsWith(kFailedPrecondition, HasSubstr("malformed secret access key")));
}

TEST_F(GoogleCredentialsTest, TheKeyFileVariableOverridesTheEmulatorAndTheEmulatorTheLogin) {
  std::filesystem::create_directories(fake_.folder() / ".config/gcloud");
  fake_.folder().Write(".config/gcloud/application_default_credentials.json", Login());
  EXPECT_THAT(Get(), HoldsToken(1));
  fake_.Set("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1");
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
  UseFile(Login());
  EXPECT_THAT(Get(), HoldsToken(2));
  fake_.Set("SYSTOLE_GS_UNSIGNED", "1");
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
  fake_.Set("SYSTOLE_GS_UNSIGNED", "true");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("SYSTOLE_GS_UNSIGNED")));
  fake_.Set("SYSTOLE_GS_UNSIGNED", "");
  fake_.Set("STORAGE_EMULATOR_HOST", "");
  fake_.Set("GOOGLE_APPLICATION_CREDENTIALS", "");
  fake_.Set("CLOUDSDK_CONFIG", fake_.folder() / "none");
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
  fake_.Set("CLOUDSDK_CONFIG", fake_.folder() / ".config/gcloud");
  EXPECT_THAT(Get(), HoldsToken(3));
}

TEST_F(GoogleCredentialsTest, ALoginIsExchangedForATokenWhichIsRenewed) {
  UseFile(Login());
  const auto source = GoogleTokensOfEnvironment(fake_.Get());
  EXPECT_THAT(source->Get(kLongTime), HoldsToken(1));
  fake_.Pass(absl::Minutes(54));
  EXPECT_THAT(source->Get(kLongTime), HoldsToken(1));
  fake_.Pass(absl::Minutes(1));
  EXPECT_THAT(source->Get(kLongTime), HoldsToken(2));
  source->Refused("ya29.s3cr3t-2");
  EXPECT_THAT(source->Get(kLongTime), HoldsToken(3));
  const StubRequest request = server_.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.body,
            "grant_type=refresh_token&client_id=me&client_secret=s3cr3t-client&"
            "refresh_token=s3cr3t%2Frefresh");
}

TEST_F(GoogleCredentialsTest, AServiceAccountSignsItsClaims) {
  const TestKey key;
  UseFile(Account(key.pem()));
  EXPECT_THAT(Get(), HoldsToken(1));
  const std::string body = server_.requests().at(0).body;
  absl::string_view token = body;
  ASSERT_TRUE(absl::ConsumePrefix(&token,
                                  "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
                                  "&assertion="));
  const std::vector<std::string> parts = absl::StrSplit(token, '.');
  ASSERT_EQ(parts.size(), 3u);
  std::string claims;
  std::string signature;
  ASSERT_TRUE(absl::WebSafeBase64Unescape(parts[1], &claims));
  ASSERT_TRUE(absl::WebSafeBase64Unescape(parts[2], &signature));
  EXPECT_TRUE(key.Verifies(absl::StrCat(parts[0], ".", parts[1]), signature));
  const int64_t now = absl::ToUnixSeconds(fake_.time_of_day());
  EXPECT_EQ(claims,
            absl::StrCat("{\"iss\":\"me@example\",\"scope\":\"https://www.googleapis.com/"
                         "auth/devstorage.read_only\",\"aud\":\"",
                         server_.Url("/token"), "\",\"iat\":", now, ",\"exp\":", now + 3600, "}"));
}

TEST_F(GoogleCredentialsTest, TokensHaveTheScopeOfTheirAccess) {
  const TestKey key;
  UseMetadata();
  for (const auto& [access, name] : {std::pair(GoogleAccess::kRead, "devstorage.read_only"),
                                     std::pair(GoogleAccess::kWrite, "devstorage.read_write")}) {
    SCOPED_TRACE(name);
    const std::string scope = absl::StrCat("https://www.googleapis.com/auth/", name);
    UseFile(Account(key.pem()));
    EXPECT_THAT(GoogleTokensOfEnvironment(fake_.Get(), access)->Get(kLongTime), IsOk());
    const std::string body = server_.requests().back().body;
    const std::vector<std::string> parts = absl::StrSplit(body, '.');
    ASSERT_EQ(parts.size(), 3u);
    std::string claims;
    ASSERT_TRUE(absl::WebSafeBase64Unescape(parts[1], &claims));
    EXPECT_THAT(claims, HasSubstr(absl::StrCat("\"scope\":\"", scope, "\"")));
    fake_.Set("GOOGLE_APPLICATION_CREDENTIALS", "");
    GoogleTokensOfEnvironment(fake_.Get(), access)->Get(kLongTime).IgnoreError();
    EXPECT_THAT(server_.requests().back().target, EndsWith(absl::StrCat("?scopes=", scope)));
  }
}

TEST_F(GoogleCredentialsTest, KeyFilesThatCannotBeUsedAreErrorsThatSayWhy) {
  for (const char* type : {"external_account", "impersonated_service_account"}) {
    UseFile(JsonOf({{"type", type}, {"private_key", "s3cr3t"}}));
    EXPECT_THAT(Get(),
                FailsWith(kFailedPrecondition, AllOf(HasSubstr(type), HasSubstr("supported are"))));
  }
  UseFile(JsonOf({{"type", "s3cr3t"}}));
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("of no known type")));
  UseFile("{\"s3cr3t");
  EXPECT_THAT(Get(), FailsWith(kDataLoss, HasSubstr("key.json' is not a JSON object")));
  UseFile(std::string(65537, ' '));
  EXPECT_THAT(Get(), FailsWith(absl::StatusCode::kResourceExhausted, HasSubstr("65536")));
  UseFile(Account("s3cr3t"));
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("not an RSA key")));
  UseFile(Account(""));
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("has no private_key")));
  UseFile(absl::StrReplaceAll(Login(), {{"s3cr3t/refresh", ""}}));
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("has no refresh_token")));
  for (const char* uri : {"http://token.example/", "s3cr3t", "http://127.evil.example/"}) {
    UseFile(absl::StrReplaceAll(Login(), {{server_.Url("/token"), uri}}));
    EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("token_uri that is n")));
  }
  fake_.Set("GOOGLE_APPLICATION_CREDENTIALS", fake_.folder() / "none");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("GOOGLE_APPLICATION_CREDENTIALS")));
  fake_.Set("GOOGLE_APPLICATION_CREDENTIALS", fake_.folder().path());
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("not a regular file")));
  EXPECT_TRUE(server_.requests().empty());
}

TEST(GoogleKeyTest, TheDefaultTokenUriIsThatOfGoogle) {
  const absl::StatusOr<GoogleKey> key = ParseGoogleKey(JsonOf({{"type", "authorized_user"},
                                                               {"client_id", "a"},
                                                               {"client_secret", "b"},
                                                               {"refresh_token", "c"}}),
                                                       "f");
  ASSERT_THAT(key, IsOk());
  EXPECT_EQ(key->token_uri, "https://oauth2.googleapis.com/token");
}

TEST_F(GoogleCredentialsTest, TokenServerRefusalsSayTheRemedyAndFailuresAreErrors) {
  UseFile(Login());
  std::atomic<int> status = 0;
  faulty_.SetFault([&status](const StubRequest&) { return Reply(status, "s3cr3t"); });
  status = 400;
  EXPECT_THAT(Get(),
              FailsWith(kPermissionDenied, HasSubstr("gcloud auth application-default login")));
  status = 503;
  EXPECT_THAT(Get(), FailsWith(kUnavailable, HasSubstr("status 503")));
  status = 200;
  EXPECT_THAT(Get(), FailsWith(kDataLoss, HasSubstr("not a JSON object")));
  UseFile(Account(TestKey().pem()));
  status = 401;
  EXPECT_THAT(Get(), FailsWith(kPermissionDenied, HasSubstr("this machine's clock")));
  UseFile(
      absl::StrReplaceAll(Login(), {{server_.Url(""), absl::StrCat("http://", DeadAddress())}}));
  EXPECT_THAT(Get(), FailsWith(kUnavailable, HasSubstr("cannot connect")));
}

TEST_F(GoogleCredentialsTest, TheMetadataServerGivesTheMachinesToken) {
  UseMetadata();
  const auto source = GoogleTokensOfEnvironment(fake_.Get());
  EXPECT_THAT(source->Get(kLongTime), HoldsToken(1));
  EXPECT_EQ(server_.requests().at(0).method, "GET");
  fake_.Pass(absl::Minutes(55));
  EXPECT_THAT(source->Get(kLongTime), HoldsToken(2));
  fake_.Set("NO_GCE_CHECK", "true");
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
}

TEST_F(GoogleCredentialsTest, MetadataRequestsBypassTheProxy) {
  const StubHttpServer proxy([](const StubRequest&) { return Reply(500, ""); });
  UseMetadata();
  CredentialSurroundings surroundings = fake_.Get();
  surroundings.client->http_proxy = proxy.Url("");
  EXPECT_THAT(GoogleTokensOfEnvironment(surroundings)->Get(kLongTime), HoldsToken(1));
  EXPECT_TRUE(proxy.requests().empty());
}

TEST_F(GoogleCredentialsTest, CredentialsAreMissingOnlyIfNoMetadataServerAcceptsAConnection) {
  fake_.Set("NO_GCE_CHECK", "");
  CredentialSurroundings surroundings = fake_.Get();
  surroundings.google_metadata_host = DeadAddress();
  EXPECT_THAT(GoogleTokensOfEnvironment(surroundings)->Get(kLongTime), IsOkAndHolds(std::nullopt));
  surroundings.google_metadata_host = absl::StrCat("127.0.0.1:", server_.port());
  const auto source = GoogleTokensOfEnvironment(surroundings);
  faulty_.SetFault([](const StubRequest&) { return StubAnswer{.closes = true}; });
  EXPECT_THAT(source->Get(kLongTime), FailsWith(kUnavailable, HasSubstr("of this machine")));
  faulty_.SetFault(nullptr);
  fake_.Pass(absl::Seconds(2));
  EXPECT_THAT(source->Get(kLongTime), HoldsToken(1));
}

TEST_F(GoogleCredentialsTest, AForeignServerAtTheMetadataAddressIsAnErrorWithARemedy) {
  fake_.Set("NO_GCE_CHECK", "");
  CredentialSurroundings surroundings = fake_.Get();
  surroundings.google_metadata_host = absl::StrCat("127.0.0.1:", server_.port());
  const auto source = GoogleTokensOfEnvironment(surroundings);
  EXPECT_THAT(source->Get(kLongTime), HoldsToken(1));
  faulty_.SetFault([](const StubRequest&) { return Reply(200, "hello"); });
  fake_.Pass(absl::Hours(2));
  EXPECT_THAT(source->Get(kLongTime),
              FailsWith(kFailedPrecondition, AllOf(HasSubstr("check the network"),
                                                   testing::Not(HasSubstr("GCE_METADATA_HOST")))));
}

TEST_F(GoogleCredentialsTest, ARefusalOfUnsignedRequestsRepeatsTheSearchForCredentials) {
  const auto source = GoogleTokensOfEnvironment(fake_.Get());
  EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
  UseMetadata();
  EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
  source->Refused(std::nullopt);
  EXPECT_THAT(source->Get(kLongTime), HoldsToken(1));
}

TEST_F(GoogleCredentialsTest, AMachineWithoutServiceAccountHasNoCredentials) {
  UseMetadata();
  faulty_.SetFault([](const StubRequest&) {
    return Reply(404, "", {{"Metadata-Flavor", "Google"}});
  });
  const auto source = GoogleTokensOfEnvironment(fake_.Get());
  for (int i = 0; i < 3; ++i) EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(GoogleCredentialsTest, AConfiguredMetadataServerThatFailsIsAnError) {
  UseMetadata();
  std::atomic<int> status = 503;
  faulty_.SetFault([&status](const StubRequest&) {
    return Reply(status, "", {{"Metadata-Flavor", "Google"}});
  });
  EXPECT_THAT(Get(), FailsWith(kUnavailable, HasSubstr("status 503")));
  status = 403;
  EXPECT_THAT(Get(), FailsWith(kPermissionDenied, HasSubstr("NO_GCE_CHECK")));
  faulty_.SetFault([](const StubRequest&) { return Reply(200, "s3cr3t"); });
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("GCE_METADATA_HOST")));
  faulty_.SetFault([](const StubRequest&) {
    return Reply(200, "s3cr3t", {{"Metadata-Flavor", "Google"}});
  });
  EXPECT_THAT(Get(), FailsWith(kDataLoss, HasSubstr("not a JSON object")));
  fake_.Set("GCE_METADATA_HOST", DeadAddress());
  EXPECT_THAT(Get(), FailsWith(kUnavailable, HasSubstr("cannot connect")));
  for (const char* bad : {"s3cr3t/path", "@s3cr3t", "x y"}) {
    fake_.Set("GCE_METADATA_HOST", bad);
    EXPECT_THAT(Get(),
                FailsWith(kFailedPrecondition, HasSubstr("GCE_METADATA_HOST is not a host")));
  }
  UseMetadata();
  faulty_.SetFault([](const StubRequest&) { return StubAnswer{.bytes = "", .hangs = true}; });
  CredentialSurroundings surroundings = fake_.Get();
  surroundings.link_timeout = absl::Milliseconds(20);
  EXPECT_THAT(GoogleTokensOfEnvironment(surroundings)->Get(kLongTime),
              FailsWith(absl::StatusCode::kDeadlineExceeded, HasSubstr("NO_GCE_CHECK")));
}

}  // namespace
}  // namespace systole
