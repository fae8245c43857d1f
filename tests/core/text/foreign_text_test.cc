#include "core/text/foreign_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(ForeignTextTest, OrdinaryTextStaysAsItIs) {
  EXPECT_EQ(ForeignText(""), "");
  EXPECT_EQ(ForeignText("a-0.tfrecord, 'flowers' \\ \"x\""), "a-0.tfrecord, 'flowers' \\ \"x\"");
  EXPECT_EQ(ForeignText("Blüte 花 🌸"), "Blüte 花 🌸");
}

TEST(ForeignTextTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(ForeignText("a\n[error] b\r\tc"), "a\\n[error] b\\r\\tc");
  EXPECT_EQ(ForeignText(absl::string_view("\0\x1b[2J\x7f", 6)), "\\x00\\x1b[2J\\x7f");
  EXPECT_EQ(ForeignText("\u009b31m"), "\\xc2\\x9b31m");  // C1: begins an escape sequence.
}

TEST(ForeignTextTest, LineSeparatorsAndBidiMarksAreEscaped) {
  EXPECT_EQ(ForeignText("a\u2028b"), "a\\xe2\\x80\\xa8b");
  EXPECT_EQ(ForeignText("a\u202eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(ForeignText("a\u2066b\u200fc"), "a\\xe2\\x81\\xa6b\\xe2\\x80\\x8fc");
}

TEST(ForeignTextTest, InvalidUtf8BytesAreEscapedOneByOne) {
  EXPECT_EQ(ForeignText("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(ForeignText("\xc3("), "\\xc3(");
  EXPECT_EQ(ForeignText("\xc0\xaf"), "\\xc0\\xaf");                    // Overlong.
  EXPECT_EQ(ForeignText("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // Overlong.
  EXPECT_EQ(ForeignText("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // A surrogate.
  EXPECT_EQ(ForeignText("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // Beyond Unicode.
  EXPECT_EQ(ForeignText("\xe8\x8a"), "\\xe8\\x8a");                    // Cut short.
}

TEST(ForeignTextTest, LongTextIsCutAndSaysHowLongItWas) {
  EXPECT_EQ(ForeignText(std::string(40, 'x'), 40), std::string(40, 'x'));
  const std::string cut = ForeignText(std::string(3'000'000, 'x'), 40);
  EXPECT_EQ(cut, absl::StrCat(std::string(40 - 18, 'x'), "...(3000000 bytes)"));
  EXPECT_LE(ForeignText(std::string(1'000, '\n'), 50).size(), 50u);
  // Text is never cut inside a character or an escape.
  EXPECT_EQ(ForeignText(absl::StrCat(std::string(25, 'x'), "花花花花花花"), 40),
            absl::StrCat(std::string(25, 'x'), "...(43 bytes)"));
}

TEST(ForeignTextTest, EscapingTwiceEqualsEscapingOnce) {
  const std::string hostile = absl::StrCat("\n\x1b\xff\\", std::string(5'000, '\n'));
  EXPECT_EQ(ForeignText(ForeignText(hostile)), ForeignText(hostile));
  EXPECT_EQ(ForeignName(ForeignName(hostile)), ForeignName(hostile));
}

}  // namespace
}  // namespace systole
