#include "bench/photographs.h"

#include <vector>

#include "absl/functional/function_ref.h"
#include "core/image/jpeg_encoder.h"
#include "core/numeric/normalise.h"
#include "core/random/counter_rng.h"

namespace systole::bench {
namespace {

constexpr int kWidth = kPhotographWidth;
constexpr int kHeight = kPhotographHeight;
constexpr int kCoarsestCell = 128;

// Values at every `cell` pixels, from the top left corner to beyond the bottom right one.
struct Lattice {
  explicit Lattice(int cell)
      : columns(kWidth / cell + 2), rows(kHeight / cell + 2), values(columns * rows) {}

  int columns;
  int rows;
  std::vector<float> values;
};

// Bilinear interpolation to twice the resolution.
Lattice Refine(const Lattice& coarse, int cell) {
  Lattice fine(cell);
  for (int y = 0; y < fine.rows; ++y) {
    const float* top = &coarse.values[y / 2 * coarse.columns];
    const float* bottom = y % 2 == 0 ? top : top + coarse.columns;
    float* out = &fine.values[y * fine.columns];
    for (int x = 0; x < fine.columns; ++x) {
      const int left = x / 2, right = (x + 1) / 2;
      out[x] = (top[left] + top[right] + bottom[left] + bottom[right]) / 4;
    }
  }
  return fine;
}

// The sum over cells of 128, 64, .. 1 pixels of noise on a lattice of such cells, uniform in
// [-amplitude(cell) / 2, amplitude(cell) / 2); a value for each pixel, and some beyond the edges.
Lattice MakeNoise(CounterRng& rng, absl::FunctionRef<float(int cell)> amplitude) {
  Lattice sum(kCoarsestCell);
  for (int cell = kCoarsestCell; cell >= 1; cell /= 2) {
    if (cell != kCoarsestCell) sum = Refine(sum, cell);
    const float scale = amplitude(cell);
    if (scale == 0) continue;
    for (float& value : sum.values) value += (rng.UniformFloat() - 0.5f) * scale;
  }
  return sum;
}

// `factor` to the power log2(cell): an amplitude that grows so much from octave to octave.
float Growing(float factor, int cell) {
  float power = 1;
  for (; cell > 1; cell /= 2) power *= factor;
  return power;
}

}  // namespace

// The constants make the spectrum, the spread of contrast from block to block, the share of colour
// and the sizes those of real photographs at this quality.
std::string MakePhotograph(uint64_t seed) {
  CounterRng rng(seed, /*epoch=*/0, /*record=*/0, /*purpose=*/0);
  const Lattice shapes = MakeNoise(rng, [](int cell) { return cell >= 32 ? 140.0f : 0.0f; });
  // Skies are smooth and leaves are not, in one picture and between pictures.
  const Lattice activity = MakeNoise(rng, [](int cell) { return cell >= 8 ? 2.0f : 0.0f; });
  const float contrast = 16 * (0.2f + 1.6f * rng.UniformFloat());
  const Lattice texture =
      MakeNoise(rng, [&](int cell) { return cell >= 32 ? 0.0f : contrast * Growing(1.5f, cell); });
  std::vector<float> light(shapes.values);
  for (size_t i = 0; i < light.size(); ++i) {
    light[i] += 128 + texture.values[i] * activity.values[i] * activity.values[i];
  }
  std::vector<uint8_t> pixels(kWidth * kHeight * 3);
  for (int channel = 0; channel < 3; ++channel) {
    // Colour varies less, and more slowly, than brightness.
    const Lattice tint =
        MakeNoise(rng, [](int cell) { return cell >= 8 ? 12.6f * Growing(1.25f, cell) : 0.0f; });
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const int at = y * tint.columns + x;
        pixels[(y * kWidth + x) * 3 + channel] = RoundToUint8(light[at] + tint.values[at]);
      }
    }
  }
  return *EncodeJpeg(pixels, kWidth, kHeight, 3, {.quality = 96});
}

}  // namespace systole::bench
