#include "core/image/png/png_unfilter.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

// The Paeth predictor as the PNG specification defines it.
int PaethPredictor(int a, int b, int c) {
  const int p = a + b - c;
  const int pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  if (pa <= pb && pa <= pc) return a;
  return pb <= pc ? b : c;
}

void UnfilterByDefinition(uint8_t* rows, size_t count, size_t row_bytes, size_t pixel_bytes) {
  for (size_t y = 0; y < count; ++y, rows += row_bytes + 1) {
    uint8_t* const row = rows + 1;
    const uint8_t* const above = rows - row_bytes;
    for (size_t i = 0; i < row_bytes; ++i) {
      const int a = i < pixel_bytes ? 0 : row[i - pixel_bytes];
      const int b = above[i];
      const int c = i < pixel_bytes ? 0 : above[i - pixel_bytes];
      const int predicted[] = {0, a, b, (a + b) / 2, PaethPredictor(a, b, c)};
      row[i] = static_cast<uint8_t>(row[i] + predicted[*rows]);
    }
  }
}

// A first row and `count` rows below it, with each filter in turn.
std::vector<uint8_t> FilteredRows(size_t count, size_t row_bytes, uint32_t values) {
  std::vector<uint8_t> rows;
  uint32_t x = 1;
  for (size_t i = 0; i < (count + 1) * (row_bytes + 1); ++i) {
    x = x * 1664525u + 1013904223u;
    rows.push_back(static_cast<uint8_t>((x >> 16) % values));
  }
  for (size_t y = 0; y <= count; ++y) rows[y * (row_bytes + 1)] = static_cast<uint8_t>(y % 5);
  rows.resize(rows.size() + kUnfilterPadding, 0xee);
  return rows;
}

TEST(UnfilterTest, EveryTargetFollowsTheDefinition) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (const size_t pixel_bytes : {1, 2, 3, 4, 6, 8}) {
      for (const size_t width : {1, 2, 3, 7, 64, 1000}) {
        for (const uint32_t values : {256, 7, 2}) {  // With few values, many predictors are equal.
          const size_t count = 60, row_bytes = width * pixel_bytes;
          std::vector<uint8_t> rows = FilteredRows(count, row_bytes, values);
          std::vector<uint8_t> expected = rows;
          UnfilterByDefinition(&expected[row_bytes + 1], count, row_bytes, pixel_bytes);
          ASSERT_TRUE(UnfilterRows(&rows[row_bytes + 1], count, row_bytes, pixel_bytes));
          ASSERT_EQ(rows, expected)
              << width << " pixels of " << pixel_bytes << " bytes, " << values << " values";
        }
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(UnfilterTest, AnUnknownFilterIsRefused) {
  for (const int filter : {5, 6, 255}) {
    std::vector<uint8_t> rows = FilteredRows(3, 12, 256);
    rows[2 * 13] = static_cast<uint8_t>(filter);
    EXPECT_FALSE(UnfilterRows(&rows[13], 3, 12, 3)) << filter;
  }
}

}  // namespace
}  // namespace systole
