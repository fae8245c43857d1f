#include "core/spec/transform_runs.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::FeedSpec Spec() {
  v1::FeedSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "outputs { name: 'image' transforms { decode_jpeg {} } transforms { resize {} } transforms { "
      "contrast {} } transforms { normalize {} } transforms { rot90 {} } } outputs { name: 'label' "
      "} "
      "outputs { name: 'other' transforms { decode_raw {} } }",
      &spec));
  return spec;
}

TEST(TransformRunsTest, EachOutputWithTransformsHasALine) {
  const std::string text = ExplainRuns(
      Spec(), {{v1::FUSED, v1::FUSED, v1::BY_ROW, v1::BY_ROW, v1::ALONE}, {}, {v1::FUSED}});
  EXPECT_THAT(text, StartsWith("image: fused: decode_jpeg, resize; by row: contrast, normalize; "
                               "alone: rot90\nother: fused: decode_raw\n\n"));
  EXPECT_THAT(text, HasSubstr("\nfused: "));
  EXPECT_THAT(text, HasSubstr("\nby row: "));
  EXPECT_THAT(text, HasSubstr("\nalone: "));
}

TEST(TransformRunsTest, RunsOfUnknownKindOrWrongCountAreExplainedAsNotKnown) {
  const auto unknown = static_cast<v1::TransformRun>(1000);
  EXPECT_THAT(ExplainRuns(Spec(), {{v1::FUSED}, {v1::FUSED, v1::FUSED}, {unknown}}),
              StartsWith("image: not known: decode_jpeg, resize, contrast, normalize, rot90\n"
                         "other: not known: decode_raw\n\n"));
  EXPECT_THAT(ExplainRuns(Spec(), {}), StartsWith("image: not known: decode_jpeg"));
}

TEST(TransformRunsTest, AFeedWithoutTransformsIsExplainedByEmptyText) {
  v1::FeedSpec spec;
  spec.add_outputs()->set_name("label");
  EXPECT_EQ(ExplainRuns(spec, {{}}), "");
}

}  // namespace
}  // namespace systole
