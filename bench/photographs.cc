#include "bench/photographs.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "client/texture/photograph_texture.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/numeric/normalise.h"
#include "core/random/counter_rng.h"
#include "core/status/check.h"
#include "tests/core/image/png/png_builder.h"

namespace systole::bench {
namespace {

constexpr size_t kPngFilters = 5;  // None, Sub, Up, Average, Paeth.

uint8_t Paeth(int left, int above, int corner) {
  const int estimate = left + above - corner;
  const int from_left = std::abs(estimate - left);
  const int from_above = std::abs(estimate - above);
  const int from_corner = std::abs(estimate - corner);
  if (from_left <= from_above && from_left <= from_corner) return static_cast<uint8_t>(left);
  return static_cast<uint8_t>(from_above <= from_corner ? above : corner);
}

// The value that PNG filter number `filter` predicts for a byte.
uint8_t Expected(size_t filter, uint8_t left, uint8_t above, uint8_t corner) {
  switch (filter) {
    case 1:
      return left;
    case 2:
      return above;
    case 3:
      return static_cast<uint8_t>((left + above) / 2);
    case 4:
      return Paeth(left, above, corner);
    default:
      return 0;
  }
}

// Appends `row`, filtered by the best filter, to `rows`. `above` is the row above it, or zeros.
void AppendFiltered(const uint8_t* row, const uint8_t* above, size_t row_bytes, std::string& rows) {
  std::array<std::string, kPngFilters> filtered;
  std::array<int64_t, kPngFilters> sums = {};
  for (size_t filter = 0; filter < kPngFilters; ++filter) {
    filtered[filter].push_back(static_cast<char>(filter));
    for (size_t i = 0; i < row_bytes; ++i) {
      const uint8_t left = i < 3 ? 0 : row[i - 3];
      const uint8_t corner = i < 3 ? 0 : above[i - 3];
      const auto byte = static_cast<int8_t>(row[i] - Expected(filter, left, above[i], corner));
      filtered[filter].push_back(static_cast<char>(byte));
      sums[filter] += std::abs(int{byte});
    }
  }
  rows += filtered[std::min_element(sums.begin(), sums.end()) - sums.begin()];
}

}  // namespace

std::string MakePhotograph(uint64_t seed) {
  return MakePhotograph(seed, kPhotographWidth, kPhotographHeight, kPhotographQuality);
}

std::string MakePhotograph(uint64_t seed, int width, int height, int quality) {
  return *EncodeJpeg(PhotographPixels(seed, width, height), width, height, 3, {.quality = quality});
}

std::vector<uint8_t> PhotographPixels(uint64_t seed, int width, int height) {
  CounterRng rng(seed, /*epoch=*/0, /*record=*/0, /*purpose=*/0);
  const PhotographTexture texture = DrawPhotographTexture(rng, width, height);
  std::vector<uint8_t> pixels(texture.shapes.size() * 3);
  for (size_t i = 0; i < texture.shapes.size(); ++i) {
    const float light = texture.shapes[i] + (128 + texture.detail[i]);
    for (size_t channel = 0; channel < 3; ++channel) {
      pixels[i * 3 + channel] = RoundToUint8(light + texture.tint[channel][i]);
    }
  }
  return pixels;
}

std::string MakePngPhotograph(uint64_t seed, int width, int height) {
  const std::vector<uint8_t> pixels = PhotographPixels(seed, width, height);
  const size_t row_bytes = static_cast<size_t>(width) * 3;
  const std::vector<uint8_t> zeros(row_bytes);
  std::string rows;
  for (size_t at = 0; at < pixels.size(); at += row_bytes) {
    AppendFiltered(&pixels[at], at == 0 ? zeros.data() : &pixels[at - row_bytes], row_bytes, rows);
  }
  std::string data(compressBound(rows.size()), '\0');
  uLongf size = data.size();
  SYSTOLE_CHECK(compress(reinterpret_cast<Bytef*>(data.data()), &size,
                         reinterpret_cast<const Bytef*>(rows.data()), rows.size()) == Z_OK);
  data.resize(size);
  const std::string kind = {8, 2, 0, 0, 0};  // 8 bits a channel, RGB.
  return "\x89PNG\r\n\x1a\n" + PngChunk("IHDR", BigEndian(width) + BigEndian(height) + kind) +
         PngChunk("IDAT", data) + PngChunk("IEND", "");
}

}  // namespace systole::bench
