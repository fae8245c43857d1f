#include "core/storage/bucket/s3_dialect.h"

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

const AwsCredentials kFirst = {.access_key_id = "IDFIRST", .secret_access_key = "SECRETFIRST"};
const AwsCredentials kSecond = {
    .access_key_id = "IDSECOND", .secret_access_key = "SECRETSECOND", .session_token = "TOKEN"};

std::unique_ptr<S3Dialect> Dialect(const S3Options& options,
                                   std::vector<AwsCredentials> credentials = {kFirst}) {
  absl::StatusOr<std::unique_ptr<S3Dialect>> dialect =
      S3Dialect::Create(options, std::make_unique<FakeAwsCredentials>(std::move(credentials)));
  EXPECT_THAT(dialect, IsOk());
  return *std::move(dialect);
}

HttpRequest Prepared(S3Dialect& dialect, const std::string& name) {
  HttpRequest request = {.url = name};
  EXPECT_THAT(dialect.Prepare(request), IsOk());
  return request;
}

TEST(S3DialectTest, TheBucketStandsInTheHostAtAwsAndInThePathElsewhere) {
  const auto url = [](const S3Options& options, const std::string& name) {
    return Prepared(*Dialect(options), name).url;
  };
  EXPECT_EQ(url({}, "s3://data/d/a b"), "https://data.s3.us-east-1.amazonaws.com/d/a%20b");
  EXPECT_EQ(url({.region = "eu-west-1"}, "s3://data?list-type=2"),
            "https://data.s3.eu-west-1.amazonaws.com/?list-type=2");
  EXPECT_EQ(url({.region = "cn-north-1"}, "s3://data/a"),
            "https://data.s3.cn-north-1.amazonaws.com.cn/a");
  EXPECT_EQ(url({.bucket_in_host = false}, "s3://data/a"),
            "https://s3.us-east-1.amazonaws.com/data/a");
  // S3's certificate covers only one label before "s3.", so a bucket with a '.' stands in the path.
  EXPECT_EQ(url({}, "s3://my.data/a"), "https://s3.us-east-1.amazonaws.com/my.data/a");
  const std::string own = "http://host:9000";
  EXPECT_EQ(url({.endpoint = own}, "s3://data/d/a"), "http://host:9000/data/d/a");
  EXPECT_EQ(url({.endpoint = own + "/minio/"}, "s3://data/a"), "http://host:9000/minio/data/a");
  EXPECT_EQ(url({.endpoint = own}, "s3://data?prefix=a"), "http://host:9000/data?prefix=a");
  EXPECT_EQ(url({.endpoint = own, .bucket_in_host = true}, "s3://my.data/a"),
            "http://my.data.host:9000/a");
}

TEST(S3DialectTest, KeysAreRequestedWithoutNormalization) {
  const auto dialect = Dialect({.endpoint = "http://host"});
  EXPECT_EQ(Prepared(*dialect, "s3://data//a/./../b//c").url, "http://host/data//a/./../b//c");
  EXPECT_EQ(Prepared(*dialect, "s3://data/a?b#c%20+").url, "http://host/data/a%3Fb%23c%2520%2B");
  EXPECT_TRUE(Prepared(*dialect, "s3://data/a").keeps_dots);
}

TEST(S3DialectTest, ARequestAboutAnObjectHasItsQueryBehindTheKey) {
  const BucketTarget target = {.name = {.scheme = "s3", .bucket = "data", .key = "d/a?b"},
                               .query = "?partNumber=1&uploadId=x%2Fy"};
  EXPECT_EQ(target.Url(), "s3://data?partNumber=1&uploadId=x%2Fy/d/a?b");
  EXPECT_EQ(Prepared(*Dialect({}), target.Url()).url,
            "https://data.s3.us-east-1.amazonaws.com/d/a%3Fb?partNumber=1&uploadId=x%2Fy");
  EXPECT_EQ(Prepared(*Dialect({.endpoint = "http://host"}), target.Url()).url,
            "http://host/data/d/a%3Fb?partNumber=1&uploadId=x%2Fy");
  const BucketTarget object = {.name = target.name, .query = ""};
  EXPECT_EQ(object.Url(), "s3://data/d/a?b");
}

TEST(S3DialectTest, RequestsAreSignedAndNeverRedirected) {
  const auto dialect = Dialect({.region = "eu-west-1"}, {kSecond});
  const HttpRequest request = Prepared(*dialect, "s3://data/a");
  ASSERT_TRUE(request.sign.has_value());
  EXPECT_EQ(request.sign->access_key_id, "IDSECOND");
  EXPECT_EQ(request.sign->secret_access_key, "SECRETSECOND");
  EXPECT_EQ(request.sign->session_token, "TOKEN");
  EXPECT_EQ(request.sign->region, "eu-west-1");
  EXPECT_EQ(request.redirects, Redirects::kReturn);
  EXPECT_FALSE(Prepared(*Dialect({}, {}), "s3://data/a").sign.has_value());
}

TEST(S3DialectTest, AMalformedOptionIsRefusedWithTheNameOfItsVariable) {
  const auto refused = [](const S3Options& options) {
    return S3Dialect::Create(options,
                             std::make_unique<FakeAwsCredentials>(std::vector<AwsCredentials>()))
        .status();
  };
  EXPECT_THAT(refused({.endpoint = "host:9000"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("AWS_ENDPOINT_URL")));
  EXPECT_THAT(refused({.endpoint = "http://host?x=SECRET"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("has a query"), Not(HasSubstr("SECRET")))));
  EXPECT_THAT(refused({.endpoint = "http://user:SECRET@host"}),
              StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("SECRET"))));
  EXPECT_THAT(refused({.region = "evil.example/"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("AWS_REGION"), HasSubstr("the profile's region"))));
  // The servers of this region are in a domain of their own, which the dialect does not support.
  EXPECT_THAT(refused({.region = "us-iso-east-1"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("AWS_ENDPOINT_URL_S3")));
}

HttpResponse Redirect(int status, const std::string& region) {
  return {.status = status, .headers = {{"x-amz-bucket-region", region}}};
}

TEST(S3DialectTest, ABucketInAnotherRegionIsRequestedThereAfterARedirect) {
  for (const int status : {301, 307, 400}) {
    const auto dialect = Dialect({});
    const HttpRequest sent = Prepared(*dialect, "s3://data/a");
    EXPECT_TRUE(dialect->LearnsFrom("s3://data/a", sent, Redirect(status, "eu-west-1")));
    const HttpRequest next = Prepared(*dialect, "s3://data/b");
    EXPECT_EQ(next.url, "https://data.s3.eu-west-1.amazonaws.com/b");
    EXPECT_EQ(next.sign->region, "eu-west-1");
    EXPECT_EQ(Prepared(*dialect, "s3://other/b").sign->region, "us-east-1");
    // LearnsFrom() returns whether a request is sent again. `next` already used the new region, and
    // would get the same answer for ever. `sent` used the old region, and is sent again even if its
    // answer comes late.
    EXPECT_FALSE(dialect->LearnsFrom("s3://data/b", next, Redirect(status, "eu-west-1")));
    EXPECT_TRUE(dialect->LearnsFrom("s3://data/a", sent, Redirect(status, "eu-west-1")));
  }
}

TEST(S3DialectTest, TheRegionIsLearnedFromTheErrorBodyAlone) {
  const auto dialect = Dialect({});
  const HttpRequest sent = Prepared(*dialect, "s3://data/a");
  EXPECT_TRUE(dialect->LearnsFrom(
      "s3://data/a", sent,
      {.status = 400,
       .body = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>"}));
  EXPECT_EQ(Prepared(*dialect, "s3://data/a").sign->region, "eu-west-1");
}

TEST(S3DialectTest, RedirectsToInvalidRegionsOrFromCustomEndpointsAreIgnored) {
  const auto dialect = Dialect({});
  const HttpRequest sent = Prepared(*dialect, "s3://data/a");
  for (const char* region : {"evil.example", "x/y", "", "a b", "x@y"}) {
    EXPECT_FALSE(dialect->LearnsFrom("s3://data/a", sent, Redirect(301, region))) << region;
  }
  const auto own = Dialect({.endpoint = "http://host"});
  const HttpRequest to_own = Prepared(*own, "s3://data/a");
  EXPECT_FALSE(own->LearnsFrom("s3://data/a", to_own, Redirect(301, "eu-west-1")));
  EXPECT_EQ(Prepared(*own, "s3://data/a").sign->region, "us-east-1");
}

TEST(S3DialectTest, TheTableOfRegionsIsBounded) {
  const auto dialect = Dialect({});
  for (size_t i = 0; i <= kMaxBucketRegions; ++i) {
    const std::string name = absl::StrCat("s3://bucket-", i, "/a");
    const HttpRequest sent = Prepared(*dialect, name);
    ASSERT_TRUE(dialect->LearnsFrom(name, sent, Redirect(301, "eu-west-1")));
  }
  EXPECT_EQ(Prepared(*dialect, "s3://bucket-0/a").sign->region, "us-east-1");
  EXPECT_EQ(Prepared(*dialect, absl::StrCat("s3://bucket-", kMaxBucketRegions, "/a")).sign->region,
            "eu-west-1");
}

HttpResponse Refusal(int status, absl::string_view code) {
  return {
      .status = status,
      .body = absl::StrCat("<Error><Code>", code, "</Code><Message>SERVERTEXT</Message></Error>")};
}

TEST(S3DialectTest, RefusedCredentialsAreRenewedAndTriedOnce) {
  auto source = std::make_unique<FakeAwsCredentials>(std::vector{kFirst, kSecond});
  FakeAwsCredentials& credentials = *source;
  const auto dialect = *S3Dialect::Create({}, std::move(source));
  const HttpRequest sent = Prepared(*dialect, "s3://data/a");
  EXPECT_FALSE(dialect->LearnsFrom("s3://data/a", sent, Refusal(403, "AccessDenied")));
  EXPECT_EQ(credentials.refused(), 0);
  EXPECT_TRUE(dialect->LearnsFrom("s3://data/a", sent, Refusal(400, "ExpiredToken")));
  const HttpRequest next = Prepared(*dialect, "s3://data/a");
  EXPECT_EQ(next.sign->access_key_id, "IDSECOND");
  // The source has no further credentials.
  EXPECT_FALSE(dialect->LearnsFrom("s3://data/a", next, Refusal(403, "InvalidAccessKeyId")));
  EXPECT_EQ(credentials.refused(), 2);
}

TEST(S3DialectTest, SomeRefusalsOfUnsignedRequestsTriggerACredentialLookup) {
  const struct {
    int status;
    const char* code;
    bool looks;
  } kRefusals[] = {{400, "InvalidArgument", true},     {401, "", true},
                   {403, "AccessDenied", true},        {404, "NoSuchKey", false},
                   {404, "XAdminUserNotFound", true},  {405, "MethodNotAllowed", false},
                   {412, "PreconditionFailed", false}, {503, "SlowDown", false}};
  for (const auto& [status, code, looks] : kRefusals) {
    auto source = std::make_unique<FakeAwsCredentials>(std::vector<AwsCredentials>());
    source->SetLateValues({kFirst});
    const auto dialect = *S3Dialect::Create({}, std::move(source));
    const HttpRequest sent = Prepared(*dialect, "s3://data/a");
    EXPECT_EQ(dialect->LearnsFrom("s3://data/a", sent, Refusal(status, code)), looks) << status;
    EXPECT_EQ(Prepared(*dialect, "s3://data/a").sign.has_value(), looks) << status << code;
  }
}

TEST(S3DialectTest, TheRequesterPaysHeaderIsSentOnlyIfTheOptionIsSet) {
  const auto header = [](const S3Options& options) {
    const HttpRequest request = Prepared(*Dialect(options), "s3://data/a");
    return std::string(FindHeader(request.headers, "x-amz-request-payer"));
  };
  EXPECT_EQ(header({}), "");
  EXPECT_EQ(header({.requester_pays = true}), "requester");
}

TEST(S3DialectTest, ARefusalSaysWhatToDoAndShowsNoWordsOfTheServer) {
  const auto dialect = Dialect({});
  Prepared(*dialect, "s3://data/a");
  const auto says = [&](int status, absl::string_view code) {
    const absl::Status refusal = dialect->RefusalOf("it", Refusal(status, code));
    EXPECT_THAT(std::string(refusal.message()),
                AllOf(HasSubstr(absl::StrCat("it: S3 answers with status ", status, " ", code)),
                      Not(HasSubstr("SERVERTEXT"))));
    return refusal;
  };
  EXPECT_THAT(says(404, "NoSuchKey"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no such object")));
  EXPECT_THAT(says(404, "NoSuchBucket"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("no such bucket"), HasSubstr("AWS_ENDPOINT_URL_S3"))));
  EXPECT_THAT(says(403, "AccessDenied"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("s3:GetObject"), HasSubstr("s3:ListBucket"),
                             HasSubstr("set AWS_REQUEST_PAYER=requester"))));
  for (const char* code : {"InvalidAccessKeyId", "SignatureDoesNotMatch"}) {
    EXPECT_THAT(says(403, code), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("AWS_SECRET_ACCESS_KEY")));
  }
  EXPECT_THAT(says(403, "RequestTimeTooSkewed"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("clock")));
  EXPECT_THAT(says(403, "InvalidObjectState"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("archived")));
  EXPECT_THAT(says(503, "SlowDown"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("overloaded")));
  EXPECT_THAT(says(301, "PermanentRedirect"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("AWS_REGION")));
  EXPECT_THAT(says(418, "Teapot"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("want 200 or 206")));
  // versitygw gives this answer if it does not know the access key. Despite the status 404, the
  // answer must not count as a missing file.
  EXPECT_THAT(says(404, "XAdminUserNotFound"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("does not accept"), HasSubstr("AWS_PROFILE"))));
  EXPECT_THAT(says(404, "NoSuchUser"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("does not know the caller"), HasSubstr("AWS_PROFILE"))));
  EXPECT_THAT(dialect->RefusalOf("it", {.status = 400,
                                        .body = "<Error><Code>AuthorizationHeaderMalformed</Code>"
                                                "<Region>eu-west-1</Region></Error>"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("in the region eu-west-1; set AWS_REGION")));
}

TEST(S3DialectTest, WithoutCredentialsARefusalSaysSo) {
  const auto dialect = Dialect({}, {});
  Prepared(*dialect, "s3://data/a");
  EXPECT_THAT(dialect->RefusalOf("it", Refusal(403, "AccessDenied")),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("had no credentials"), HasSubstr("AWS_PROFILE"))));
  // Answers to requests without credentials. InvalidArgument is the answer of versitygw. The other
  // answers come from servers that hide from such callers which objects exist.
  const struct {
    int status;
    const char* code;
    absl::StatusCode means;
  } kRefusals[] = {{400, "InvalidArgument", absl::StatusCode::kFailedPrecondition},
                   {401, "", absl::StatusCode::kPermissionDenied},
                   {403, "InvalidAccessKeyId", absl::StatusCode::kPermissionDenied},
                   {404, "NoSuchKey", absl::StatusCode::kNotFound},
                   {404, "NoSuchBucket", absl::StatusCode::kNotFound},
                   {404, "", absl::StatusCode::kNotFound},
                   {405, "MethodNotAllowed", absl::StatusCode::kFailedPrecondition},
                   {429, "SlowDown", absl::StatusCode::kUnavailable}};
  for (const auto& [status, code, means] : kRefusals) {
    EXPECT_THAT(dialect->RefusalOf("it", Refusal(status, code)),
                StatusIs(means, AllOf(HasSubstr("had no credentials"), HasSubstr("AWS_PROFILE"),
                                      HasSubstr("SYSTOLE_S3_UNSIGNED"))))
        << status << code;
  }
  for (const int status : {301, 407, 503}) {
    EXPECT_THAT(std::string(dialect->RefusalOf("it", {.status = status}).message()),
                Not(HasSubstr("credentials")));
  }
}

TEST(S3DialectTest, TheEnvironmentNamesEndpointRegionAndAddressing) {
  std::map<std::string, std::string> variables;
  CredentialSurroundings surroundings;
  surroundings.variable = [&](const char* name) { return variables[name]; };
  variables["HOME"] = "/nonexistent";
  const absl::StatusOr<S3Options> usual = S3OptionsOfEnvironment(surroundings);
  ASSERT_THAT(usual, IsOk());
  EXPECT_EQ(usual->endpoint, "");
  EXPECT_EQ(usual->region, "us-east-1");
  EXPECT_FALSE(usual->bucket_in_host.has_value());
  variables["AWS_ENDPOINT_URL_S3"] = "http://host:9000";
  variables["AWS_REGION"] = "eu-west-1";
  variables["SYSTOLE_S3_ADDRESSING"] = "virtual";
  const absl::StatusOr<S3Options> set = S3OptionsOfEnvironment(surroundings);
  ASSERT_THAT(set, IsOk());
  EXPECT_EQ(set->endpoint, "http://host:9000");
  EXPECT_EQ(set->region, "eu-west-1");
  EXPECT_EQ(set->bucket_in_host, true);
  EXPECT_FALSE(set->requester_pays);
  variables["AWS_REQUEST_PAYER"] = "requester";
  EXPECT_TRUE(S3OptionsOfEnvironment(surroundings)->requester_pays);
  variables["AWS_REQUEST_PAYER"] = "true";
  EXPECT_THAT(S3OptionsOfEnvironment(surroundings),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("AWS_REQUEST_PAYER"), HasSubstr("want \"requester\""))));
  variables["AWS_REQUEST_PAYER"] = "";
  variables["SYSTOLE_S3_ADDRESSING"] = "path";
  EXPECT_EQ(S3OptionsOfEnvironment(surroundings)->bucket_in_host, false);
  variables["SYSTOLE_S3_ADDRESSING"] = "host";
  EXPECT_THAT(S3OptionsOfEnvironment(surroundings),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("SYSTOLE_S3_ADDRESSING"), HasSubstr("\"path\""))));
}

}  // namespace
}  // namespace systole
