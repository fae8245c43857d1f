// A stub of the services that give AWS credentials.
#ifndef SYSTOLE_TESTS_CORE_CREDENTIALS_AWS_STUB_SERVERS_H_
#define SYSTOLE_TESTS_CORE_CREDENTIALS_AWS_STUB_SERVERS_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/aws_credentials.h"
#include "core/http/http_headers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/credentials/fake_surroundings.h"
#include "tests/core/http/faulty_http_server.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/status_matchers.h"

namespace systole {

// The keys that the stub gives at its n-th answer.
inline auto HoldsKeys(int n) {
  return IsOkAndHolds(testing::Optional(testing::Eq(
      AwsCredentials{absl::StrCat("id-", n), absl::StrCat("s3cr3t-", n), "s3cr3t-token"})));
}

// The server answers like STS, like a container's server and like an instance's metadata service. A
// test can set other answers in `faulty_`.
class AwsServersTest : public testing::Test {
 protected:
  void UseWebIdentity() {
    fake_.Set("AWS_WEB_IDENTITY_TOKEN_FILE", fake_.folder().Write("token", "s3cr3t&jwt\n"));
    fake_.Set("AWS_ROLE_ARN", "arn:aws:iam::1:role/r");
    fake_.Set("AWS_ENDPOINT_URL_STS", server_.Url(""));
  }
  void UseContainer() {
    fake_.Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server_.Url("/container"));
  }
  void UseInstance() {
    fake_.Set("AWS_EC2_METADATA_DISABLED", "");
    fake_.Set("AWS_EC2_METADATA_SERVICE_ENDPOINT", server_.Url(""));
  }
  std::unique_ptr<AwsCredentialSource> Source() {
    CredentialSurroundings surroundings = fake_.Get();
    surroundings.container_server = server_.Url("");
    return AwsCredentialsOfEnvironment(surroundings);
  }
  absl::StatusOr<std::optional<AwsCredentials>> Get() { return Source()->Get(kLongTime); }

  StubAnswer Json() {
    const int n = ++given_;
    return Reply(200, absl::StrCat(R"({"Code":"Success","AccessKeyId":"id-)", n,
                                   R"(","SecretAccessKey":"s3cr3t-)", n,
                                   R"(","Token":"s3cr3t-token","Expiration":")",
                                   fake_.Date(absl::Hours(6)), "\"}"));
  }
  StubAnswer Usual(const StubRequest& request) {
    if (request.method == "POST") {
      const int n = ++given_;
      return Reply(200,
                   absl::StrCat("<R><Credentials><AccessKeyId>id-", n,
                                "</AccessKeyId><SecretAccessKey>s3cr3t-", n,
                                "</SecretAccessKey><SessionToken>s3cr3t-token</SessionToken>"
                                "<Expiration>",
                                fake_.Date(absl::Hours(1)), "</Expiration></Credentials></R>"));
    }
    if (request.target == "/container") return Json();
    if (request.method == "PUT" && request.target == "/latest/api/token") {
      return Reply(200, "s3cr3t-session");
    }
    if (FindHeader(request.headers, "x-aws-ec2-metadata-token") != "s3cr3t-session") {
      return Reply(401, "");
    }
    if (request.target == "/latest/meta-data/iam/security-credentials/") {
      return Reply(200, "my-role\nother");
    }
    if (request.target == "/latest/meta-data/iam/security-credentials/my-role") return Json();
    return Reply(404, "");
  }

  FakeSurroundings fake_;
  std::atomic<int> given_ = 0;
  FaultyHttpServer faulty_{[this](const StubRequest& request) { return Usual(request); }};
  StubHttpServer& server_ = faulty_.server();
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_CREDENTIALS_AWS_STUB_SERVERS_H_
