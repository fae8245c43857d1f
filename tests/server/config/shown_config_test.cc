#include "server/config/shown_config.h"

#include <string>

#include "core/textproto/message_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::ServerConfig ConfigOf(const std::string& text) {
  v1::ServerConfig config;
  EXPECT_THAT(ParseTextproto(text, "config", config), IsOk());
  return config;
}

TEST(ShownConfigTest, SecretsInAddressesAreRemovedFromShardsAndOtherFields) {
  const std::string shown = ShownConfig(ConfigOf(R"(
      datasets {
        name: "a"
        shards: "https://bucket.example/a-0.tfrecord?X-Amz-Signature=SECRET&X-Amz-Credential=SECRET"
        shards: "https://me:SECRET@host.example/a-1.tfrecord"
        shards: "s3://ID:SECRET@bucket/a-2.tfrecord"
        shards: "  'https://host.example/a-3.tfrecord?sig=SECRET"
        shards: "data/a-4.tfrecord"
      }
      index_dir: "https://host.example/idx?sig=SECRET"
      access {
        token_file: "/etc/systole/tokens"
        identities { name: "i" token_names: "https://x.example/?SECRET" may { read: "a" } }
      })"));
  EXPECT_THAT(shown, Not(HasSubstr("SECRET")));
  EXPECT_THAT(shown, HasSubstr("https://bucket.example/a-0.tfrecord\""));
  EXPECT_THAT(shown, HasSubstr("https://...@host.example/a-1.tfrecord\""));
  EXPECT_THAT(shown, HasSubstr("\"data/a-4.tfrecord\""));
  EXPECT_THAT(shown, HasSubstr("token_file: \"/etc/systole/tokens\""));
}

TEST(ShownConfigTest, AConfigWithoutSecretsIsShownUnchanged) {
  const v1::ServerConfig config = ConfigOf(
      "datasets { name: 'a' shards: 's3://bucket/a-*.tfrecord' expect_records: 3 } threads: 4 "
      "insecure: true compression: GZIP tls { key: 'k' }");
  EXPECT_EQ(ConfigOf(ShownConfig(config)).SerializeAsString(), config.SerializeAsString());
}

}  // namespace
}  // namespace systole
