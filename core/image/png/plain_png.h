// Decodes plain PNG files, several times as fast as libspng. A plain file is not interlaced, has 8
// or 16 bits a sample, and has no fault in its pixel data. Most files are plain.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_PNG_PLAIN_PNG_H_
#define SYSTOLE_CORE_IMAGE_PNG_PLAIN_PNG_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace systole {

// The numbers that PNG gives to kinds of pixels.
enum class PngColourType : uint8_t {
  kGrey = 0,
  kRgb = 2,
  kPalette = 3,
  kGreyAndOpacity = 4,
  kRgbAndOpacity = 6
};

// How a file stores its pixels.
struct PngLayout {
  size_t width = 0;
  size_t height = 0;
  int bit_depth = 8;
  PngColourType colour_type = PngColourType::kGrey;
  bool is_interlaced = false;
  // Red, green, blue and a byte without meaning. All indices have a colour.
  std::array<std::array<uint8_t, 4>, 256> palette = {};
};

// Decodes the whole file to `out`, [height, width, channels] uint8. With 3 channels, each grey
// value is written three times. False if the file is not plain, or if InterruptRequested(). In both
// cases, `out` may have been written to. REQUIRES: the file's chunks before its first IDAT are good
// and agree with `layout`. `channels` is 3, or it is 1 and the file is grey.
bool DecodePlainPng(absl::string_view png, const PngLayout& layout, int channels, uint8_t* out);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_PNG_PLAIN_PNG_H_
