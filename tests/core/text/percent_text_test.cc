#include "core/text/percent_text.h"

#include <string>

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(PercentTextTest, PercentEscapesAreDecodedOnce) {
  EXPECT_EQ(PercentDecoded(""), "");
  EXPECT_EQ(PercentDecoded("a b+c"), "a b+c");
  EXPECT_EQ(PercentDecoded("%C3%a9clair%20"),
            "\xc3\xa9"
            "clair ");
  EXPECT_EQ(PercentDecoded("%00%2f"), std::string("\0/", 2));
  EXPECT_EQ(PercentDecoded("%2541"), "%41");  // Decoded once.
}

TEST(PercentTextTest, MalformedPercentEscapesStayAsTheyAre) {
  for (const char* text : {"%", "%4", "a%", "%g1", "%1g", "%%"}) {
    EXPECT_EQ(PercentDecoded(text), text);
  }
}

}  // namespace
}  // namespace systole
