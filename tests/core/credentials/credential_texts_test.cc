// Tests the functions that read credentials from files and from servers' answers.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/credential_file.h"
#include "core/credentials/credential_json.h"
#include "core/credentials/credential_life.h"
#include "core/credentials/google_tokens.h"
#include "core/credentials/ini_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/credentials.pb.h"
#include "tests/core/credentials/fake_surroundings.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kTooLarge = absl::StatusCode::kResourceExhausted;

TEST(CredentialFileTest, ReadsRegularFilesUpToTheirBound) {
  const TempFolder folder;
  EXPECT_THAT(ReadCredentialFile(folder.Write("a", "12345"), "file", 5), IsOkAndHolds("12345"));
  EXPECT_THAT(ReadCredentialFile(folder.Write("a", "s3cr3t"), "file", 5),
              FailsWith(kTooLarge, HasSubstr("more than 5 bytes")));
  EXPECT_THAT(ReadCredentialFile(folder.Write("big", std::string(100000, 'x')), "file", 100000),
              IsOkAndHolds(std::string(100000, 'x')));
  EXPECT_THAT(ReadCredentialFile("/dev/null", "file", 5), IsOkAndHolds(""));
  ASSERT_EQ(::symlink((folder / "big").c_str(), (folder / "link").c_str()), 0);
  EXPECT_THAT(ReadCredentialFile(folder / "link", "file", 100000), IsOk());
}

TEST(CredentialFileTest, MissingNonRegularAndUnreadableFilesAreErrors) {
  const TempFolder folder;
  EXPECT_THAT(ReadCredentialFile(folder / "none", "token file", 5),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("token file '")));
  EXPECT_THAT(ReadCredentialFile("/dev/null/a", "file", 5),
              FailsWith(absl::StatusCode::kNotFound, HasSubstr("'/dev/null/a'")));
  EXPECT_THAT(ReadCredentialFile(folder.path(), "file", 5),
              FailsWith(absl::StatusCode::kFailedPrecondition, HasSubstr("is not a regular file")));
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(ReadCredentialFile(folder / "fifo", "file", 5),
              FailsWith(absl::StatusCode::kFailedPrecondition, HasSubstr("is not a regular file")));
  if (::geteuid() == 0) return;  // Root may read everything.
  ASSERT_EQ(::chmod(folder.Write("closed", "x").c_str(), 0), 0);
  EXPECT_THAT(ReadCredentialFile(folder / "closed", "file", 5),
              FailsWith(absl::StatusCode::kPermissionDenied, HasSubstr("closed")));
}

TEST(IniFileTest, SectionsHaveKeysAndValues) {
  const absl::StatusOr<IniFile> file = ParseIni(
      "\xef\xbb\xbf# comment\r\n"
      "[default]\r\n"
      "  AWS_Access_Key_ID = a/b+c=d  \r\n"
      "  empty =\r\n"
      "\r\n"
      "[ profile x ] ; comment\n"
      "region: eu-west-1 # comment\n"
      "s3 =\n"
      "  region = nested\n"
      "\tother = nested\n"
      "url = http://h/#a;b\n"
      "; comment\n"
      "[default]\n"
      "empty = not any more\n"
      "comment = # all of it # and more\n",
      "f");
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(
      *file,
      ElementsAre(Pair("default", ElementsAre(Pair("aws_access_key_id", "a/b+c=d"),
                                              Pair("comment", ""), Pair("empty", "not any more"))),
                  Pair("profile x", ElementsAre(Pair("region", "eu-west-1"), Pair("s3", ""),
                                                Pair("url", "http://h/#a;b")))));
  EXPECT_THAT(ParseIni("", "f"), IsOkAndHolds(IsEmpty()));
}

TEST(IniFileTest, MalformedLinesAreNamedByNumberAndNotShown) {
  for (const char* line : {"s3cr3t", "= s3cr3t", "[s3cr3t", "[s3cr3t] s3cr3t", "[s3cr3t]a=b"}) {
    EXPECT_THAT(ParseIni(absl::StrCat("[a]\n\n", line, "\n"), "dir/file"),
                FailsWith(kDataLoss, HasSubstr("dir/file:3: ")))
        << line;
  }
  EXPECT_THAT(ParseIni("key = s3cr3t\n", "f"),
              FailsWith(kDataLoss, HasSubstr("f:1: a value stands before the first")));
  EXPECT_THAT(ParseIni(std::string(kMaxIniBytes + 1, '#'), "f"),
              FailsWith(kTooLarge, HasSubstr("1048577 bytes")));
  EXPECT_THAT(ParseIni(std::string(kMaxIniBytes, '#'), "f"), IsOk());
}

TEST(CredentialJsonTest, KnownFieldsAreReadAndOthersSkipped) {
  v1::AwsKeyAnswer answer;
  ASSERT_THAT(
      ParseCredentialJson(
          R"({"AccessKeyId": "x\ny", "n": 1, "o": {"Token": "inner"}, "l": [1], "z": null})",
          "answer", answer),
      IsOk());
  EXPECT_EQ(answer.access_key_id(), "x\ny");
  EXPECT_EQ(answer.token(), "");
}

TEST(CredentialJsonTest, InvalidJsonIsAnErrorThatQuotesNothing) {
  v1::AwsKeyAnswer answer;
  for (const std::string& text :
       {std::string(), std::string("s3cr3t"), std::string("[\"s3cr3t\"]"),
        std::string("\"s3cr3t\""), std::string("{\"Token\": \"s3cr3t"),
        std::string("{\"Token\": s3cr3t}"), std::string("{\"Token\": {\"s3cr3t\": 1}}"),
        std::string("{'s3cr3t': }"), std::string(10000, '['),
        absl::StrCat("{\"a\":", std::string(10000, '['))}) {
    EXPECT_THAT(ParseCredentialJson(text, "the answer", answer),
                FailsWith(kDataLoss, HasSubstr("the answer is not a JSON object")))
        << text;
  }
  EXPECT_THAT(ParseCredentialJson(std::string(kMaxJsonBytes + 1, ' '), "the answer", answer),
              FailsWith(kTooLarge, HasSubstr("65537 bytes")));
}

TEST(CredentialLifeTest, DatesAndSecondsBecomeBoundedDurations) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15T08:00:00Z
  EXPECT_THAT(LifeUntil("2027-01-15T09:00:00Z", now, "it"), IsOkAndHolds(absl::Hours(1)));
  EXPECT_THAT(LifeUntil("2027-01-15T09:00:00.5Z", now, "it"),
              IsOkAndHolds(absl::Hours(1) + absl::Milliseconds(500)));
  EXPECT_THAT(LifeUntil("2027-01-15T10:00:00+01:00", now, "it"), IsOkAndHolds(absl::Hours(1)));
  EXPECT_THAT(LifeUntil("9999-01-01T00:00:00Z", now, "it"), IsOkAndHolds(absl::Hours(8760)));
  for (const char* past : {"2027-01-15T08:00:00Z", "2026-01-01T00:00:00Z"}) {
    EXPECT_THAT(LifeUntil(past, now, "it"),
                FailsWith(absl::StatusCode::kUnavailable, HasSubstr("this machine's clock")));
  }
  for (const std::string& none :
       {std::string(), std::string("soon"), std::string("infinite-future"),
        std::string("2027-01-15"), std::string(100, '1')}) {
    EXPECT_THAT(LifeUntil(none, now, "it"),
                FailsWith(kDataLoss, HasSubstr("it has an expiry date")));
  }
  EXPECT_THAT(LifeOfSeconds(3599, "it"), IsOkAndHolds(absl::Seconds(3599)));
  EXPECT_THAT(LifeOfSeconds(1e300, "it"), IsOkAndHolds(absl::Hours(8760)));
  for (const double past : {0.0, -1.0}) {
    EXPECT_THAT(LifeOfSeconds(past, "it"),
                FailsWith(absl::StatusCode::kUnavailable, HasSubstr("ended already")));
  }
  for (const double none : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_THAT(LifeOfSeconds(none, "it"), FailsWith(kDataLoss, HasSubstr("number of seconds")));
  }
}

constexpr absl::Time kNow = absl::UnixEpoch();

TEST(AwsKeysTest, AnswersInJsonBecomeKeys) {
  const absl::StatusOr<CredentialLease<AwsCredentials>> lease = ParseAwsJson(
      R"({"Code": "Success", "AccessKeyId": "id", "SecretAccessKey": "k/+=", "Token": "t",
          "Expiration": "1970-01-01T01:00:00Z", "Type": "AWS-HMAC", "New": {"a": 1}})",
      "it", kNow);
  ASSERT_THAT(lease, IsOk());
  EXPECT_EQ(lease->value, (AwsCredentials{"id", "k/+=", "t"}));
  EXPECT_EQ(lease->life, absl::Hours(1));
  EXPECT_EQ(lease->look_again, absl::InfiniteDuration());
  const absl::StatusOr<CredentialLease<AwsCredentials>> lasting =
      ParseAwsJson(R"({"AccessKeyId": "id", "SecretAccessKey": "k"})", "it", kNow);
  ASSERT_THAT(lasting, IsOk());
  EXPECT_EQ(lasting->life, absl::InfiniteDuration());
  EXPECT_EQ(lasting->look_again, absl::Minutes(5));
}

TEST(AwsKeysTest, JsonAnswersWithMissingOrInvalidFieldsAreErrors) {
  const auto parse = [](const std::string& text) { return ParseAwsJson(text, "it", kNow); };
  EXPECT_THAT(parse("{}"), FailsWith(kDataLoss, HasSubstr("it has no access key ID")));
  EXPECT_THAT(parse(R"({"AccessKeyId": "id"})"),
              FailsWith(kDataLoss, HasSubstr("secret access key")));
  for (const char* bad : {"s3cr3t\\r\\nx: y", "s3cr3t\\u0000", "s3cr3t\\u00e9"}) {
    EXPECT_THAT(parse(absl::StrCat(R"({"AccessKeyId": "id", "SecretAccessKey": "k", "Token": ")",
                                   bad, "\"}")),
                FailsWith(kDataLoss, HasSubstr("session token")));
  }
  EXPECT_THAT(
      parse(R"({"AccessKeyId": "id", "SecretAccessKey": "s3cr3t", "Expiration": "s3cr3t"})"),
      FailsWith(kDataLoss, HasSubstr("date")));
  EXPECT_THAT(
      parse(R"({"Code": "AssumeRoleUnauthorizedAccess", "Message": "s3cr3t"})"),
      FailsWith(absl::StatusCode::kPermissionDenied, HasSubstr("(AssumeRoleUnauthorizedAccess)")));
  EXPECT_THAT(parse(R"({"Code": "s3cr3t!"})"),
              FailsWith(absl::StatusCode::kPermissionDenied, HasSubstr("has no keys;")));
}

std::string StsAnswer(const std::string& id, const std::string& date) {
  return absl::StrCat(
      "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">"
      "<AssumeRoleWithWebIdentityResult><Credentials>\n <AccessKeyId>",
      id,
      "</AccessKeyId>\n <SecretAccessKey>s3cr3t/+=</SecretAccessKey>"
      "<SessionToken>\n s3cr3t-token\n</SessionToken><Expiration>",
      date, "</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRole..>");
}

TEST(AwsKeysTest, AnswersOfStsBecomeKeys) {
  const absl::StatusOr<CredentialLease<AwsCredentials>> lease =
      ParseStsXml(StsAnswer("id", "1970-01-01T01:00:00Z"), "it", kNow);
  ASSERT_THAT(lease, IsOk());
  EXPECT_EQ(lease->value, (AwsCredentials{"id", "s3cr3t/+=", "s3cr3t-token"}));
  EXPECT_EQ(lease->life, absl::Hours(1));
}

TEST(AwsKeysTest, TruncatedInvalidAndTooLargeAnswersOfStsAreErrors) {
  const std::string good = StsAnswer("id", "1970-01-01T01:00:00Z");
  for (size_t size = 0; size < good.find("</Expiration>"); size += 7) {
    // The answer is cut before the end of the expiry date. It must be refused, because keys without
    // this date would be used for ever.
    const auto lease = ParseStsXml(good.substr(0, size), "it", kNow);
    EXPECT_THAT(lease, FailsWith(kDataLoss, HasSubstr("it has"))) << size;
  }
  for (const char* id : {"", "a<b/>c", "a&amp;b", "a,b", "a b"}) {
    EXPECT_THAT(ParseStsXml(StsAnswer(id, "1970-01-01T01:00:00Z"), "it", kNow),
                FailsWith(kDataLoss, HasSubstr("access key ID")));
  }
  EXPECT_THAT(ParseStsXml("<html>s3cr3t</html>", "it", kNow),
              FailsWith(kDataLoss, HasSubstr("access key ID")));
  EXPECT_THAT(ParseStsXml(std::string(kMaxJsonBytes + 1, ' '), "it", kNow),
              FailsWith(kTooLarge, HasSubstr("65537")));
}

TEST(GoogleTokensTest, AnAnswerNeedsAValidTokenAndItsLifetime) {
  const absl::StatusOr<CredentialLease<std::string>> lease = ParseGoogleToken(
      R"({"access_token": "ya29.s3cr3t...", "expires_in": 3599, "token_type": "Bearer"})", "it");
  ASSERT_THAT(lease, IsOk());
  EXPECT_EQ(lease->value, "ya29.s3cr3t...");
  EXPECT_EQ(lease->life, absl::Seconds(3599));
  EXPECT_THAT(ParseGoogleToken(R"({"expires_in": 3599})", "it"),
              FailsWith(kDataLoss, HasSubstr("no access token")));
  for (const char* bad : {"s3cr3t x", "s3cr3t\\nx"}) {
    EXPECT_THAT(ParseGoogleToken(
                    absl::StrCat(R"({"expires_in": 3599, "access_token": ")", bad, "\"}"), "it"),
                FailsWith(kDataLoss, HasSubstr("no access token")));
  }
  EXPECT_THAT(ParseGoogleToken(R"({"access_token": "s3cr3t"})", "it"),
              FailsWith(kDataLoss, HasSubstr("how many seconds")));
}

}  // namespace
}  // namespace systole
