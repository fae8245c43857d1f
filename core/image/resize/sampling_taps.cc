#include "core/image/resize/sampling_taps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/status/check.h"

namespace systole {
namespace {

// The place of output pixel `i` in the input.
float SourceOf(bool half_pixel_centres, int i, float scale) {
  const auto place = static_cast<float>(i);
  return half_pixel_centres ? (place + 0.5f) * scale - 0.5f : place * scale;
}

// The cubic kernel at n / 1024 and at 1 + n / 1024.
constexpr int kCubicSteps = 1024;
struct CubicTable {
  std::array<float, kCubicSteps + 1> inner;
  std::array<float, kCubicSteps + 1> outer;

  explicit CubicTable(double a) {
    for (int i = 0; i <= kCubicSteps; ++i) {
      float x = static_cast<float>(i) / kCubicSteps;
      inner[static_cast<size_t>(i)] = static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
      x += 1.0f;
      outer[static_cast<size_t>(i)] = static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
    }
  }
};

void CheckSizes(int in, int out) {
  SYSTOLE_CHECK(in >= 1 && out >= 1 && in <= 65535 && out <= 65535);
}

}  // namespace

std::vector<LinearTap> MakeLinearTaps(bool half_pixel_centres, int in, int out) {
  CheckSizes(in, out);
  const float scale = SourceScale(in, out);
  std::vector<LinearTap> taps(static_cast<size_t>(out));
  for (int i = 0; i < out; ++i) {
    const float source = SourceOf(half_pixel_centres, i, scale);
    const float floor = std::floor(source);
    taps[static_cast<size_t>(i)] = {
        .lower = std::clamp<int64_t>(static_cast<int64_t>(floor), 0, in - 1),
        .upper = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(source)), 0, in - 1),
        .weight = source - floor};
  }
  return taps;
}

std::vector<CubicTap> MakeCubicTaps(bool half_pixel_centres, int in, int out) {
  CheckSizes(in, out);
  static const CubicTable keys(-0.5);
  static const CubicTable legacy(-0.75);
  const CubicTable& table = half_pixel_centres ? keys : legacy;
  const float scale = SourceScale(in, out);
  std::vector<CubicTap> taps(static_cast<size_t>(out));
  for (int i = 0; i < out; ++i) {
    CubicTap& tap = taps[static_cast<size_t>(i)];
    const float source = SourceOf(half_pixel_centres, i, scale);
    const auto floor = static_cast<int64_t>(std::floor(source));
    const float delta = source - static_cast<float>(floor);
    const auto step = static_cast<size_t>(std::nearbyint(delta * float{kCubicSteps}));
    tap.weights = {table.outer[step], table.inner[step], table.inner[kCubicSteps - step],
                   table.outer[kCubicSteps - step]};
    tap.first = floor - 1;
    for (size_t k = 0; k < 4; ++k) {
      const int64_t place = tap.first + static_cast<int64_t>(k);
      tap.places[k] = std::clamp<int64_t>(place, 0, in - 1);
      // Outside the image, TensorFlow 1 repeats the pixel at the edge. TensorFlow 2 takes no pixel
      // there.
      if (half_pixel_centres && tap.places[k] != place) tap.weights[k] = 0.0f;
    }
    if (!half_pixel_centres) continue;
    const float sum = tap.weights[0] + tap.weights[1] + tap.weights[2] + tap.weights[3];
    if (std::fabs(sum) < 1000.0f * std::numeric_limits<float>::min()) continue;
    const float one_over_sum = 1.0f / sum;
    for (float& weight : tap.weights) weight *= one_over_sum;
  }
  return taps;
}

}  // namespace systole
