#include "core/record/images/packed_texts.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(PackedTextsTest, EachTextIsWhatWasAdded) {
  PackedTexts texts;
  EXPECT_EQ(texts.size(), 0u);
  for (const absl::string_view text : {"", "a", "", "etag \"1\"", ""}) texts.Add(text);
  ASSERT_EQ(texts.size(), 5u);
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[1], "a");
  EXPECT_EQ(texts[2], "");
  EXPECT_EQ(texts[3], "etag \"1\"");
  EXPECT_EQ(texts[4], "");
}

}  // namespace
}  // namespace systole
