#include "core/image/png/png_grey.h"

#include <algorithm>
#include <cmath>

#include "core/checksum/crc32.h"
#include "core/image/png/png_chunk.h"
#include "core/numeric/math.h"

namespace systole {
namespace {

// 1 in libpng's fixed point numbers, whose unit is 1/100000.
constexpr int32_t kOne = 100000;
constexpr int32_t kSrgbGamma = 45455;

// Whether a gamma differs from 1 by more than 0.05. libpng ignores smaller differences.
bool IsSignificant(int32_t gamma) { return gamma < kOne - 5000 || gamma > kOne + 5000; }

int32_t Rounded(double x) { return static_cast<int32_t>(std::floor(x + 0.5)); }

int32_t Reciprocal(int32_t x) { return Rounded(1e10 / x); }

// Whether libpng accepts an inflated profile. An accepted profile is for RGB colours, and its
// fields do not contradict each other. Faults of which libpng only warns are not checked.
bool IsRgbProfile(absl::string_view profile) {
  constexpr size_t kHeader = 132, kTag = 12;
  if (profile.size() < kHeader || BigEndian(profile, 0) != profile.size()) return false;
  if (profile[8] > 3 && profile.size() % 4 != 0) return false;  // A rule since ICC 4.
  const size_t tags = BigEndian(profile, 128);
  if (tags > (profile.size() - kHeader) / kTag || BigEndian(profile, 64) >= 0xffff) return false;
  const absl::string_view device = profile.substr(12, 4), space = profile.substr(20, 4);
  if (profile.substr(36, 4) != "acsp" || profile.substr(16, 4) != "RGB " || device == "abst" ||
      device == "link" || (space != "XYZ " && space != "Lab ")) {
    return false;
  }
  for (size_t tag = 0; tag < tags; ++tag) {
    const size_t begin = BigEndian(profile, kHeader + tag * kTag + 4);
    const size_t bytes = BigEndian(profile, kHeader + tag * kTag + 8);
    if (begin > profile.size() || bytes > profile.size() - begin) return false;
  }
  return true;
}

// Whether libpng knows the profile as one of the sRGB profiles of www.color.org and
// Hewlett-Packard. libpng compares two more checksums. They are not needed here: practically no
// other profile has the same length and CRC-32.
bool IsKnownSrgbProfile(absl::string_view profile) {
  struct Known {
    size_t bytes;
    uint32_t intent;
    uint32_t crc;
  };
  constexpr Known kKnown[] = {
      {3048, 0, 0x3b8772b9}, {3052, 1, 0x427ebb21}, {60988, 0, 0x306fd8ae}, {60960, 0, 0xbbef7812},
      {3024, 1, 0x5d5129ce}, {3144, 0, 0x182ea552}, {3144, 1, 0xf29e526d},
  };
  return std::any_of(std::begin(kKnown), std::end(kKnown), [profile](const Known& known) {
    return profile.size() == known.bytes && BigEndian(profile, 64) == known.intent &&
           Crc32(profile) == known.crc;
  });
}

// The chunk sBIT says how many bits of each channel are significant. Returns the largest of these
// numbers, or 0 if one of them is impossible.
int SignificantBits(absl::string_view chunk, int colour_type, int bit_depth) {
  constexpr int kPalette = 3, kColourAndOpacity = 6;
  if (chunk.size() != (colour_type == kColourAndOpacity ? 4 : 3)) return 0;
  const int most_possible = colour_type == kPalette ? 8 : bit_depth;
  int most = 0;
  for (size_t i = 0; i < chunk.size(); ++i) {
    const int bits = static_cast<uint8_t>(chunk[i]);
    if (bits == 0 || bits > most_possible) return 0;
    if (i < 3) most = std::max(most, bits);
  }
  return most;
}

uint16_t Power(double part, int32_t exponent, double most) {
  if (part <= 0) return 0;
  const double power = PowDouble(part, exponent * 0.00001);
  return static_cast<uint16_t>(std::floor(most * power + 0.5));
}

std::vector<uint16_t> TableOf8(int32_t exponent) {
  std::vector<uint16_t> table(256);
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = IsSignificant(exponent) ? Power(static_cast<double>(i) / 255., exponent, 255.)
                                       : static_cast<uint16_t>(i);
  }
  return table;
}

// Makes a table that maps values of 16 bits to values of 16 bits. The index is a value without its
// last `shift` bits.
std::vector<uint16_t> TableOf16(int32_t exponent, int shift) {
  std::vector<uint16_t> table(size_t{1} << (16 - shift));
  const auto most = static_cast<uint32_t>(table.size() - 1);
  for (uint32_t i = 0; i <= most; ++i) {
    table[i] = IsSignificant(exponent) ? Power(i * (1.0 / most), exponent, 65535.)
                                       : static_cast<uint16_t>((i * 65535 + (most + 1) / 2) / most);
  }
  return table;
}

// Makes a table with the same index as in TableOf16(). The table maps each value of 16 bits to the
// nearest of the 256 values i * 257. `exponent` is close to 1.
std::vector<uint16_t> TableOf16To8(int32_t exponent, int shift) {
  std::vector<uint16_t> table(size_t{1} << (16 - shift), 65535);
  const auto most = static_cast<uint32_t>(table.size() - 1);
  uint32_t next = 0;
  for (uint32_t level = 0; level < 255; ++level) {
    const uint32_t out = level * 257;
    const uint32_t bound = Power((out + 128) / 65535., exponent, 65535.);
    const uint32_t end = (bound * most + 32768) / 65535 + 1;
    while (next < end) table[next++] = static_cast<uint16_t>(out);
  }
  return table;
}

// The weights are multiples of 2^-15, rounded down. The weight of blue is 1 minus the other two
// weights.
uint32_t WeightedSum(uint32_t red, uint32_t green, uint32_t blue) {
  constexpr uint32_t kRed = 9797;
  constexpr uint32_t kGreen = 19234;
  return kRed * red + kGreen * green + (32768 - kRed - kGreen) * blue;
}

constexpr uint32_t kHalf = 16384;

}  // namespace

PngColours ReadPngColours(absl::string_view png, std::optional<absl::string_view> profile) {
  // libpng inflates only as many bytes as the profile's header says.
  if (profile.has_value() && profile->size() >= 4)
    profile = profile->substr(0, BigEndian(*profile, 0));
  constexpr size_t kShortestProfile = 92;  // libpng ignores a shorter iCCP chunk.
  const absl::string_view header = FirstPngChunk(png.substr(kPngSignatureBytes))->data;
  const int bit_depth = static_cast<uint8_t>(header[8]);
  const int colour_type = static_cast<uint8_t>(header[9]);
  PngColours colours;
  bool is_srgb = false, has_gamma = false, is_good = true;
  absl::string_view rest = png.substr(kPngSignatureBytes);
  while (const std::optional<PngChunkView> found = FirstPngChunk(rest)) {
    const absl::string_view type = found->type, chunk = found->data;
    const size_t bytes = chunk.size();
    if (type == "PLTE" || type == "IDAT") break;
    rest = found->rest;
    if (!found->IsIntact()) continue;
    if (type == "sBIT" && colours.significant_bits == 0) {
      colours.significant_bits = SignificantBits(chunk, colour_type, bit_depth);
    }
    if (!is_good) continue;
    if (type == "gAMA" && bytes == 4 && !has_gamma) {
      const uint32_t gamma = BigEndian(chunk, 0);
      is_good = gamma >= 16 && gamma <= 625000000;
      if (!is_good) continue;
      if (is_srgb && IsSignificant(Rounded(double{kSrgbGamma} * kOne / gamma))) continue;
      colours.gamma = static_cast<int32_t>(gamma);
      has_gamma = true;
    } else if (type == "sRGB" && bytes == 1) {
      is_good = chunk[0] >= 0 && chunk[0] < 4 && !is_srgb;
      if (!is_good) continue;
      colours.gamma = kSrgbGamma;
      is_srgb = true;
    } else if (type == "iCCP" && bytes >= kShortestProfile) {
      is_good = profile.has_value() && IsRgbProfile(*profile) && !is_srgb;
      if (!is_good || !IsKnownSrgbProfile(*profile)) continue;
      colours.gamma = kSrgbGamma;
      is_srgb = true;
    }
  }
  return colours;
}

PngGrey::PngGrey(const PngColours& colours, int bit_depth) {
  if (colours.gamma == 0) return;
  const int32_t inverse = Reciprocal(colours.gamma);
  if (!IsSignificant(colours.gamma) && !IsSignificant(inverse)) return;
  if (bit_depth < 16) {
    to_linear_ = TableOf8(inverse);
    from_linear_ = TableOf8(Reciprocal(inverse));
    return;
  }
  // When libpng reduces values of 16 bits to 8 bits, it uses their upper 11 bits, or fewer (at
  // least 8) if sBIT says that fewer are significant.
  constexpr int kLeast = 5, kMost = 8;
  const int bits = colours.significant_bits;
  shift_ = std::clamp(bits > 0 ? 16 - bits : 0, kLeast, kMost);
  to_linear_ = TableOf16(inverse, shift_);
  from_linear_ = TableOf16(Reciprocal(inverse), shift_);
  of_grey_ = TableOf16To8(Rounded(colours.gamma * 0.00001 * inverse), shift_);
}

uint8_t PngGrey::Of8(uint8_t red, uint8_t green, uint8_t blue) const {
  if (red == green && red == blue) return red;
  if (to_linear_.empty()) {
    return static_cast<uint8_t>(WeightedSum(red, green, blue) >> 15);  // libpng rounds down.
  }
  const uint32_t sum = WeightedSum(to_linear_[red], to_linear_[green], to_linear_[blue]);
  return static_cast<uint8_t>(from_linear_[(sum + kHalf) >> 15]);
}

uint8_t PngGrey::Of16(uint16_t red, uint16_t green, uint16_t blue) const {
  uint32_t grey;
  if (to_linear_.empty()) {
    grey = (WeightedSum(red, green, blue) + kHalf) >> 15;
  } else if (red == green && red == blue) {
    grey = At(of_grey_, red);
  } else {
    const uint32_t sum =
        WeightedSum(At(to_linear_, red), At(to_linear_, green), At(to_linear_, blue));
    grey = At(from_linear_, static_cast<uint16_t>((sum + kHalf) >> 15));
  }
  return static_cast<uint8_t>(grey >> 8);
}

}  // namespace systole
