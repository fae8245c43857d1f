// Tests AWS credentials that come from STS or from a container's server: the keys, the requests to
// these servers, and the errors.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/aws_credentials.h"
#include "core/http/http_headers.h"
#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/credentials/aws_stub_servers.h"
#include "tests/core/credentials/fake_surroundings.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kPermissionDenied = absl::StatusCode::kPermissionDenied;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

TEST_F(AwsServersTest, ATokenFileIsExchangedAtStsAndReadAnewEachTime) {
  UseWebIdentity();
  const auto source = Source();
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));
  fake_.folder().Write("token", "s3cr3t-2");
  fake_.Set("AWS_ROLE_SESSION_NAME", "me");
  fake_.Pass(absl::Minutes(54));
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));
  fake_.Pass(absl::Minutes(1));
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(2));
  const std::vector<StubRequest> requests = server_.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].target, "/");
  EXPECT_EQ(FindHeader(requests[0].headers, "content-type"), "application/x-www-form-urlencoded");
  EXPECT_EQ(requests[0].body,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&"
            "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=systole&"
            "WebIdentityToken=s3cr3t%26jwt");
  EXPECT_TRUE(absl::EndsWith(requests[1].body, "RoleSessionName=me&WebIdentityToken=s3cr3t-2"));
}

TEST_F(AwsServersTest, AProfileMayHaveAWebIdentity) {
  UseWebIdentity();
  fake_.Set("AWS_WEB_IDENTITY_TOKEN_FILE", "");
  fake_.Set("AWS_ROLE_ARN", "");
  fake_.Set("AWS_CONFIG_FILE",
            fake_.folder().Write("c", absl::StrCat("[profile p]\nrole_arn = r\n"
                                                   "web_identity_token_file = ",
                                                   fake_.folder() / "token", "\n")));
  fake_.Set("AWS_PROFILE", "p");
  EXPECT_THAT(Get(), HoldsKeys(1));
}

TEST_F(AwsServersTest, MissingOrInvalidWebIdentitySettingsFailBeforeAnyRequest) {
  UseWebIdentity();
  fake_.Set("AWS_ROLE_ARN", "");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("set AWS_ROLE_ARN")));
  UseWebIdentity();
  fake_.folder().Write("token", " \n");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("an empty file")));
  fake_.Set("AWS_WEB_IDENTITY_TOKEN_FILE", fake_.folder() / "none");
  EXPECT_THAT(Get(),
              FailsWith(kFailedPrecondition,
                        HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE names a file that does not")));
  UseWebIdentity();
  fake_.folder().Write("token", std::string(40000, 'x'));
  EXPECT_THAT(Get(), FailsWith(absl::StatusCode::kResourceExhausted, HasSubstr("token file")));
  UseWebIdentity();
  fake_.Set("AWS_ENDPOINT_URL_STS", "s3cr3t");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("AWS_ENDPOINT_URL_STS")));
  // Without AWS_ENDPOINT_URL_STS, the region becomes a part of the name of the STS host.
  fake_.Set("AWS_ENDPOINT_URL_STS", "");
  fake_.Set("AWS_REGION", "evil.example/?");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("AWS_REGION")));
  fake_.Set("AWS_REGION", "us-iso-east-1");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("set AWS_ENDPOINT_URL_STS")));
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(AwsServersTest, ATokenIsSentUnencryptedOnlyLocallyOrToTheConfiguredStsEndpoint) {
  // The name of this host cannot be resolved, so a request that is sent to the host fails as
  // Unavailable.
  const std::string elsewhere = absl::StrCat("http://", kImpossibleHost, ":9000");
  UseWebIdentity();
  fake_.Set("AWS_ENDPOINT_URL_STS", "");
  fake_.Set("AWS_ENDPOINT_URL", elsewhere);
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, AllOf(HasSubstr("not encrypted"),
                                                          HasSubstr("set AWS_ENDPOINT_URL_STS"))));
  fake_.Set("AWS_ENDPOINT_URL", "");
  fake_.Set("AWS_CONFIG_FILE",
            fake_.folder().Write("c", absl::StrCat("[default]\nendpoint_url = ", elsewhere, "\n")));
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("set AWS_ENDPOINT_URL_STS")));
  fake_.Set("AWS_ENDPOINT_URL", server_.Url(""));  // On this machine, no encryption is needed.
  EXPECT_THAT(Get(), HoldsKeys(1));
  fake_.Set("AWS_ENDPOINT_URL_STS", elsewhere);
  EXPECT_THAT(Get(), FailsWith(kUnavailable, HasSubstr("cannot be resolved")));
}

TEST_F(AwsServersTest, StsRefusalsNameTheSettingsAndStsFailuresAreRetried) {
  UseWebIdentity();
  std::atomic<int> status = 0;
  faulty_.SetFault([&status](const StubRequest&) { return Reply(status, "s3cr3t says STS"); });
  for (const int refuses : {400, 401, 403}) {
    status = refuses;
    EXPECT_THAT(Get(),
                FailsWith(kPermissionDenied, AllOf(HasSubstr(absl::StrCat("status ", refuses)),
                                                   HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE"),
                                                   HasSubstr("arn:aws:iam::1:role/r"))));
  }
  size_t asked = server_.requests().size();
  for (const int fails : {429, 500, 503}) {
    status = fails;
    EXPECT_THAT(Get(), FailsWith(kUnavailable, HasSubstr(absl::StrCat("status ", fails))));
    EXPECT_EQ(server_.requests().size(), asked += 3);  // The request is tried three times.
  }
  status = 307;
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("redirects")));
  status = 200;
  EXPECT_THAT(Get(), FailsWith(kDataLoss, HasSubstr("access key ID")));
}

TEST_F(AwsServersTest, AnAnswerThatIsTooLargeIsAnError) {
  UseWebIdentity();
  UseContainer();
  faulty_.SetFault([](const StubRequest&) { return Reply(200, std::string(65537, ' ')); });
  EXPECT_THAT(Get(), FailsWith(absl::StatusCode::kResourceExhausted, HasSubstr("65536")));
  fake_.Set("AWS_WEB_IDENTITY_TOKEN_FILE", "");
  EXPECT_THAT(Get(), FailsWith(absl::StatusCode::kResourceExhausted, HasSubstr("65536")));
}

TEST_F(AwsServersTest, AnUnreachableCredentialServerIsAnErrorNotMissingCredentials) {
  UseWebIdentity();
  fake_.Set("AWS_ENDPOINT_URL_STS", absl::StrCat("http://", DeadAddress()));
  EXPECT_THAT(Get(), FailsWith(kUnavailable, HasSubstr("cannot connect")));
  fake_.Set("AWS_WEB_IDENTITY_TOKEN_FILE", "");
  fake_.Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", absl::StrCat("http://", DeadAddress(), "/"));
  EXPECT_THAT(Get(), FailsWith(kUnavailable, HasSubstr("AWS_CONTAINER_CREDENTIALS_FULL_URI")));
}

TEST_F(AwsServersTest, AJumpOfTheWallClockDoesNotExpireCachedCredentials) {
  UseContainer();
  const auto source = Source();
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));
  fake_.Jump(absl::Hours(100));
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));
  fake_.Pass(absl::Hours(6));
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(2));
}

TEST_F(AwsServersTest, ContainerKeysAreRequestedWithTheConfiguredAuthorization) {
  UseContainer();
  EXPECT_THAT(Get(), HoldsKeys(1));
  EXPECT_EQ(FindHeader(server_.requests().at(0).headers, "authorization"), "");
  fake_.Set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic s3cr3t");
  EXPECT_THAT(Get(), HoldsKeys(2));
  EXPECT_EQ(FindHeader(server_.requests().at(1).headers, "authorization"), "Basic s3cr3t");
  fake_.Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", fake_.folder().Write("t", "s3cr3t-file\n"));
  EXPECT_THAT(Get(), HoldsKeys(3));
  EXPECT_EQ(FindHeader(server_.requests().at(2).headers, "authorization"), "s3cr3t-file");
  fake_.Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "");
  fake_.Set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/container");
  EXPECT_THAT(Get(), HoldsKeys(4));
}

TEST_F(AwsServersTest, InvalidContainerAddressesAndAuthorizationsFailBeforeARequest) {
  for (const char* bad : {"http://example.com/", "http://169.254.170.3/",
                          "http://127.evil.example/", "s3cr3t", "ftp://127.0.0.1/"}) {
    fake_.Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", bad);
    EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("169.254.170.2")));
  }
  fake_.Set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@example.com/s3cr3t");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("does not begin with '/'")));
  fake_.Set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "");
  UseContainer();
  fake_.Set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "s3cr3t\r\nx: y");
  EXPECT_THAT(Get(),
              FailsWith(kFailedPrecondition, HasSubstr("AWS_CONTAINER_AUTHORIZATION_TOKEN has")));
  fake_.Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", fake_.folder() / "none");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("does not exist")));
  fake_.Set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", fake_.folder().Write("t", "s3cr3t\nx: y"));
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("cannot be sent")));
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(AwsServersTest, ContainerRequestsBypassTheProxyAndStsRequestsUseIt) {
  const StubHttpServer proxy([](const StubRequest&) { return Reply(500, ""); });
  UseContainer();
  CredentialSurroundings surroundings = fake_.Get();
  surroundings.client->http_proxy = proxy.Url("");
  EXPECT_THAT(AwsCredentialsOfEnvironment(surroundings)->Get(kLongTime), HoldsKeys(1));
  EXPECT_TRUE(proxy.requests().empty());
  UseWebIdentity();
  EXPECT_THAT(AwsCredentialsOfEnvironment(surroundings)->Get(kLongTime),
              FailsWith(kUnavailable, HasSubstr("status 500")));
  EXPECT_TRUE(server_.requests().back().method != "POST");
}

TEST_F(AwsServersTest, GetFailsAsCancelledWithoutARequestAfterTheSourceEnded) {
  UseContainer();
  const auto source = Source();
  source->End();
  EXPECT_THAT(source->Get(kLongTime),
              FailsWith(absl::StatusCode::kCancelled, HasSubstr("no longer requests")));
  EXPECT_EQ(server_.connections(), 0);
  EXPECT_THAT(Get(), HoldsKeys(1));  // Another source would have got keys.
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(AwsServersTest, GetFailsWithDeadlineExceededWhenItsTimeoutIsOver) {
  UseWebIdentity();
  faulty_.SetFault([](const StubRequest&) { return StubAnswer{.hangs = true}; });
  EXPECT_THAT(Source()->Get(absl::Milliseconds(20)),
              FailsWith(absl::StatusCode::kDeadlineExceeded,
                        HasSubstr(absl::StrCat("AWS credentials of ", server_.Url("")))));
  EXPECT_THAT(Source()->Get(absl::ZeroDuration()),
              FailsWith(absl::StatusCode::kDeadlineExceeded,
                        HasSubstr(absl::StrCat("AWS credentials of ", server_.Url("")))));
  EXPECT_LE(server_.requests().size(), 1u);
}

TEST_F(AwsServersTest, CredentialServersAreVerifiedWithTheAwsCaBundle) {
  const StubCertificate certificate = MakeCertificate("IP:127.0.0.1");
  const StubHttpServer server([this](const StubRequest& request) { return Usual(request); },
                              &certificate);
  fake_.Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.Url("/container"));
  CredentialSurroundings surroundings = fake_.Get();
  surroundings.client = std::nullopt;
  ::setenv("AWS_CA_BUNDLE", fake_.folder().Write("ca.pem", certificate.pem).c_str(), 1);
  EXPECT_THAT(AwsCredentialsOfEnvironment(surroundings)->Get(kLongTime), HoldsKeys(1));
  ::setenv("AWS_CA_BUNDLE", "/none/ca.pem", 1);
  EXPECT_THAT(AwsCredentialsOfEnvironment(surroundings)->Get(kLongTime),
              FailsWith(kFailedPrecondition, HasSubstr("correct AWS_CA_BUNDLE")));
  ::unsetenv("AWS_CA_BUNDLE");
}

TEST_F(AwsServersTest, InAForkedChildEndDoesNotHangAndGetAsksForSpawn) {
  UseContainer();
  const auto source = Source();
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));
  fake_.Pass(absl::Hours(6));
  const pid_t child = ::fork();
  if (child == 0) {
    source->End();
    const std::string told(source->Get(kLongTime).status().message());
    ::_exit(absl::StrContains(told, "start processes by spawn") ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
}

TEST_F(AwsServersTest, AnInterruptEndsTheWaitForAServer) {
  UseContainer();
  faulty_.SetFault([](const StubRequest&) { return StubAnswer{.bytes = "", .hangs = true}; });
  const auto source = Source();
  InterruptFlag unwanted;
  std::thread asks([&] {
    const InterruptScope scope(unwanted);
    EXPECT_THAT(source->Get(kLongTime),
                FailsWith(absl::StatusCode::kCancelled, HasSubstr("no longer")));
  });
  EXPECT_TRUE(WaitUntil([&] { return server_.requests().size() == 1; }));
  unwanted.Raise();
  asks.join();
}

}  // namespace
}  // namespace systole
