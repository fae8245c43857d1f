#include "core/storage/bucket/gcs_dialect.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/bucket/fake_credentials.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<GcsDialect> Dialect(const GcsOptions& options, std::vector<std::string> tokens,
                                    std::vector<std::string> write_tokens = {}) {
  absl::StatusOr<std::unique_ptr<GcsDialect>> dialect =
      GcsDialect::Create(options, std::make_unique<FakeGoogleTokens>(std::move(tokens)),
                         std::make_unique<FakeGoogleTokens>(std::move(write_tokens)));
  EXPECT_THAT(dialect, IsOk());
  return *std::move(dialect);
}

HttpRequest Prepared(GcsDialect& dialect, const std::string& name) {
  HttpRequest request = {.url = name, .headers = {{"accept-encoding", "identity"}}};
  EXPECT_THAT(dialect.Prepare(request), IsOk());
  return request;
}

TEST(GcsDialectTest, RequestsHaveTheTokenAndAskForTheStoredBytes) {
  const auto dialect = Dialect({}, {"TOKEN1"});
  const HttpRequest request = Prepared(*dialect, "gs://my_data/d/a b");
  EXPECT_EQ(request.url, "https://storage.googleapis.com/my_data/d/a%20b");
  EXPECT_EQ(FindHeader(request.headers, "authorization"), "Bearer TOKEN1");
  EXPECT_EQ(FindHeader(request.headers, "accept-encoding"), "gzip");
  EXPECT_EQ(request.redirects, Redirects::kReturn);
  const HttpRequest list = Prepared(*dialect, "gs://data?list-type=2");
  EXPECT_EQ(list.url, "https://storage.googleapis.com/data?list-type=2");
  EXPECT_EQ(FindHeader(list.headers, "accept-encoding"), "identity");  // Only objects may be gzip.
  EXPECT_EQ(FindHeader(Prepared(*Dialect({}, {}), "gs://data/a").headers, "authorization"), "");
}

TEST(GcsDialectTest, AnEmulatorGetsNoToken) {
  CredentialSurroundings surroundings;
  std::string emulator;
  surroundings.variable = [&](const char* name) {
    return name == std::string("STORAGE_EMULATOR_HOST") ? emulator : "";
  };
  EXPECT_EQ(GcsOptionsOfEnvironment(surroundings)->endpoint, "https://storage.googleapis.com");
  for (const char* text : {"localhost:4443", "http://localhost:4443"}) {
    emulator = text;
    const HttpRequest request =
        Prepared(*Dialect(*GcsOptionsOfEnvironment(surroundings), {"TOKEN1"}), "gs://data/a");
    EXPECT_EQ(request.url, "http://localhost:4443/data/a");
    EXPECT_EQ(FindHeader(request.headers, "authorization"), "");
  }
  emulator = "local host";
  EXPECT_THAT(GcsDialect::Create(*GcsOptionsOfEnvironment(surroundings),
                                 std::make_unique<FakeGoogleTokens>(std::vector<std::string>()),
                                 std::make_unique<FakeGoogleTokens>(std::vector<std::string>())),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("STORAGE_EMULATOR_HOST")));
}

TEST(GcsDialectTest, RefusalsMentionCredentialsOnlyIfTokensWouldBeSent) {
  const auto dialect = Dialect({}, {});
  Prepared(*dialect, "gs://data/a");
  EXPECT_THAT(std::string(dialect->RefusalOf("it", {.status = 403}).message()),
              AllOf(HasSubstr("had no credentials"), HasSubstr("GOOGLE_APPLICATION_CREDENTIALS"),
                    HasSubstr("SYSTOLE_GS_UNSIGNED")));
  const auto emulator = Dialect({.endpoint = "http://localhost", .sends_tokens = false}, {});
  Prepared(*emulator, "gs://data/a");
  EXPECT_THAT(std::string(emulator->RefusalOf("it", {.status = 403}).message()),
              Not(HasSubstr("credentials")));
}

// Surroundings whose environment variables are `variables`.
CredentialSurroundings With(std::map<std::string, std::string> variables) {
  CredentialSurroundings surroundings;
  surroundings.variable = [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  };
  return surroundings;
}

TEST(GcsDialectTest, HmacKeysOfTheEnvironmentSignRequestsInPlaceOfATokenButNotForAnEmulator) {
  const auto options = GcsOptionsOfEnvironment(
      With({{"GS_ACCESS_KEY_ID", "GOOG1E"}, {"GS_SECRET_ACCESS_KEY", "SECRET"}}));
  ASSERT_THAT(options, IsOk());
  const auto dialect = Dialect(*options, {"TOKEN1"}, {"WRITE1"});
  for (const HttpMethod method : {HttpMethod::kGet, HttpMethod::kHead, HttpMethod::kPut,
                                  HttpMethod::kPost, HttpMethod::kDelete}) {
    HttpRequest request = {.method = method, .url = "gs://data/a"};
    EXPECT_THAT(dialect->Prepare(request), IsOk());
    ASSERT_TRUE(request.sign.has_value());
    EXPECT_EQ(request.sign->access_key_id, "GOOG1E");
    EXPECT_EQ(request.sign->secret_access_key, "SECRET");
    EXPECT_EQ(request.sign->scheme, SigningScheme::kGoogle);
    EXPECT_EQ(FindHeader(request.headers, "authorization"), "");
  }
  // There are no other keys, so another attempt after the refusal would be in vain.
  const HttpRequest request = Prepared(*dialect, "gs://data/a");
  const HttpResponse refusal = {.status = 403,
                                .body = "<Error><Code>SignatureDoesNotMatch</Code></Error>"};
  EXPECT_FALSE(dialect->LearnsFrom("gs://data/a", request, refusal));
  EXPECT_THAT(dialect->RefusalOf("it", refusal),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("GS_SECRET_ACCESS_KEY"), Not(HasSubstr("GOOG1E")))));

  const auto emulated =
      GcsOptionsOfEnvironment(With({{"GS_ACCESS_KEY_ID", "GOOG1E"},
                                    {"GS_SECRET_ACCESS_KEY", "SECRET"},
                                    {"STORAGE_EMULATOR_HOST", "localhost:4443"}}));
  ASSERT_THAT(emulated, IsOk());
  EXPECT_FALSE(Prepared(*Dialect(*emulated, {}), "gs://data/a").sign.has_value());
}

TEST(GcsDialectTest, TheProjectThatPaysIsNamedByTheEnvironment) {
  const auto project = [](std::map<std::string, std::string> variables) {
    const auto options = *GcsOptionsOfEnvironment(With(std::move(variables)));
    // Without a token the project is not sent, because the server would check whether the unknown
    // caller may use it.
    const HttpRequest unknown = Prepared(*Dialect(options, {}), "gs://data/a");
    EXPECT_EQ(FindHeader(unknown.headers, "x-goog-user-project"), "");
    const HttpRequest request = Prepared(*Dialect(options, {"TOKEN1"}), "gs://data/a");
    return std::string(FindHeader(request.headers, "x-goog-user-project"));
  };
  EXPECT_EQ(project({}), "");
  EXPECT_EQ(project({{"GOOGLE_CLOUD_QUOTA_PROJECT", "example.com:mine"}}), "example.com:mine");
  EXPECT_EQ(project({{"GOOGLE_CLOUD_QUOTA_PROJECT", "mine"}, {"GS_USER_PROJECT", "ours"}}), "ours");
  EXPECT_THAT(GcsDialect::Create({.user_project = "a\r\nx: y"},
                                 std::make_unique<FakeGoogleTokens>(std::vector<std::string>()),
                                 std::make_unique<FakeGoogleTokens>(std::vector<std::string>())),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("GS_USER_PROJECT")));
}

TEST(GcsDialectTest, WhereTheRequesterPaysARefusalSaysWhatToSet) {
  const auto dialect = Dialect({}, {"TOKEN1"});
  Prepared(*dialect, "gs://data/a");
  EXPECT_THAT(dialect->RefusalOf(
                  "it", {.status = 400, .body = "<Error><Code>UserProjectMissing</Code></Error>"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("the requester pays"), HasSubstr("set GS_USER_PROJECT"))));
  EXPECT_THAT(
      dialect->RefusalOf(
          "it", {.status = 403, .body = "<Error><Code>UserProjectAccessDenied</Code></Error>"}),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("correct or unset GS_USER_PROJECT")));
}

TEST(GcsDialectTest, OnlyWriteRequestsCarryTheWriteToken) {
  const auto dialect = Dialect({}, {"READ"}, {"WRITE1", "WRITE2"});
  const auto token = [&](HttpMethod method) {
    HttpRequest request = {.method = method, .url = "gs://data?uploadId=1/a"};
    EXPECT_THAT(dialect->Prepare(request), IsOk());
    EXPECT_EQ(request.url, "https://storage.googleapis.com/data/a?uploadId=1");
    EXPECT_EQ(FindHeader(request.headers, "accept-encoding"), "");
    return std::string(FindHeader(request.headers, "authorization"));
  };
  for (const HttpMethod method : {HttpMethod::kGet, HttpMethod::kHead}) {
    EXPECT_EQ(token(method), "Bearer READ");
  }
  for (const HttpMethod method : {HttpMethod::kPut, HttpMethod::kPost, HttpMethod::kDelete}) {
    EXPECT_EQ(token(method), "Bearer WRITE1");
  }
  const HttpRequest sent = {.method = HttpMethod::kPut,
                            .url = "https://storage.googleapis.com/data/a",
                            .headers = {{"authorization", "Bearer WRITE1"}}};
  EXPECT_TRUE(dialect->LearnsFrom("gs://data/a", sent, {.status = 401}));
  EXPECT_EQ(token(HttpMethod::kPut), "Bearer WRITE2");
}

TEST(GcsDialectTest, AWriteRefusalNamesTheWritePermissions) {
  const auto dialect = Dialect({}, {"READ"}, {"WRITE"});
  Prepared(*dialect, "gs://data/a");
  EXPECT_THAT(dialect->WriteRefusalOf("it", {.status = 403}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("may not write"), HasSubstr("storage.objects.create"),
                             HasSubstr("devstorage.read_write"))));
}

TEST(GcsDialectTest, ARefusedTokenIsRenewedOnce) {
  const auto dialect = Dialect({}, {"TOKEN1", "TOKEN2"});
  const HttpRequest sent = Prepared(*dialect, "gs://data/a");
  EXPECT_FALSE(dialect->LearnsFrom("gs://data/a", sent, {.status = 403}));
  EXPECT_TRUE(dialect->LearnsFrom("gs://data/a", sent, {.status = 401}));
  const HttpRequest next = Prepared(*dialect, "gs://data/a");
  EXPECT_EQ(FindHeader(next.headers, "authorization"), "Bearer TOKEN2");
  EXPECT_FALSE(dialect->LearnsFrom("gs://data/a", next, {.status = 401}));
}

TEST(GcsDialectTest, RefusalsNameGooglesPermissionsAndVariables) {
  const auto dialect = Dialect({}, {"TOKEN1"});
  Prepared(*dialect, "gs://data/a");
  EXPECT_THAT(dialect->RefusalOf("it", {.status = 403}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("storage.objects.get"), HasSubstr("storage.objects.list"))));
  EXPECT_THAT(
      dialect->RefusalOf("it", {.status = 401}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("GOOGLE_APPLICATION_CREDENTIALS")));
}

}  // namespace
}  // namespace systole
