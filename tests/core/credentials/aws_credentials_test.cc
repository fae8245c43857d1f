// Tests from which place AWS credentials are taken, and which error a mistake in each place causes.
#include "core/credentials/aws_credentials.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/credentials/aws_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/credentials/fake_surroundings.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kPermissionDenied = absl::StatusCode::kPermissionDenied;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

auto Holds(const std::string& id, const std::string& secret, const std::string& token = "") {
  return IsOkAndHolds(Optional(Eq(AwsCredentials{id, secret, token})));
}

class AwsCredentialsTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(fake_.folder() / ".aws"); }

  void WriteConfig(const std::string& text) { fake_.folder().Write(".aws/config", text); }
  void WriteCredentials(const std::string& text) { fake_.folder().Write(".aws/credentials", text); }

  // The credentials that a new process gets.
  absl::StatusOr<std::optional<AwsCredentials>> Get() {
    return AwsCredentialsOfEnvironment(fake_.Get())->Get(kLongTime);
  }

  FakeSurroundings fake_;
};

TEST_F(AwsCredentialsTest, AnEnvironmentWithoutCredentialsIsNoError) {
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
  fake_.Set("HOME", "");
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
  fake_.Set("HOME", "/dev/null");
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
}

TEST_F(AwsCredentialsTest, KeysOfTheEnvironmentComeBeforeFilesUnlessUnsignedIsSet) {
  WriteCredentials("damaged");
  fake_.Set("AWS_WEB_IDENTITY_TOKEN_FILE", "/none");
  fake_.Set("AWS_ACCESS_KEY_ID", "id");
  fake_.Set("AWS_SECRET_ACCESS_KEY", "s3cr3t");
  EXPECT_THAT(Get(), Holds("id", "s3cr3t"));
  fake_.Set("AWS_SESSION_TOKEN", "s3cr3t-token");
  EXPECT_THAT(Get(), Holds("id", "s3cr3t", "s3cr3t-token"));
  fake_.Set("SYSTOLE_S3_UNSIGNED", "1");
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
  fake_.Set("SYSTOLE_S3_UNSIGNED", "0");
  EXPECT_THAT(Get(), Holds("id", "s3cr3t", "s3cr3t-token"));
  fake_.Set("SYSTOLE_S3_UNSIGNED", "yes");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("SYSTOLE_S3_UNSIGNED")));
}

TEST_F(AwsCredentialsTest, AKeyIdWithoutASecretOrASecretWithoutAKeyIdIsAnError) {
  fake_.Set("AWS_ACCESS_KEY_ID", "id-s3cr3t");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition,
                               HasSubstr("AWS_ACCESS_KEY_ID, but no AWS_SECRET_ACCESS_KEY")));
  fake_.Set("AWS_ACCESS_KEY_ID", "");
  fake_.Set("AWS_SECRET_ACCESS_KEY", "s3cr3t");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition,
                               HasSubstr("AWS_SECRET_ACCESS_KEY, but no AWS_ACCESS_KEY_ID")));
  fake_.Set("AWS_SECRET_ACCESS_KEY", "");
  WriteCredentials("[default]\naws_secret_access_key = s3cr3t\n");
  EXPECT_THAT(Get(),
              FailsWith(kFailedPrecondition,
                        AllOf(HasSubstr("profile 'default'"),
                              HasSubstr("aws_secret_access_key, but no aws_access_key_id"))));
}

TEST_F(AwsCredentialsTest, MalformedKeysAreErrorsThatDoNotShowThem) {
  fake_.Set("AWS_ACCESS_KEY_ID", "id");
  for (const char* secret : {"s3cr3t\n", "s3cr3t\r\nx-a: b", "s3cr3t\x80"}) {
    fake_.Set("AWS_SECRET_ACCESS_KEY", secret);
    EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("malformed secret access key")));
  }
  fake_.Set("AWS_SECRET_ACCESS_KEY", "s3cr3t");
  fake_.Set("AWS_ACCESS_KEY_ID", "s3cr3t, x");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("malformed access key ID")));
  fake_.Set("AWS_ACCESS_KEY_ID", "id");
  fake_.Set("AWS_SESSION_TOKEN", "s3cr3t\nx");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("malformed session token")));
}

TEST_F(AwsCredentialsTest, ProfilesAreReadFromTheCredentialsAndConfigFiles) {
  WriteCredentials(
      "[default]\naws_access_key_id = id\naws_secret_access_key = s3cr3t\n"
      "[x]\naws_access_key_id = id-x\naws_secret_access_key = s3cr3t-x\n");
  WriteConfig(
      "[profile x]\nregion = r\n"
      "[profile \"y z\"]\naws_access_key_id = id-y\naws_secret_access_key = s3cr3t-y\n");
  EXPECT_THAT(Get(), Holds("id", "s3cr3t"));
  fake_.Set("AWS_PROFILE", "x");
  EXPECT_THAT(Get(), Holds("id-x", "s3cr3t-x"));
  EXPECT_THAT(AwsRegionOfEnvironment(fake_.Get()), IsOkAndHolds("r"));
  fake_.Set("AWS_PROFILE", "");
  fake_.Set("AWS_DEFAULT_PROFILE", "y z");
  EXPECT_THAT(Get(), Holds("id-y", "s3cr3t-y"));
  fake_.Set("AWS_PROFILE", "none");
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition,
                               AllOf(HasSubstr("no profile 'none'"), HasSubstr("AWS_PROFILE"))));
}

TEST_F(AwsCredentialsTest, KeysOfTwoFilesAreNeverMixed) {
  const auto both = [this](const std::string& credentials, const std::string& config) {
    WriteCredentials(absl::StrCat("[default]\n", credentials));
    WriteConfig(absl::StrCat("[default]\n", config));
    return Get();
  };
  const std::string all =
      "aws_access_key_id = old\naws_secret_access_key = s3cr3t-old\naws_session_token = s3cr3t-t\n";
  EXPECT_THAT(both("aws_access_key_id = id\naws_secret_access_key = s3cr3t\n", all),
              Holds("id", "s3cr3t"));
  EXPECT_THAT(both("aws_access_key_id = id\naws_secret_access_key = s3cr3t\n",
                   "aws_session_token = s3cr3t-t\n"),
              Holds("id", "s3cr3t"));
  EXPECT_THAT(both("aws_access_key_id = id\n", all),
              FailsWith(kFailedPrecondition, HasSubstr("but no aws_secret_access_key")));
  EXPECT_THAT(both("aws_secret_access_key = s3cr3t\n", all),
              FailsWith(kFailedPrecondition, HasSubstr("but no aws_access_key_id")));
  EXPECT_THAT(both("aws_session_token = s3cr3t-t\n",
                   "aws_access_key_id = id\naws_secret_access_key = s3cr3t\n"),
              FailsWith(kFailedPrecondition, HasSubstr("aws_session_token, but no keys")));
  EXPECT_THAT(both("region = r\n", all), Holds("old", "s3cr3t-old", "s3cr3t-t"));
}

TEST_F(AwsCredentialsTest, VariablesCanNameOtherCredentialsAndConfigFiles) {
  fake_.Set("AWS_SHARED_CREDENTIALS_FILE",
            fake_.folder().Write("k", "[a]\naws_access_key_id=id\naws_secret_access_key=s3cr3t"));
  fake_.Set("AWS_PROFILE", "a");
  EXPECT_THAT(Get(), Holds("id", "s3cr3t"));
  fake_.Set("AWS_SHARED_CREDENTIALS_FILE", "~/k");
  EXPECT_THAT(Get(), Holds("id", "s3cr3t"));
  fake_.Set("AWS_CONFIG_FILE", fake_.folder() / "none");
  EXPECT_THAT(Get(),
              FailsWith(kFailedPrecondition, HasSubstr("AWS_CONFIG_FILE names a file that")));
  fake_.Set("AWS_PROFILE", "");
  fake_.Set("AWS_CONFIG_FILE", "/dev/null");
  fake_.Set("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
}

TEST_F(AwsCredentialsTest, DamagedTooLargeAndUnreadableFilesAreErrors) {
  WriteCredentials("[default]\ns3cr3t\n");
  EXPECT_THAT(Get(), FailsWith(kDataLoss, HasSubstr(".aws/credentials:2: ")));
  WriteCredentials(std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(Get(), FailsWith(absl::StatusCode::kResourceExhausted, HasSubstr("1048576")));
  fake_.Set("AWS_CONFIG_FILE", fake_.folder().path());
  EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, HasSubstr("not a regular file")));
  if (::geteuid() == 0) return;  // Root may read every file.
  fake_.Set("AWS_CONFIG_FILE", "");
  ASSERT_EQ(::chmod((fake_.folder() / ".aws/credentials").c_str(), 0), 0);
  EXPECT_THAT(Get(), FailsWith(kPermissionDenied, HasSubstr("AWS_SHARED_CREDENTIALS_FILE")));
}

TEST_F(AwsCredentialsTest, ErrorsNameUnsupportedProfileSettings) {
  const auto refused = [this](const std::string& key, const std::string& config) {
    WriteConfig(absl::StrCat("[default]\nregion = x\n", config, "\n"));
    EXPECT_THAT(Get(), FailsWith(kFailedPrecondition, AllOf(HasSubstr("profile 'default'"),
                                                            HasSubstr(absl::StrCat("'", key, "'")),
                                                            HasSubstr("AWS_ACCESS_KEY_ID"))));
  };
  refused("credential_process", "credential_process = /bin/s3cr3t");
  refused("sso_session", "sso_session = x");
  refused("sso_start_url", "sso_start_url = https://x");
  refused("source_profile", "role_arn = x\nsource_profile = y");
  refused("credential_source", "role_arn = x\ncredential_source = Environment");
  // If the profile has keys, its credential_process is not needed.
  WriteCredentials("[default]\naws_access_key_id=id\naws_secret_access_key=s3cr3t");
  WriteConfig("[default]\ncredential_process = x\n");
  EXPECT_THAT(Get(), Holds("id", "s3cr3t"));
}

TEST_F(AwsCredentialsTest, FilesAreReadAgainAfterAMinuteAndAfterARefusal) {
  const auto write = [this](const std::string& id) {
    WriteCredentials(
        absl::StrCat("[default]\naws_access_key_id = ", id, "\naws_secret_access_key = s3cr3t\n"));
  };
  write("a");
  const auto source = AwsCredentialsOfEnvironment(fake_.Get());
  EXPECT_THAT(source->Get(kLongTime), Holds("a", "s3cr3t"));
  write("b");
  EXPECT_THAT(source->Get(kLongTime), Holds("a", "s3cr3t"));
  source->Refused(AwsCredentials{"a", "s3cr3t"});
  EXPECT_THAT(source->Get(kLongTime), Holds("b", "s3cr3t"));
  write("c");
  fake_.Pass(absl::Minutes(1));
  EXPECT_THAT(source->Get(kLongTime), Holds("c", "s3cr3t"));
  WriteCredentials("damaged s3cr3t");
  fake_.Pass(absl::Minutes(1));
  EXPECT_THAT(source->Get(kLongTime), Holds("c", "s3cr3t"));
}

TEST_F(AwsCredentialsTest, RegionAndEndpointsComeFromVariablesThenFromTheProfile) {
  EXPECT_THAT(AwsRegionOfEnvironment(fake_.Get()), IsOkAndHolds(""));
  EXPECT_THAT(S3EndpointOfEnvironment(fake_.Get()), IsOkAndHolds(""));
  WriteConfig("[default]\nregion = from-file\nendpoint_url = http://file\n");
  EXPECT_THAT(AwsRegionOfEnvironment(fake_.Get()), IsOkAndHolds("from-file"));
  EXPECT_THAT(S3EndpointOfEnvironment(fake_.Get()), IsOkAndHolds("http://file"));
  fake_.Set("AWS_DEFAULT_REGION", "second");
  fake_.Set("AWS_ENDPOINT_URL", "http://all");
  fake_.Set("AWS_ENDPOINT_URL_STS", "http://sts");
  EXPECT_THAT(AwsRegionOfEnvironment(fake_.Get()), IsOkAndHolds("second"));
  EXPECT_THAT(S3EndpointOfEnvironment(fake_.Get()), IsOkAndHolds("http://all"));
  EXPECT_THAT(StsEndpointOfEnvironment(fake_.Get()), IsOkAndHolds("http://sts"));
  fake_.Set("AWS_REGION", "first");
  fake_.Set("AWS_ENDPOINT_URL_S3", "http://s3");
  EXPECT_THAT(AwsRegionOfEnvironment(fake_.Get()), IsOkAndHolds("first"));
  EXPECT_THAT(S3EndpointOfEnvironment(fake_.Get()), IsOkAndHolds("http://s3"));
  fake_.Set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
  EXPECT_THAT(S3EndpointOfEnvironment(fake_.Get()), IsOkAndHolds(""));
  fake_.Set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "");
  fake_.Set("AWS_ENDPOINT_URL_S3", "");
  fake_.Set("AWS_ENDPOINT_URL", "");
  WriteConfig("[default]\nservices = mine\n[services mine]\ns3 =\n  endpoint_url = http://x\n");
  EXPECT_THAT(S3EndpointOfEnvironment(fake_.Get()),
              FailsWith(kFailedPrecondition, HasSubstr("set AWS_ENDPOINT_URL_S3")));
  EXPECT_THAT(AwsRegionOfEnvironment(fake_.Get()), IsOkAndHolds("first"));
}

TEST_F(AwsCredentialsTest, AServicesSectionAffectsOnlyTheServicesThatItLists) {
  WriteConfig(
      "[default]\nservices = mine\nendpoint_url = http://all\n"
      "[services mine]\nsts =\n  endpoint_url = http://x\n");
  EXPECT_THAT(S3EndpointOfEnvironment(fake_.Get()), IsOkAndHolds("http://all"));
  EXPECT_THAT(StsEndpointOfEnvironment(fake_.Get()),
              FailsWith(kFailedPrecondition, HasSubstr("set AWS_ENDPOINT_URL_STS")));
  WriteConfig("[default]\nservices = none\n");
  EXPECT_THAT(S3EndpointOfEnvironment(fake_.Get()), IsOkAndHolds(""));
}

TEST_F(AwsCredentialsTest, RegionsOutsideTheKnownDomainsNeedAnEndpoint) {
  EXPECT_THAT(AwsDomainOfRegion("eu-west-1", "V"), IsOkAndHolds("amazonaws.com"));
  EXPECT_THAT(AwsDomainOfRegion("us-gov-west-1", "V"), IsOkAndHolds("amazonaws.com"));
  EXPECT_THAT(AwsDomainOfRegion("cn-north-1", "V"), IsOkAndHolds("amazonaws.com.cn"));
  for (const char* region : {"us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "eusc-de-east-1",
                             "aws-global", "aws-cn-global"}) {
    EXPECT_THAT(
        AwsDomainOfRegion(region, "AWS_ENDPOINT_URL_S3"),
        FailsWith(kFailedPrecondition, AllOf(HasSubstr(region), HasSubstr("AWS_ENDPOINT_URL_S3"))));
  }
}

}  // namespace
}  // namespace systole
