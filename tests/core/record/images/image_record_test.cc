#include "core/record/images/image_record.h"

#include <string>

#include "core/example/example_builder.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

// From 128 bytes on, and from 16,384 bytes on, a length in the record takes one more byte.
TEST(ImageRecordTest, AnImageRecordEqualsTheSerializedExample) {
  for (const size_t bytes : {0, 1, 100, 127, 128, 16'000, 16'383, 16'384, 3'000'000}) {
    const std::string image(bytes, 'x');
    for (const int64_t label : {0, 200}) {
      EXPECT_EQ(ImageRecord(image, {.name = "rose", .label = label},
                            {.height = 30, .width = 4000, .channels = 1}),
                ExampleBuilder()
                    .AddBytes("image", image)
                    .AddBytes("class", "rose")
                    .AddInt64s("label", {label})
                    .AddInt64s("size", {30, 4000, 1})
                    .Serialize());
    }
  }
}

}  // namespace
}  // namespace systole
