#include "core/spec/where_columns.h"

#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "systole/v1/feed.pb.h"

namespace systole {
namespace {

v1::FeedSpec SpecOf(const std::string& text) {
  v1::FeedSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

TEST(WhereColumnsTest, AllFeaturesOfAllConditionsAreNamedOnce) {
  EXPECT_EQ(WhereColumns(SpecOf("dataset: 'a' select { take: 3 }")), "");
  const v1::FeedSpec spec = SpecOf(
      "mixture { dataset: 'a' select { where { feature: 'width' } } } mixture { dataset: 'b' } "
      "select { where { any { feature: 'label' } any { all { feature: 'a\\nb' } } } } "
      "select { where { feature: 'label' } }");
  EXPECT_EQ(WhereColumns(spec), "a\\nb,label,width");
  EXPECT_EQ(NoteAnewCommand(spec), "`systole index --columns a\\nb,label,width --rebuild`");
}

TEST(WhereColumnsTest, IndexCommandsForAZipUseFeatureNamesWithoutZipPrefixes) {
  const auto command = [](const std::string& features) {
    std::string text =
        "zip { dataset: 'photos' prefix: 'p/' } zip { dataset: 'depths' prefix: 'd/' } "
        "zip { dataset: 'photos' prefix: 'x/' } select { where { ";
    for (const char feature : features) {
      text += "all { feature: '" +
              std::string(feature == 'd'   ? "d/label"
                          : feature == 'x' ? "x/width"
                                           : "p/label") +
              "' } ";
    }
    return NoteAnewCommand(SpecOf(text + "} }"));
  };
  EXPECT_EQ(command("d"),
            "`systole index --columns label --rebuild` over the shards of dataset "
            "'depths'");
  EXPECT_EQ(command("x"),
            "`systole index --columns width --rebuild` over the shards of dataset "
            "'photos'");
  EXPECT_EQ(command("dlx"),
            "`systole index --columns label --rebuild` over the shards of dataset 'depths' and "
            "`systole index --columns label,width --rebuild` over the shards of dataset 'photos'");
}

// The spec of a zip does not say which of the datasets has a feature.
TEST(WhereColumnsTest, IndexCommandsNameEveryZipDatasetThatMayHaveTheFeature) {
  const auto command = [](const std::string& zip, const std::string& feature) {
    return NoteAnewCommand(SpecOf(zip + " select { where { feature: '" + feature + "' } }"));
  };
  EXPECT_EQ(command("zip { dataset: 'photos' } zip { dataset: 'labels' }", "label"),
            "`systole index --columns label --rebuild` over the shards of dataset 'photos' or "
            "'labels', whichever has it");
  EXPECT_EQ(command("zip { dataset: 'a' prefix: 'x/' } zip { dataset: 'b' prefix: 'x/' } "
                    "zip { dataset: 'c' prefix: 'x/' }",
                    "x/label"),
            "`systole index --columns label --rebuild` over the shards of dataset 'a', 'b' or 'c', "
            "whichever has it");
  // A dataset that is in the zip twice is named once.
  EXPECT_EQ(command("zip { dataset: 'a' prefix: 'x/' } zip { dataset: 'a' prefix: 'x/' }", "x/y"),
            "`systole index --columns y --rebuild` over the shards of dataset 'a'");
  // 'photos' has no prefix, but it may have a feature whose own name is "d/label".
  EXPECT_EQ(command("zip { dataset: 'photos' } zip { dataset: 'depths' prefix: 'd/' }", "d/label"),
            "`systole index --columns label --rebuild` over the shards of dataset 'depths', or "
            "`systole index --columns d/label --rebuild` over the shards of dataset 'photos', "
            "whichever has it");
}

}  // namespace
}  // namespace systole
