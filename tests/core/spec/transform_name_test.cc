#include "core/spec/transform_name.h"

#include <climits>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(TransformNameTest, NamesAreThoseOfTheSpec) {
  v1::FeedSpec spec;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "outputs { name: 'label' } "
      "outputs { name: 'image' transforms { decode_jpeg {} } transforms { random_crop {} } "
      "  transforms {} }",
      &spec));
  EXPECT_EQ(TransformName(spec, "image", 0), "decode_jpeg");
  EXPECT_EQ(TransformName(spec, "image", 1), "random_crop");
  EXPECT_EQ(TransformName(spec, "image", 2), "(empty)");
  for (const int index : {-1, 3, INT_MAX, INT_MIN}) {
    EXPECT_EQ(TransformName(spec, "image", index), "") << index;
  }
  EXPECT_EQ(TransformName(spec, "label", 0), "");
  EXPECT_EQ(TransformName(spec, "valid", 0), "");
}

}  // namespace
}  // namespace systole
