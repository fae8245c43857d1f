#include "server/config/config_flags.h"

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/compression/chunk_cache.h"
#include "core/compression/compression.h"
#include "core/log/event_log.h"
#include "core/textproto/message_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/feed_service.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

v1::ServerConfig ConfigOf(const std::string& text) {
  v1::ServerConfig config;
  EXPECT_THAT(ParseTextproto(text, "config", config), IsOk());
  return config;
}

const ConfigFlag& FlagOf(absl::string_view field) {
  for (const ConfigFlag& flag : ConfigFlags()) {
    if (flag.field == field) return flag;
  }
  ADD_FAILURE() << field;
  return ConfigFlags()[0];
}

// Two different values of `flag`, neither of which is the default.
std::vector<std::string> ValuesOf(const ConfigFlag& flag) {
  if (flag.is_switch()) return {"true", "false"};
  if (flag.about->folder()) return {"/", "/tmp"};
  if (flag.value->enum_type() != nullptr) return {"gzip", "zstd"};
  if (flag.about->choices_size() > 0) return {flag.about->choices(0), flag.about->choices(1)};
  if (!flag.about->least().empty()) return {flag.about->least(), flag.about->most()};
  return {"one", "other"};
}

TEST(ConfigFlagsTest, EveryConfigFieldExceptAccessHasAFlag) {
  std::set<std::string> marked;
  for (const ConfigFlag& flag : ConfigFlags()) {
    marked.insert(flag.inside != nullptr ? flag.inside->name() : flag.field);
  }
  std::vector<std::string> unmarked;
  for (int i = 0; i < v1::ServerConfig::descriptor()->field_count(); ++i) {
    const std::string& name = v1::ServerConfig::descriptor()->field(i)->name();
    if (marked.count(name) == 0) unmarked.push_back(name);
  }
  // `access` has no flag, because identities and their permissions are too long for a command line.
  EXPECT_THAT(unmarked, ElementsAre("access"));
}

TEST(ConfigFlagsTest, EveryFlagHasAUniqueNameAndAHelpText) {
  std::set<std::string> names;
  for (const ConfigFlag& flag : ConfigFlags()) {
    SCOPED_TRACE(flag.field);
    EXPECT_TRUE(names.insert(flag.name).second);
    EXPECT_FALSE(flag.about->help().empty());
    EXPECT_FALSE(absl::EndsWith(flag.about->help(), "."));
    EXPECT_EQ(flag.about->value().empty(), flag.is_switch());
    // Without field presence, a field that is left out would look like an empty field.
    EXPECT_TRUE(flag.is_list() || flag.value->has_presence());
  }
}

TEST(ConfigFlagsTest, BoundsAndDefaultsOfFlagsAreValidValues) {
  for (const ConfigFlag& flag : ConfigFlags()) {
    SCOPED_TRACE(flag.field);
    const bool measured = flag.about->value() == "TIME" || flag.about->value() == "SIZE" ||
                          flag.about->value() == "N";
    EXPECT_EQ(measured, !flag.about->least().empty());
    EXPECT_EQ(measured, !flag.about->most().empty());
    for (const std::string& text :
         {flag.about->least(), flag.about->most(), flag.about->default_value()}) {
      if (text.empty()) continue;
      EXPECT_THAT(CheckFlagText(flag, text), IsOk()) << text;
    }
  }
}

TEST(ConfigFlagsTest, AFlagOverridesTheFileAndTheFileOverridesTheDefault) {
  for (const ConfigFlag& flag : ConfigFlags()) {
    if (flag.is_list()) continue;
    SCOPED_TRACE(flag.field);
    for (const std::string& value : ValuesOf(flag)) ASSERT_THAT(CheckFlagText(flag, value), IsOk());
    v1::ServerConfig file;
    v1::ServerConfig flags;
    SetFlag(flag, ValuesOf(flag)[0], file);
    SetFlag(flag, ValuesOf(flag)[1], flags);
    const std::string wanted = flags.DebugString();
    EXPECT_NE(file.DebugString(), wanted);
    v1::ServerConfig both = file;
    Override(flags, both);
    EXPECT_EQ(both.DebugString(), wanted);
    Override({}, file);
    EXPECT_NE(file.DebugString(), wanted);
    const absl::StatusOr<v1::ServerConfig> complete = CompleteConfig(flags);
    ASSERT_THAT(complete, IsOk());
    v1::ServerConfig again = *complete;
    Override(flags, again);
    EXPECT_EQ(again.DebugString(), complete->DebugString());
  }
}

TEST(ConfigFlagsTest, AConfigFileTakesTimesAndSizesWithUnits) {
  const absl::StatusOr<v1::ServerConfig> config =
      CompleteConfig(ConfigOf("drain_timeout: '1m30s' memory_budget: '2GB' read_timeout: '7'"));
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(TimeOf(config->drain_timeout()), absl::Seconds(90));
  EXPECT_EQ(TimeOf(config->read_timeout()), absl::Seconds(7));
  EXPECT_EQ(SizeOf(config->memory_budget()), int64_t{2} << 30);
}

TEST(ConfigFlagsTest, AnInvalidValueIsRefusedAlikeInAConfigFileAndAsAFlag) {
  const auto expect_refused = [](const std::string& field, const std::string& text,
                                 const std::string& wanted) {
    const std::string refusal = absl::StrCat("'", text, "', want ", wanted);
    EXPECT_THAT(CheckFlagText(FlagOf(field), text), StatusIs(kInvalid, refusal));
    const bool is_number = field == "threads" || field == "compression";
    const std::string quote = is_number ? "" : "'";
    EXPECT_THAT(CompleteConfig(ConfigOf(absl::StrCat(field, ": ", quote, text, quote))),
                StatusIs(kInvalid, absl::StrCat(field, ": ", refusal)));
  };
  expect_refused("drain_timeout", "25h", "0 to 24h");
  expect_refused("drain_timeout", "3 apples", "a time, such as 3s or 500ms");
  expect_refused("memory_budget", "1", "1MB to 64TB");
  expect_refused("memory_budget", "much", "a size, such as 512MB or 4GB");
  expect_refused("threads", "0", "1 to 1024");
  expect_refused("log_level", "loud", "one of: debug, info, warn, error");
  expect_refused("compression", "9", "one of: detect, none, gzip, zlib, zstd");
  expect_refused("index_dir", "/no/such/folder", "an existing folder");
}

TEST(ConfigFlagsTest, AFlagThatIsRefusedIsShownWithoutTheSecretsOfAnAddress) {
  for (const ConfigFlag& flag : ConfigFlags()) {
    if (!flag.is_list()) continue;
    for (const char* text : {"https://user:SECRET@host/a", "=https://user:SECRET@host/a?SECRET",
                             "photos-http: HTTPS://host/a?SECRET"}) {
      EXPECT_THAT(std::string(CheckFlagText(flag, text).message()),
                  AllOf(HasSubstr("NAME=GLOB"), HasSubstr("host/a"), Not(HasSubstr("SECRET"))))
          << text;
    }
  }
}

TEST(ConfigFlagsTest, DatasetsOfFlagsAreMergedByNameWithThoseOfTheFile) {
  v1::ServerConfig config = ConfigOf("datasets { name: 'a' shards: '1' compression: ZLIB }");
  v1::ServerConfig flags;
  for (const char* const text : {"a=2", "b=3", "b=4=5"}) {
    ASSERT_THAT(CheckFlagText(FlagOf("datasets"), text), IsOk());
    SetFlag(FlagOf("datasets"), text, flags);
  }
  SetFlag(FlagOf("compression"), "ZSTD", flags);
  Override(flags, config);
  const absl::StatusOr<v1::ServerConfig> complete = CompleteConfig(config);
  ASSERT_THAT(complete, IsOk());
  ASSERT_EQ(complete->datasets_size(), 2);
  EXPECT_THAT(complete->datasets(0).shards(), ElementsAre("1", "2"));
  EXPECT_EQ(complete->datasets(0).compression(), v1::DatasetConfig::ZLIB);
  EXPECT_THAT(complete->datasets(1).shards(), ElementsAre("3", "4=5"));
  EXPECT_EQ(complete->datasets(1).compression(), v1::DatasetConfig::ZSTD);
  for (const char* const text : {"a", "=a", "a=", ""}) {
    EXPECT_THAT(CheckFlagText(FlagOf("datasets"), text), StatusIs(kInvalid, HasSubstr("NAME=GLOB")))
        << text;
  }
}

TEST(ConfigFlagsTest, ConfigDefaultsMatchTheDefaultsInTheCode) {
  const absl::StatusOr<v1::ServerConfig> config = CompleteConfig({});
  ASSERT_THAT(config, IsOk());
  const FeedServiceOptions service;
  EXPECT_EQ(TimeOf(config->read_timeout()), service.engine.read_timeout);
  EXPECT_EQ(SizeOf(config->memory_budget()), service.engine.memory_budget_bytes);
  EXPECT_EQ(TimeOf(config->stalled_stream_timeout()), service.stalled_stream_timeout);
  EXPECT_EQ(SizeOf(config->decompression_cache()), ChunkCache::kDefaultBytes);
  const ConfigFlag& level = FlagOf("log_level");
  EXPECT_THAT(level.about->choices(), testing::ElementsAreArray(kLogLevelNames));
  for (const absl::string_view name : CompressionNames()) {
    EXPECT_THAT(CheckFlagText(FlagOf("compression"), name), IsOk());
  }
}

}  // namespace
}  // namespace systole
