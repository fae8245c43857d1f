#include "core/image/png/plain_png.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/image/png/idat_inflater.h"
#include "core/image/png/png_unfilter.h"
#include "core/interrupt/interrupt.h"

namespace systole {
namespace {

// Rows are inflated in pieces of about this many bytes, and unfiltered while they are in the cache.
// A piece takes a millisecond. Before the next piece the thread looks at its interrupt flag.
constexpr size_t kPieceBytes = 128 << 10;

using Pixel = std::array<uint8_t, 4>;

size_t SamplesOf(PngColourType type) {
  switch (type) {
    case PngColourType::kGrey:
    case PngColourType::kPalette:
      return 1;
    case PngColourType::kGreyAndOpacity:
      return 2;
    case PngColourType::kRgb:
      return 3;
    case PngColourType::kRgbAndOpacity:
      return 4;
  }
  return 0;
}

// Stores the first three bytes of each pixel_of(x).
template <class PixelOf>
void StoreRgb(size_t width, uint8_t* out, const PixelOf& pixel_of) {
  for (size_t x = 0; x + 1 < width; ++x) {
    const Pixel pixel = pixel_of(x);
    std::memcpy(out + 3 * x, pixel.data(), 4);  // The next pixel overwrites the fourth byte.
  }
  const Pixel pixel = pixel_of(width - 1);
  std::memcpy(out + 3 * (width - 1), pixel.data(), 3);
}

// Stores an unfiltered row. A sample of 16 bits keeps its first byte.
void StoreRow(const uint8_t* row, const PngLayout& layout, int channels, uint8_t* out) {
  const size_t width = layout.width;
  const size_t sample = static_cast<size_t>(layout.bit_depth) / 8;
  const size_t pixel = SamplesOf(layout.colour_type) * sample;
  switch (layout.colour_type) {
    case PngColourType::kGrey:
    case PngColourType::kGreyAndOpacity:
      if (channels == 1) {
        for (size_t x = 0; x < width; ++x) out[x] = row[x * pixel];
      } else {
        StoreRgb(width, out, [=](size_t x) {
          const uint8_t grey = row[x * pixel];
          return Pixel{grey, grey, grey, grey};
        });
      }
      return;
    case PngColourType::kPalette:
      StoreRgb(width, out, [&](size_t x) { return layout.palette[row[x]]; });
      return;
    case PngColourType::kRgb:
    case PngColourType::kRgbAndOpacity:
      if (pixel == 3) {
        std::memcpy(out, row, width * pixel);
      } else if (pixel == 4) {
        StoreRgb(width, out, [=](size_t x) {
          Pixel rgb;
          std::memcpy(rgb.data(), row + x * 4, 4);
          return rgb;
        });
      } else {
        StoreRgb(width, out, [=](size_t x) {
          const uint8_t* const samples = row + x * pixel;
          return Pixel{samples[0], samples[sample], samples[2 * sample], 0};
        });
      }
      return;
  }
}

}  // namespace

bool DecodePlainPng(absl::string_view png, const PngLayout& layout, int channels, uint8_t* out) {
  if (layout.is_interlaced || layout.bit_depth < 8) return false;
  const size_t pixel_bytes =
      SamplesOf(layout.colour_type) * static_cast<size_t>(layout.bit_depth) / 8;
  const size_t row_bytes = layout.width * pixel_bytes;
  const size_t stride = 1 + row_bytes;  // A row begins with its filter.
  const size_t piece_rows = std::clamp<size_t>(kPieceBytes / stride, 1, layout.height);

  // Holds the last row of the previous piece, followed by the piece itself.
  const size_t buffer_bytes = stride + piece_rows * stride + kUnfilterPadding;
  const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(buffer_bytes);
  uint8_t* const above = buffer.get();
  uint8_t* const rows = above + stride;
  std::memset(above, 0, stride);
  std::memset(above + buffer_bytes - kUnfilterPadding, 0, kUnfilterPadding);

  IdatInflater inflater(png);
  for (size_t y = 0; y < layout.height;) {
    if (InterruptRequested()) return false;
    const size_t count = std::min(piece_rows, layout.height - y);
    if (!inflater.Read(rows, count * stride)) return false;
    if (!UnfilterRows(rows, count, row_bytes, pixel_bytes)) return false;
    for (size_t i = 0; i < count; ++i, ++y) {
      StoreRow(rows + i * stride + 1, layout, channels,
               out + y * layout.width * static_cast<size_t>(channels));
    }
    std::memcpy(above, rows + (count - 1) * stride, stride);
  }
  return inflater.AtEnd();
}

}  // namespace systole
