#include "client/texture/photograph_texture.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace systole {
namespace {

PhotographTexture Draw(uint64_t seed, int width, int height) {
  CounterRng rng(seed, /*epoch=*/0, /*record=*/0, /*purpose=*/0);
  return DrawPhotographTexture(rng, width, height);
}

// The mean absolute value, and the mean absolute difference between neighbours in a row.
struct Roughness {
  double size = 0;
  double step = 0;
};
Roughness RoughnessOf(const std::vector<float>& values, int width) {
  Roughness roughness;
  for (size_t i = 1; i < values.size(); ++i) {
    roughness.size += std::abs(values[i]);
    if (i % static_cast<size_t>(width) != 0) roughness.step += std::abs(values[i] - values[i - 1]);
  }
  roughness.size /= static_cast<double>(values.size());
  roughness.step /= static_cast<double>(values.size());
  return roughness;
}

TEST(PhotographTextureTest, TheSeedDeterminesTheDetail) {
  EXPECT_EQ(Draw(3, 50, 40).detail, Draw(3, 50, 40).detail);
  EXPECT_NE(Draw(3, 50, 40).detail, Draw(4, 50, 40).detail);
}

TEST(PhotographTextureTest, HasAValueForEachPixelOfAnySize) {
  for (const auto& [width, height] : {std::pair(1, 1), std::pair(500, 375), std::pair(129, 7)}) {
    const PhotographTexture texture = Draw(1, width, height);
    const size_t pixels = static_cast<size_t>(width) * static_cast<size_t>(height);
    EXPECT_EQ(texture.shapes.size(), pixels);
    EXPECT_EQ(texture.detail.size(), pixels);
    for (const std::vector<float>& tint : texture.tint) EXPECT_EQ(tint.size(), pixels);
  }
}

TEST(PhotographTextureTest, ShapesAreCoarseAndDetailIsFine) {
  const PhotographTexture texture = Draw(1, 256, 256);
  const Roughness shapes = RoughnessOf(texture.shapes, 256);
  const Roughness detail = RoughnessOf(texture.detail, 256);
  EXPECT_LT(shapes.step, shapes.size / 5);
  EXPECT_GT(detail.step, detail.size / 5);
}

}  // namespace
}  // namespace systole
