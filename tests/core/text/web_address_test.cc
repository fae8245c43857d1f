#include "core/text/web_address.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(WebAddressTest, AnHttpSchemeInAnyCaseMakesAWebAddressEvenIfMalformed) {
  for (const char* name : {"https://host/a", "http://host/a", "HTTPS://host/a", "hTTp://host",
                           "https:/host/a", "http:host", " https://host", "\n'https://host'"}) {
    EXPECT_TRUE(IsWebAddress(name)) << name;
  }
  for (const char* name : {"", "https", "a/https://host", "./https://host", "httpsx://host",
                           "/data/a", "mem://a", "gs://bucket/a"}) {
    EXPECT_FALSE(IsWebAddress(name)) << name;
  }
}

TEST(WebAddressTest, PartsThatHoldNoSecretAreShown) {
  EXPECT_EQ(ShownAddress("https://host:8080/dir/a.tfrecord"), "https://host:8080/dir/a.tfrecord");
  EXPECT_EQ(ShownAddress("http://[::1]:80/a?x@y"), "http://[::1]:80/a");
  EXPECT_EQ(ShownAddress("https://host:80a/a"), "https://host:80a/a");
  EXPECT_EQ(ShownAddress("https://host/a?mail=x@y"), "https://host/a");
  EXPECT_EQ(ShownAddress("HTTPS://Host/a"), "HTTPS://Host/a");
  EXPECT_EQ(ShownAddress("gs://bucket/a-*.tfrecord"), "gs://bucket/a-*.tfrecord");
  EXPECT_EQ(ShownAddress("file:///data/a"), "file:///data/a");
  EXPECT_EQ(ShownAddress("https://host"), "https://host");
  EXPECT_EQ(ShownAddress("/dir/a"), "/dir/a");
  EXPECT_EQ(ShownAddress("a://b"), "a://b");
  EXPECT_EQ(ShownAddress(""), "");
}

TEST(WebAddressTest, UserPasswordQueryAndFragmentAreNotShown) {
  for (const char* address :
       {"https://host/a?secret", "https://host/a#secret", "https://secret@host/a",
        "https://user:secret@host/a", "https://user:p@secret@host/a", "HTTPS://user:secret@host/a",
        " https://user:secret@host/a", "https:/user:secret@host/a", "https:user:secret@host/a",
        "https:///user:secret@host/a", "https:\\\\user:secret@host\\a", "s3://user:secret@host/a",
        "//user:secret@host/a", "secret:/secret@host/a", "user:secret@host/a?secret",
        "https://user:secret@", "/a?secret"}) {
    EXPECT_THAT(ShownAddress(address), Not(HasSubstr("secret"))) << address;
    EXPECT_THAT(std::string(AddressBaseName(address)), Not(HasSubstr("secret"))) << address;
  }
  EXPECT_EQ(ShownAddress("https://user:secret@host:81/a?sig=secret#x"), "https://...@host:81/a");
}

// In a password, '/', '?' and '#' must be percent-encoded. In these addresses they are not.
TEST(WebAddressTest, APasswordWithUnescapedDelimitersIsNotShown) {
  for (const char* address : {"https://user:secret/x@host/a", "https://user:x/secret@host/a",
                              "https://user:secret?x@host/a", "https://user:secret#x@host/a",
                              "https://user:7/secret@host/a", "https://user:7/secret/x@host/a",
                              "https://u:a@secret:x/y@host/a", "https://u:secret/x?y@host/a",
                              "https://u:x/secret?y@host/a"}) {
    EXPECT_THAT(ShownAddress(address), Not(HasSubstr("secret"))) << address;
    EXPECT_THAT(std::string(AddressBaseName(address)), Not(HasSubstr("secret"))) << address;
  }
  EXPECT_EQ(ShownAddress("https://user:sec/ret@host/a"), "https://...@host/a");
  EXPECT_EQ(ShownAddress("https://user:sec?ret@host/a"), "https://...");
  // This address has no password. But it has the same form as the addresses above, so its host is
  // hidden, too.
  EXPECT_EQ(ShownAddress("https://host/a@b.tfrecord"), "https://...@b.tfrecord");
}

TEST(WebAddressTest, TheBaseNameIsTheLastPartOfThePathOrTheHost) {
  EXPECT_EQ(AddressBaseName("https://host/dir/a.tfrecord?sig=x/y"), "a.tfrecord");
  EXPECT_EQ(AddressBaseName("https://host:80/dir/a@b.tfrecord?x@y"), "a@b.tfrecord");
  EXPECT_EQ(AddressBaseName("https://user:secret@host/a#x/y"), "a");
  EXPECT_EQ(AddressBaseName("https://user:secret@host"), "host");
  EXPECT_EQ(AddressBaseName("https://user:se/cret@host"), "host");
  EXPECT_EQ(AddressBaseName("https://host"), "host");
  EXPECT_EQ(AddressBaseName("https://host/dir/"), "");
  EXPECT_EQ(AddressBaseName("https://"), "");
  const absl::string_view hidden = "https://user:secret?x@host/a";
  EXPECT_EQ(AddressBaseName(hidden), "");
  // Even an empty name must be a view into the address, because callers use the text before the
  // view as the folder.
  EXPECT_GE(AddressBaseName(hidden).data(), hidden.data());
  EXPECT_LE(AddressBaseName(hidden).data(), hidden.data() + hidden.size());
}

TEST(WebAddressTest, BucketAddressesHoldSecretsOnlyIfKeysPrecedeTheBucket) {
  for (const char* name :
       {"s3://bucket/a", "gs://my_bucket.x/a@b:c?d#e", "s3://bucket", "a", "/a@b", "mem://a:b@c/d",
        "./s3://a:b@c/d", "s3", "gs", "s3a", "s3a://bucket/a@b"}) {
    EXPECT_FALSE(MayHoldSecrets(name)) << name;
  }
  for (const char* name :
       {"s3://ID:SECRET@bucket/a", "S3://ID:SECRET@bucket/a", "gs://SECRET@bucket/a",
        "s3://ID:SEC/RET@bucket/a", " 's3://ID:SECRET@bucket/a", "s3:/ID:SECRET@bucket/a",
        "s3:ID:SECRET@bucket/a", "s3://ID:SECRET@bucket", "s3a://ID:SECRET@bucket/a",
        "S3N://ID:SEC/RET@bucket/a", "https://host/a", "HTTP:a"}) {
    EXPECT_TRUE(MayHoldSecrets(name)) << name;
    const std::string shown = ShownAddress(name);
    EXPECT_EQ(shown.find("SEC"), std::string::npos) << shown;
    EXPECT_EQ(AddressBaseName(name).find("RET"), absl::string_view::npos) << name;
  }
  EXPECT_TRUE(IsBucketName("s3://bucket/a"));
  EXPECT_TRUE(IsBucketName("gs://bucket/a"));
  EXPECT_FALSE(IsBucketName("https://bucket/a"));
  EXPECT_FALSE(IsBucketName("./s3://bucket/a"));
}

}  // namespace
}  // namespace systole
