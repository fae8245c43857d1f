// Reads any bytes as a PNG: as they are, and with corrected lengths and checksums. Decodes the
// header, then all pixels as grey and as colour. Either both decodings succeed or both fail.
// Decoding as grey again gives the same pixels. If all colours are grey, both decodings give the
// same values. If libspng decodes the image, our colours equal libspng's.
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/image/png/png_decoder.h"
#include "core/status/check.h"
#include "tests/core/image/png/spng_reference.h"
#include "tests/fuzz/fuzzer.h"

namespace {

using namespace systole;

// Corrects the lengths and the checksums of the chunks.
std::string Resealed(std::string png) {
  constexpr size_t kSignature = 8, kHead = 8, kCrc = 4;
  const auto store = [&png](size_t at, size_t value) {
    for (size_t i = 0; i < 4; ++i) png[at + i] = static_cast<char>(value >> (24 - 8 * i));
  };
  size_t at = kSignature;
  while (at + kHead + kCrc <= png.size()) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<uint8_t>(png[at + i]);
    length = std::min(length, png.size() - at - kHead - kCrc);
    store(at, length);
    const auto* const type = reinterpret_cast<const Bytef*>(png.data() + at + 4);
    store(at + kHead + length, ::crc32(0, type, static_cast<uInt>(4 + length)));
    at += kHead + length + kCrc;
  }
  return png;
}

void Check(absl::string_view png) {
  constexpr int64_t kMaxPixels = 1 << 18;
  const absl::StatusOr<PngInfo> info = ReadPngHeader(png, 1);
  if (!info.ok()) return;
  const int64_t pixels = int64_t{info->width} * info->height;
  if (pixels > kMaxPixels) return;
  std::vector<uint8_t> grey(static_cast<size_t>(pixels));
  std::vector<uint8_t> again(grey.size());
  std::vector<uint8_t> colour(grey.size() * 3);
  const absl::Status status = DecodePng(png, 1, absl::MakeSpan(grey));
  SYSTOLE_CHECK(DecodePng(png, 3, absl::MakeSpan(colour)).code() == status.code());
  SYSTOLE_CHECK(DecodePng(png, 1, absl::MakeSpan(again)) == status);
  const std::optional<std::vector<uint8_t>> expected = DecodeBySpng(png);
  SYSTOLE_CHECK(!expected.has_value() || (status.ok() && colour == *expected));
  if (!status.ok()) return;
  SYSTOLE_CHECK(grey == again);
  bool is_grey = true;
  for (size_t i = 0; i < grey.size(); ++i) {
    is_grey = is_grey && colour[3 * i] == colour[3 * i + 1] && colour[3 * i] == colour[3 * i + 2];
  }
  for (size_t i = 0; is_grey && i < grey.size(); ++i) SYSTOLE_CHECK(grey[i] == colour[3 * i]);
}

}  // namespace

SYSTOLE_FUZZER(png, const uint8_t* data, size_t size) {
  const std::string png(reinterpret_cast<const char*>(data), size);
  Check(png);
  Check(Resealed(png));
  return 0;
}
