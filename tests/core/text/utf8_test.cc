#include "core/text/utf8.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(IsUtf8Test, IsRightAtTheBoundsOfEachSequenceLength) {
  for (const char* good :
       {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xc1\xbf", "\xc2", "\xc2\xc0", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe1\x80",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf1\x80\x80", "a\xff"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

TEST(Utf8SequenceBytesTest, ReturnsLengthAndCodePointOfTheFirstCharacter) {
  uint32_t code_point = 0;
  EXPECT_EQ(Utf8SequenceBytes("a\xff", code_point), 1);
  EXPECT_EQ(code_point, 'a');
  EXPECT_EQ(Utf8SequenceBytes("\xe2\x82\xac is a euro", code_point), 3);
  EXPECT_EQ(code_point, 0x20ac);
  EXPECT_EQ(Utf8SequenceBytes("\xff", code_point), 0);
}

}  // namespace
}  // namespace systole
