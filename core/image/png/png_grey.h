// Makes a coloured PNG grey as libpng's png_set_rgb_to_gray(0.299, 0.587) does. If the channels of
// a pixel differ, they are made linear by the file's gamma, summed by weight, and made non-linear
// again.
//
// Thread-compatible; immutable.
#ifndef SYSTOLE_CORE_IMAGE_PNG_PNG_GREY_H_
#define SYSTOLE_CORE_IMAGE_PNG_PNG_GREY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace systole {

// What the chunks before the palette and the pixels say about a file's colours.
struct PngColours {
  // The exponent of the file's values in units of 1/100000, from gAMA, sRGB or a profile that is
  // known to be sRGB. 0 if the file has none of these.
  int32_t gamma = 0;
  // The largest number of bits of a channel in sBIT. 0 if the file has no valid sBIT.
  int significant_bits = 0;
};

// `profile` is the inflated content of the first iCCP chunk, if it can be read. As in libpng
// 1.6.43, chunks with wrong checksums are ignored, and sRGB has priority over gAMA. All chunks
// gAMA, sRGB and iCCP that follow a chunk whose value is out of range are ignored. Unlike libpng,
// this function ignores two things: cHRM (which may be out of range for libpng) and damaged iCCP
// chunks. REQUIRES: `png` is a coloured PNG file whose header is good.
PngColours ReadPngColours(absl::string_view png, std::optional<absl::string_view> profile);

class PngGrey {
 public:
  // For a file with `bit_depth` bits for each channel.
  PngGrey(const PngColours& colours, int bit_depth);

  // Of8 returns the grey of channels of 8 bits. Of16 returns the upper 8 bits of the grey of
  // channels of 16 bits.
  uint8_t Of8(uint8_t red, uint8_t green, uint8_t blue) const;
  uint8_t Of16(uint16_t red, uint16_t green, uint16_t blue) const;

 private:
  using Table = std::vector<uint16_t>;

  uint16_t At(const Table& table, uint16_t value) const { return table[size_t{value} >> shift_]; }

  // Tables are indexed by a value without its last `shift_` bits. They are empty if the file's
  // values count as linear.
  int shift_ = 0;
  Table to_linear_;
  Table from_linear_;
  Table of_grey_;  // For pixels of 16 bits that are grey already.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_PNG_PNG_GREY_H_
