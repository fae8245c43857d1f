// Any bytes as a PNG: header, then all pixels as grey and as colour. What decodes in one decodes in
// the other, twice alike; and a grey image is the same in both.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/image/png_decoder.h"
#include "core/status/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace systole;
  constexpr int64_t kMaxPixels = 1 << 18;
  const absl::string_view png(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<PngInfo> info = ReadPngHeader(png, 1);
  if (!info.ok()) return 0;
  const int64_t pixels = int64_t{info->width} * info->height;
  if (pixels > kMaxPixels) return 0;
  std::vector<uint8_t> grey(static_cast<size_t>(pixels));
  std::vector<uint8_t> again(grey.size());
  std::vector<uint8_t> colour(grey.size() * 3);
  const absl::Status status = DecodePng(png, 1, absl::MakeSpan(grey));
  SYSTOLE_CHECK(DecodePng(png, 3, absl::MakeSpan(colour)).code() == status.code());
  SYSTOLE_CHECK(DecodePng(png, 1, absl::MakeSpan(again)) == status);
  if (!status.ok()) return 0;
  SYSTOLE_CHECK(grey == again);
  bool is_grey = true;
  for (size_t i = 0; i < grey.size(); ++i) {
    is_grey = is_grey && colour[3 * i] == colour[3 * i + 1] && colour[3 * i] == colour[3 * i + 2];
  }
  for (size_t i = 0; is_grey && i < grey.size(); ++i) SYSTOLE_CHECK(grey[i] == colour[3 * i]);
  return 0;
}
