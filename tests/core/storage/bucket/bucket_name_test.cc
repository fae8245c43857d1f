#include "core/storage/bucket/bucket_name.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/storage/byte_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(BucketNameTest, ANameIsSchemeBucketAndKeyAsTheyAreWritten) {
  for (const char* key : {"a", "d/a-0.tfrecord", "a b+c%20?x=1#y&z", "\xc3\xa4/\xe2\x82\xac",
                          "a//b", "/a", "./a/../b", "a:b@c", "*", ""}) {
    for (const char* scheme : {"s3", "gs"}) {
      const std::string name = absl::StrCat(scheme, "://bucket-1.x/", key);
      const absl::StatusOr<BucketName> parsed = ParseBucketName(name);
      ASSERT_THAT(parsed, IsOk()) << name;
      EXPECT_EQ(parsed->scheme, scheme);
      EXPECT_EQ(parsed->bucket, "bucket-1.x");
      EXPECT_EQ(parsed->key, key);
      EXPECT_EQ(parsed->Text(), name);
    }
  }
  EXPECT_EQ(ParseBucketName("s3://abc")->Text(), "s3://abc/");
}

TEST(BucketNameTest, InvalidBucketNamesAreRefused) {
  const std::string long_name(63, 'a');
  for (const std::string& name :
       {std::string("s3://"), std::string("s3:///a"), std::string("s3://ab/a"),
        "s3://" + long_name + "a/a", std::string("s3://Abc/a"), std::string("s3://a_b/a"),
        std::string("s3://-abc/a"), std::string("s3://abc-/a"), std::string("s3://a..b/a"),
        std::string("s3://.abc/a"), std::string("s3://a*c/a"), std::string("s3://a?c/a"),
        std::string("gs://a c/a"), "gs://" + long_name + "a/a", "gs://x." + long_name + "a/a"}) {
    EXPECT_THAT(ParseBucketName(name),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 to 63")))
        << name;
  }
  for (const std::string name : {"s3://abc/a", "s3://0.1/a", "gs://a_b/a"}) {
    EXPECT_THAT(ParseBucketName(name), IsOk()) << name;
  }
  EXPECT_THAT(ParseBucketName("s3://" + long_name + "/a"), IsOk());
  EXPECT_THAT(ParseBucketName(absl::StrCat("gs://", long_name, ".", long_name, "/a")), IsOk());
  EXPECT_THAT(ParseBucketName(absl::StrCat("s3://", long_name, ".", long_name, "/a")), Not(IsOk()));
}

TEST(BucketNameTest, KeysAreBoundedAndHaveNoControlCharacters) {
  EXPECT_THAT(ParseBucketName("s3://abc/" + std::string(1024, 'k')), IsOk());
  EXPECT_THAT(ParseBucketName("s3://abc/" + std::string(1025, 'k')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1025 bytes, want at most")));
  for (const char c : {'\n', '\r', '\x01', '\x7f', '\0'}) {
    EXPECT_THAT(ParseBucketName(absl::StrCat("s3://abc/a", std::string(1, c))),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("control character")));
  }
}

TEST(BucketNameTest, MalformedNamesBucketsAndFoldersAreRefusedWithTheReason) {
  for (const char* name : {"", "a", "s3", "gs", "gs:", "/a", "s3:/abc/a", "S3://abc/a",
                           "https://abc/a", "s3a://b/a"}) {
    EXPECT_THAT(ParseBucketName(name),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want s3://BUCKET/KEY")))
        << name;
  }
  EXPECT_THAT(CheckObjectName({.scheme = "s3", .bucket = "abc", .key = ""}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a bucket")));
  EXPECT_THAT(CheckObjectName({.scheme = "s3", .bucket = "abc", .key = "d/"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a folder")));
  EXPECT_THAT(CheckObjectName({.scheme = "s3", .bucket = "abc", .key = "d"}), IsOk());
}

TEST(BucketNameTest, CredentialsInANameAreRefusedAndNotShown) {
  for (const char* name : {"s3://ID:SECRET@bucket/a", "s3://ID:SEC/RET@bucket/a",
                           "gs://SECRET@bucket/a", "s3://ID:SECRET@bucket"}) {
    EXPECT_THAT(ParseBucketName(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("bucket"), HasSubstr("environment"), Not(HasSubstr("SEC")),
                               Not(HasSubstr("RET")))))
        << name;
    EXPECT_THAT(std::string(BaseName(name)), Not(HasSubstr("RET"))) << name;
  }
}

TEST(BucketNameTest, KeysAndQueriesArePercentEncoded) {
  EXPECT_EQ(EncodedKey("aZ09-._~/"), "aZ09-._~/");
  EXPECT_EQ(EncodedKey("a b+c%?#&=:@*"), "a%20b%2Bc%25%3F%23%26%3D%3A%40%2A");
  EXPECT_EQ(EncodedKey("\xc3\xa4\xff"), "%C3%A4%FF");
  EXPECT_EQ(EncodedQuery({{"prefix", "a/b c"}, {"list-type", "2"}, {"delimiter", "/"}}),
            "?delimiter=%2F&list-type=2&prefix=a%2Fb%20c");
}

TEST(BucketNameTest, DecodingUndoesEncoding) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(DecodedKey(EncodedKey(all)), all);
  EXPECT_EQ(DecodedKey("a+b%2Bc%2f"), "a b+c/");
  EXPECT_EQ(DecodedKey("%"), "%");
  EXPECT_EQ(DecodedKey("%4"), "%4");
  EXPECT_EQ(DecodedKey("%zz%41"), "%zzA");
}

}  // namespace
}  // namespace systole
