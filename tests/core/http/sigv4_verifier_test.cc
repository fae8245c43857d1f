// Tests the verifier itself with signatures that AWS publishes.
#include "tests/core/http/sigv4_verifier.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/http/http_headers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr char kEmptyHash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string Authorization(const AwsSigning& sign, const std::string& date,
                          const std::string& headers, const std::string& signature) {
  return absl::StrCat("AWS4-HMAC-SHA256 Credential=", sign.access_key_id, "/", date, "/",
                      sign.region, "/", sign.service, "/aws4_request,SignedHeaders=", headers,
                      ",Signature=", signature);
}

// The keys of the examples in Amazon S3's API reference.
AwsSigning ExampleOfS3() {
  return {.access_key_id = "AKIAIOSFODNN7EXAMPLE",
          .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
          .region = "us-east-1"};
}

// "Example: GET Object" of the API reference.
StubRequest GetObject() {
  return {.method = "GET",
          .target = "/test.txt",
          .headers = {{"host", "examplebucket.s3.amazonaws.com"},
                      {"authorization",
                       Authorization(
                           ExampleOfS3(), "20130524", "host;range;x-amz-content-sha256;x-amz-date",
                           "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")},
                      {"range", "bytes=0-9"},
                      {"x-amz-content-sha256", kEmptyHash},
                      {"x-amz-date", "20130524T000000Z"}}};
}

TEST(SigV4VerifierTest, AcceptsTheExamplesOfS3) {
  EXPECT_THAT(VerifySigV4(GetObject(), ExampleOfS3()), IsOk());
  // "GET Bucket Lifecycle" has a query parameter without a value. "Get Bucket (List Objects)" has
  // two query parameters.
  const auto get_bucket = [](const std::string& target, const std::string& signature) {
    return StubRequest{
        .method = "GET",
        .target = target,
        .headers = {
            {"host", "examplebucket.s3.amazonaws.com"},
            {"x-amz-date", "20130524T000000Z"},
            {"authorization", Authorization(ExampleOfS3(), "20130524",
                                            "host;x-amz-content-sha256;x-amz-date", signature)},
            {"x-amz-content-sha256", kEmptyHash}}};
  };
  EXPECT_THAT(VerifySigV4(get_bucket("/?lifecycle",
                                     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783"
                                     "543"),
                          ExampleOfS3()),
              IsOk());
  EXPECT_THAT(VerifySigV4(get_bucket("/?max-keys=2&prefix=J",
                                     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc"
                                     "6f7"),
                          ExampleOfS3()),
              IsOk());
}

// "get-vanilla" of AWS's test suite for Signature Version 4.
TEST(SigV4VerifierTest, AcceptsTheVanillaRequestOfTheAwsTestSuite) {
  const AwsSigning sign = {.access_key_id = "AKIDEXAMPLE",
                           .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                           .region = "us-east-1",
                           .service = "service"};
  const StubRequest request = {
      .method = "GET",
      .target = "/",
      .headers = {
          {"host", "example.amazonaws.com"},
          {"x-amz-date", "20150830T123600Z"},
          {"authorization",
           Authorization(sign, "20150830", "host;x-amz-date",
                         "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")}}};
  EXPECT_THAT(VerifySigV4(request, sign), IsOk());
}

TEST(SigV4VerifierTest, RefusesRequestsAndKeysChangedAfterSigning) {
  const auto refused = [](const StubRequest& request, const AwsSigning& sign) {
    return !VerifySigV4(request, sign).ok();
  };
  AwsSigning other = ExampleOfS3();
  other.secret_access_key += "x";
  EXPECT_TRUE(refused(GetObject(), other));
  other = ExampleOfS3();
  other.region = "eu-west-1";
  EXPECT_TRUE(refused(GetObject(), other));
  other = ExampleOfS3();
  other.session_token = "token";
  EXPECT_TRUE(refused(GetObject(), other));

  StubRequest request = GetObject();
  request.target = "/test.txt?x";
  EXPECT_TRUE(refused(request, ExampleOfS3()));
  request = GetObject();
  request.method = "HEAD";
  EXPECT_TRUE(refused(request, ExampleOfS3()));
  request = GetObject();
  request.body = "x";
  EXPECT_TRUE(refused(request, ExampleOfS3()));
  for (const char* name : {"host", "range", "x-amz-date", "x-amz-content-sha256"}) {
    request = GetObject();
    for (auto& [each, value] : request.headers) {
      if (each == name) value += "1";
    }
    EXPECT_TRUE(refused(request, ExampleOfS3())) << name;
    request = GetObject();
    RemoveHeader(request.headers, name);
    EXPECT_TRUE(refused(request, ExampleOfS3())) << name;
  }
  request = GetObject();
  request.headers.emplace_back("if-match", "\"x\"");
  EXPECT_THAT(VerifySigV4(request, ExampleOfS3()),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("if-match is not signed")));
  request = GetObject();
  RemoveHeader(request.headers, "authorization");
  EXPECT_TRUE(refused(request, ExampleOfS3()));
}

}  // namespace
}  // namespace systole
