#include "core/numeric/value_table.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;

// The entry of channel c for value x.
float Entry(int64_t c, int64_t x) { return static_cast<float>(x * x) / 7 - static_cast<float>(c); }

std::vector<float> Entries(int channels) {
  std::vector<float> entries;
  for (int c = 0; c < channels; ++c) {
    for (int x = 0; x < kTableEntries; ++x) entries.push_back(Entry(c, x));
  }
  return entries;
}

std::string BytesOf(float value, PixelType type) {
  std::string bytes(PixelTypeBytes(type), '\0');
  const uint16_t narrow = type == PixelType::kFloat16 ? RoundToFloat16(value) : RoundToBf16(value);
  std::memcpy(bytes.data(),
              type == PixelType::kFloat32 ? static_cast<const void*>(&value) : &narrow,
              bytes.size());
  return bytes;
}

TEST(ValueTableTest, PiecesOfAnyLengthAreLookedUpForEveryTypeAndChannelCount) {
  for (const PixelType type : {PixelType::kFloat32, PixelType::kBfloat16, PixelType::kFloat16}) {
    for (const int channels : {1, 3, 4, 8}) {
      for (const int64_t inner : {1, 5, 300}) {
        const auto table = ValueTable::Create(Entries(channels), inner, type);
        ASSERT_THAT(table, IsOk());
        std::vector<uint8_t> in(static_cast<size_t>(2 * inner * channels + 7));
        std::string wanted;
        for (size_t i = 0; i < in.size(); ++i) {
          in[i] = static_cast<uint8_t>(i * 37 + 5);
          wanted += BytesOf(Entry(static_cast<int64_t>(i) / inner % channels, in[i]), type);
        }
        for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, in.size()}) {
          // The output begins one byte off, because any alignment is allowed.
          std::string out(wanted.size() + 1, '\x55');
          for (size_t at = 0; at < in.size(); at += piece) {
            table->Apply(static_cast<int64_t>(at), absl::MakeSpan(in).subspan(at, piece),
                         reinterpret_cast<uint8_t*>(&out[1 + at * PixelTypeBytes(type)]));
          }
          ASSERT_TRUE(out.substr(1) == wanted) << channels << " " << inner << " " << piece;
          EXPECT_EQ(out[0], '\x55');
        }
      }
    }
  }
}

// Any float is valid in an entry. All NaNs become the same NaN.
TEST(ValueTableTest, InfinitiesAndNansAreAcceptedAndNansBecomeCanonical) {
  std::vector<float> entries(kTableEntries, std::numeric_limits<float>::infinity());
  entries[1] = std::bit_cast<float>(0xffc12345);
  const auto table = ValueTable::Create(entries, 1, PixelType::kFloat32);
  ASSERT_THAT(table, IsOk());
  uint32_t out[2];
  table->Apply(0, {0, 1}, reinterpret_cast<uint8_t*>(out));
  EXPECT_EQ(out[0], 0x7f800000u);
  EXPECT_EQ(out[1], 0x7fc00000u);
}

TEST(ValueTableTest, InvalidEntryCountsInnerSizesAndUint8OutputAreRefused) {
  for (const size_t entries : {0, 1, 255, 257, 256 * 9}) {
    EXPECT_THAT(
        ValueTable::Create(std::vector<float>(entries), 1, PixelType::kFloat32),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want 256 for each of 1 to 8")))
        << entries;
  }
  EXPECT_THAT(ValueTable::Create(Entries(1), 0, PixelType::kFloat32),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inner is 0")));
  EXPECT_THAT(ValueTable::Create(Entries(1), 1, PixelType::kUint8),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not uint8")));
}

}  // namespace
}  // namespace systole
