#include "core/storage/stores/store_table.h"

#include <set>
#include <string>

#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(StoreTableTest, SchemesAreUniqueAndEachFindsItsStore) {
  std::set<std::string> schemes;
  for (const StoreRow& row : StoreTable()) {
    EXPECT_TRUE(schemes.insert(std::string(row.scheme)).second) << row.scheme;
    const std::string name =
        row.scheme.empty() ? std::string("a") : std::string(row.scheme) + "://a";
    EXPECT_THAT(StoreOf(name), IsOkAndHolds(&row.store())) << name;
  }
}

TEST(StoreTableTest, ASchemeHasOnlyLettersDigitsPlusMinusAndDot) {
  EXPECT_EQ(SchemeOf("gs://a"), "gs");
  EXPECT_EQ(SchemeOf("a+b-c.2://x"), "a+b-c.2");
  EXPECT_EQ(SchemeOf("x://y://z"), "x");
  for (const char* name :
       {"", "a", "a:b", "a:/b", "://a", "./gs://a", "/gs://a", "a b://c", "g*://a", "gs:a//b"}) {
    EXPECT_EQ(SchemeOf(name), "") << name;
  }
}

TEST(StoreTableTest, AnUnknownSchemeIsRefusedWithTheKnownOnesAndTheRemedy) {
  for (const char* url : {"az://bucket/a-*.tfrecord", "S3://bucket/a", "ftp://host/a.tfrecord",
                          "file:///data/a.tfrecord", "MEM://a"}) {
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(url), HasSubstr("mount the store as a folder or copy")));
    EXPECT_THAT(StoreOf(url), refused);
    EXPECT_THAT(OpenStored(url), refused);
    EXPECT_THAT(PutStored(url, ""), refused);
    for (const StoreRow& row : StoreTable()) {
      EXPECT_THAT(StoreOf(url).status().message(), HasSubstr(row.called));
    }
  }
}

TEST(StoreTableTest, ARefusedUrlIsShownWithoutItsSecrets) {
  for (const char* url :
       {"az://user:secret@bucket/a", "HTTPS://host/a?secret", "ftp://host/a#secret"}) {
    EXPECT_THAT(std::string(StoreOf(url).status().message()), Not(HasSubstr("secret"))) << url;
  }
}

}  // namespace
}  // namespace systole
