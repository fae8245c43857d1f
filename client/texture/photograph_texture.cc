#include "client/texture/photograph_texture.h"

#include <cstddef>
#include <utility>

#include "absl/functional/function_ref.h"

namespace systole {
namespace {

constexpr int kCoarsestCell = 128;

// Values at every `cell` pixels, from the top left corner to beyond the bottom right one.
struct Lattice {
  Lattice(int width, int height, int cell)
      : columns(width / cell + 2), rows(height / cell + 2), values(columns * rows) {}

  int columns;
  int rows;
  std::vector<float> values;
};

// Bilinear interpolation to twice the resolution.
void Refine(const Lattice& coarse, Lattice& fine) {
  for (int y = 0; y < fine.rows; ++y) {
    const float* top = &coarse.values[y / 2 * coarse.columns];
    const float* bottom = y % 2 == 0 ? top : top + coarse.columns;
    float* out = &fine.values[y * fine.columns];
    for (int x = 0; x < fine.columns; ++x) {
      const int left = x / 2, right = (x + 1) / 2;
      out[x] = (top[left] + top[right] + bottom[left] + bottom[right]) / 4;
    }
  }
}

// A value of noise for each pixel: a sum over lattices with cells of 128, 64, .. 1 pixels. A
// lattice's noise is uniform in [-amplitude(cell) / 2, amplitude(cell) / 2).
std::vector<float> DrawNoise(CounterRng& rng, int width, int height,
                             absl::FunctionRef<float(int cell)> amplitude) {
  Lattice sum(width, height, kCoarsestCell);
  for (int cell = kCoarsestCell; cell >= 1; cell /= 2) {
    if (cell != kCoarsestCell) {
      Lattice fine(width, height, cell);
      Refine(sum, fine);
      sum = std::move(fine);
    }
    const float scale = amplitude(cell);
    if (scale == 0) continue;
    for (float& value : sum.values) value += (rng.UniformFloat() - 0.5f) * scale;
  }
  std::vector<float> noise;
  noise.reserve(static_cast<size_t>(width) * height);
  for (int y = 0; y < height; ++y) {
    const float* row = &sum.values[y * sum.columns];
    noise.insert(noise.end(), row, row + width);
  }
  return noise;
}

// `factor` to the power log2(cell): an amplitude that grows by this factor from octave to octave.
float Growing(float factor, int cell) {
  float power = 1;
  for (; cell > 1; cell /= 2) power *= factor;
  return power;
}

}  // namespace

// With these constants the spectrum, the spread of contrast from block to block, the share of
// colour and the file sizes are those of real photographs at kPhotographQuality.
PhotographTexture DrawPhotographTexture(CounterRng& rng, int width, int height) {
  PhotographTexture texture;
  texture.shapes =
      DrawNoise(rng, width, height, [](int cell) { return cell >= 32 ? 140.0f : 0.0f; });
  const std::vector<float> activity =
      DrawNoise(rng, width, height, [](int cell) { return cell >= 8 ? 2.0f : 0.0f; });
  const float contrast = 16 * (0.2f + 1.6f * rng.UniformFloat());
  texture.detail = DrawNoise(rng, width, height, [&](int cell) {
    return cell >= 32 ? 0.0f : contrast * Growing(1.5f, cell);
  });
  for (size_t i = 0; i < texture.detail.size(); ++i) {
    texture.detail[i] = texture.detail[i] * activity[i] * activity[i];
  }
  for (std::vector<float>& tint : texture.tint) {
    // Colour varies less, and more slowly, than brightness.
    tint = DrawNoise(rng, width, height,
                     [](int cell) { return cell >= 8 ? 12.6f * Growing(1.25f, cell) : 0.0f; });
  }
  return texture;
}

}  // namespace systole
