#include "core/text/size_text.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::Optional;

TEST(SizeTextTest, ANumberIsBytesAndUnitsArePowersOf1024) {
  const std::pair<const char*, int64_t> cases[] = {
      {"0", 0},
      {"17", 17},
      {"17b", 17},
      {"3K", int64_t{3} << 10},
      {"512MB", int64_t{512} << 20},
      {"512mib", int64_t{512} << 20},
      {"4 GB", int64_t{4} << 30},
      {"64TB", int64_t{64} << 40},
      {"1PB", int64_t{1} << 50},
      {"9223372036854775807", std::numeric_limits<int64_t>::max()},
      {"8191PB", int64_t{8191} << 50},
  };
  for (const auto& [text, bytes] : cases) EXPECT_THAT(ParseSizeText(text), Optional(bytes)) << text;
}

TEST(SizeTextTest, InvalidSizesAreRefused) {
  for (const char* const text : {"", "MB", "-1", "1.5GB", "4GBs", "4 apples", "4i", "0x10", "4GB ",
                                 "8192PB", "9223372036854775808"}) {
    EXPECT_EQ(ParseSizeText(text), std::nullopt) << text;
  }
}

TEST(SizeTextTest, SizesAreWrittenInTheLargestUnitThatGivesAtLeastOne) {
  const std::pair<int64_t, const char*> cases[] = {
      {0, "0 bytes"},
      {1, "1 byte"},
      {1023, "1023 bytes"},
      {1536, "1.5 KB"},
      {(int64_t{1} << 20) - 1, "1.0 MB"},
      {int64_t{512} << 20, "512.0 MB"},
      {int64_t{120} * 1'000'000'000, "111.8 GB"},
      {std::numeric_limits<int64_t>::max(), "8192.0 PB"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(SizeText(bytes), text);
}

}  // namespace
}  // namespace systole
