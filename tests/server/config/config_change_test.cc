#include "server/config/config_change.h"

#include <iterator>
#include <string>
#include <vector>

#include "core/textproto/message_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_flags.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::ServerConfig ConfigOf(const std::string& text) {
  v1::ServerConfig config;
  EXPECT_THAT(ParseTextproto(text, "config", config), IsOk());
  absl::StatusOr<v1::ServerConfig> complete = CompleteConfig(config);
  EXPECT_THAT(complete, IsOk());
  return *std::move(complete);
}

ConfigChange Change(const std::string& before, const std::string& now) {
  return ChangeOf(ConfigOf(before), ConfigOf(now));
}

std::vector<std::string> NamesOf(const std::vector<v1::DatasetConfig>& datasets) {
  std::vector<std::string> names;
  for (const v1::DatasetConfig& dataset : datasets) names.push_back(dataset.name());
  return names;
}

TEST(ConfigChangeTest, DatasetsAreComparedByNameWhateverTheirOrder) {
  const ConfigChange change = Change(
      "datasets { name: 'a' shards: '/a' } datasets { name: 'b' shards: '/b' } "
      "datasets { name: 'c' shards: '/c' }",
      "datasets { name: 'd' shards: '/d' } datasets { name: 'c' shards: '/other' } "
      "datasets { name: 'a' shards: '/a' }");
  EXPECT_THAT(NamesOf(change.added), ElementsAre("d"));
  EXPECT_THAT(change.removed, ElementsAre("b"));
  EXPECT_THAT(change.changed, ElementsAre("c"));
  EXPECT_FALSE(change.access);
  EXPECT_THAT(change.fixed, IsEmpty());
}

TEST(ConfigChangeTest, ADatasetWithAnotherValueOfAnyFieldIsChanged) {
  const char* const parts[] = {"compression: GZIP", "expect_records: 1", "expect_bytes: 1",
                               "shards: '/more'", "columns: 'label'"};
  // All fields but the name.
  ASSERT_EQ(std::ssize(parts) + 1, v1::DatasetConfig::descriptor()->field_count());
  const std::string plain = "datasets { name: 'a' shards: '/a' ";
  for (const std::string part : parts) {
    SCOPED_TRACE(part);
    EXPECT_THAT(Change(plain + "}", plain + part + " }").changed, ElementsAre("a"));
    EXPECT_THAT(Change(plain + part + " }", plain + "}").changed, ElementsAre("a"));
    EXPECT_THAT(Change(plain + part + " }", plain + part + " }").changed, IsEmpty());
  }
}

TEST(ConfigChangeTest, ADefaultThatIsWrittenOutIsNoChange) {
  const ConfigChange change = Change("", "drain_timeout: '10s'");
  EXPECT_THAT(change.fixed, IsEmpty());
}

// A running server can change its datasets, and what its identities may do. `fixed` names all other
// changed fields.
TEST(ConfigChangeTest, FieldsThatARunningServerCannotChangeAreNamed) {
  EXPECT_THAT(Change("threads: 1", "threads: 2 tls { certificate: '/c' key: '/k' }").fixed,
              ElementsAre("tls", "threads"));
  const std::string access = "access { identities { name: 'a' ";
  EXPECT_THAT(Change("", access + "certificate_names: 'x' may { } } }").fixed,
              ElementsAre("access"));
  const ConfigChange users = Change(access + "unix_users: 'root' may { } } }",
                                    access + "unix_users: 'daemon' may { } } }");
  EXPECT_THAT(users.fixed, ElementsAre("access.identities.unix_users"));
  EXPECT_FALSE(users.access);
  const ConfigChange permissions = Change(access + "certificate_names: 'x' may { } } }",
                                          access + "certificate_names: 'x' may { read: '*' } } }");
  EXPECT_THAT(permissions.fixed, IsEmpty());
  EXPECT_TRUE(permissions.access);
}

}  // namespace
}  // namespace systole
