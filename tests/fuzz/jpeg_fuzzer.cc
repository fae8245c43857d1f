// Decodes the input as a JPEG: the header, crops, the whole image, smaller scales and the fused
// transform. Some of the decoders fail on warnings (strict), others do not (lenient). No input may
// make a decoder crash, leak, or allocate more than its limits allow (under libFuzzer,
// -malloc_limit_mb=64 shows this). If the whole image decodes without a warning, a crop must equal
// the same part of the image. Our entropy decoder must give the same pixels, errors and warnings as
// libjpeg's, even if our decoder has decoded other images before, and with other bytes at the end
// of the image. Two crops that are decoded together must equal the same crops decoded alone.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/image/image_transformer.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/window/crop.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

namespace systole {
namespace {

constexpr int64_t kMaxPixels = 1 << 16;

CropRect Part(const ImageInfo& info) {
  return {info.height / 4, info.width / 3, (info.height + 1) / 2, (info.width + 1) / 2};
}

struct Rows {
  std::vector<uint8_t> pixels;
  absl::Status status;

  bool operator==(const Rows&) const = default;
};

// Reads the rows of `crop`, for which StartCrop() has succeeded.
Rows ReadRows(JpegDecoder& decoder, const CropRect& crop) {
  Rows rows;
  for (int y = 0; y < crop.height; ++y) {
    const absl::StatusOr<const uint8_t*> row = decoder.NextRow();
    rows.status = row.status();
    if (!row.ok()) break;
    rows.pixels.insert(rows.pixels.end(), *row, *row + size_t{3} * crop.width);
  }
  return rows;
}

// Decodes `jpeg` with our entropy decoder (`own`, which has decoded other images before), and with
// libjpeg's entropy decoder (`library`, which is new). The results must be the same.
void CompareWithLibrary(JpegDecoder& own, bool strict, absl::string_view jpeg, bool whole) {
  JpegDecoder library = *JpegDecoder::Create({.fail_on_warning = strict,
                                              .max_pixels = kMaxPixels,
                                              .max_scans = 12,
                                              .library_entropy_decoder = true});
  const absl::StatusOr<ImageInfo> info = own.ReadHeader(jpeg);
  SYSTOLE_CHECK(library.ReadHeader(jpeg).status() == info.status());
  if (!info.ok()) return;
  const CropRect crop = whole ? WholeImage(info->height, info->width) : Part(*info);
  std::vector<uint8_t> ours(size_t{3} * crop.width * crop.height), theirs(ours.size());
  const absl::Status status = own.Decode(crop, absl::MakeSpan(ours));
  SYSTOLE_CHECK(library.Decode(crop, absl::MakeSpan(theirs)) == status);
  SYSTOLE_CHECK(ours == theirs && own.warnings() == library.warnings());
  if (!whole) return;
  // Decodes again, row by row. Decode() also looks at the bytes after the last row. Here a decoder
  // looks at these bytes only if its entropy decoding reads ahead.
  Rows rows[2];
  for (JpegDecoder* decoder : {&own, &library}) {
    if (!decoder->ReadHeader(jpeg).ok()) std::abort();  // The header could be read before.
    Rows& read = rows[decoder == &own ? 0 : 1];
    read.status = decoder->StartCrop(crop);
    if (read.status.ok()) read = ReadRows(*decoder, crop);
  }
  SYSTOLE_CHECK(rows[0] == rows[1] && own.warnings() == library.warnings());
}

// Replaces some of the last bytes of `jpeg` by up to three pieces: fill bytes, markers, or bytes
// that look like these. A hash of `jpeg` chooses the pieces, so each input tries another ending.
std::string WithOtherEnding(absl::string_view jpeg) {
  static const std::string* const kPieces = new std::string[8]{"\xff",
                                                               "\xff\xff",
                                                               "\xff\xd9",
                                                               std::string("\xff\0", 2),
                                                               std::string(1, '\0'),
                                                               "\xff\xd0",
                                                               "\xff\xff\xd9",
                                                               std::string(3000, '\xff')};
  uint64_t choice = 1469598103934665603u;  // FNV-1a.
  for (const char byte : jpeg) choice = (choice ^ static_cast<uint8_t>(byte)) * 1099511628211u;
  const auto draw = [&choice](uint64_t n) {
    const uint64_t drawn = (choice >> 20) % n;
    choice = choice * 6364136223846793005u + 1442695040888963407u;
    return drawn;
  };
  const size_t cut = static_cast<size_t>(draw(3) == 0 ? draw(200) : draw(8));
  std::string ended(jpeg.substr(0, jpeg.size() - std::min(jpeg.size(), cut)));
  for (uint64_t pieces = draw(4); pieces > 0; --pieces) ended += kPieces[draw(8)];
  return ended;
}

// Two crops that are decoded together must equal the same crops decoded alone.
void DecodeTogether(JpegDecoder& a, JpegDecoder& b, absl::string_view jpeg, JpegScale scale) {
  const absl::StatusOr<ImageInfo> stored = a.ReadHeader(jpeg);
  if (!stored.ok()) return;
  const ImageInfo info = {.width = ScaledSide(stored->width, scale),
                          .height = ScaledSide(stored->height, scale)};
  const CropRect crops[2] = {Part(info), WholeImage(info.height, info.width)};
  Rows alone[2];
  for (int i = 0; i < 2; ++i) {
    if (!a.ReadHeader(jpeg).ok()) std::abort();  // The header could be read before.
    alone[i].status = a.StartCrop(crops[i], scale);
    if (alone[i].status.ok()) alone[i] = ReadRows(a, crops[i]);
  }
  JpegDecoder* const decoders[2] = {&a, &b};
  absl::Status started[2];
  for (int i = 0; i < 2; ++i) {
    if (!decoders[i]->ReadHeader(jpeg).ok()) std::abort();
    started[i] = decoders[i]->StartCrop(crops[i], scale);
  }
  if (!a.is_ahead() && !b.is_ahead()) JpegDecoder::DecodeAhead(a, b);
  for (int i = 0; i < 2; ++i) {
    Rows together = {.status = started[i]};
    if (started[i].ok()) together = ReadRows(*decoders[i], crops[i]);
    SYSTOLE_CHECK(together == alone[i]);
  }
}

// At a smaller scale, libjpeg's entropy decoder must give the same whole image as ours, and a crop
// must equal the same part of this image.
void DecodeScaled(JpegDecoder& decoder, absl::string_view jpeg) {
  const JpegScale scale =
      std::array{JpegScale::kHalf, JpegScale::kQuarter, JpegScale::kEighth}[jpeg.size() % 3];
  JpegDecoder library = *JpegDecoder::Create(
      {.max_pixels = kMaxPixels, .max_scans = 12, .library_entropy_decoder = true});
  const absl::StatusOr<ImageInfo> info = decoder.ReadHeader(jpeg);
  if (!info.ok() || !library.ReadHeader(jpeg).ok()) return;
  const CropRect whole =
      WholeImage(ScaledSide(info->height, scale), ScaledSide(info->width, scale));
  std::vector<uint8_t> ours(size_t{3} * whole.width * whole.height), theirs(ours.size());
  const absl::Status status = decoder.Decode(whole, absl::MakeSpan(ours), scale);
  SYSTOLE_CHECK(library.Decode(whole, absl::MakeSpan(theirs), scale) == status);
  SYSTOLE_CHECK(decoder.warnings() == library.warnings());
  if (!status.ok()) return;
  SYSTOLE_CHECK(ours == theirs);
  const CropRect part = {whole.height / 3, whole.width / 4, (whole.height + 1) / 2,
                         (whole.width + 1) / 2};
  std::vector<uint8_t> cut(size_t{3} * part.width * part.height);
  if (!decoder.ReadHeader(jpeg).ok()) std::abort();  // The header could be read before.
  SYSTOLE_CHECK(decoder.Decode(part, absl::MakeSpan(cut), scale).ok());
  for (int y = 0; y < part.height; ++y) {
    SYSTOLE_CHECK(std::memcmp(&ours[(size_t{1} * (part.y + y) * whole.width + part.x) * 3],
                              &cut[size_t{3} * y * part.width], size_t{3} * part.width) == 0);
  }
}

void DecodeAndCompare(JpegDecoder& decoder, absl::string_view jpeg) {
  const absl::StatusOr<ImageInfo> info = decoder.ReadHeader(jpeg);
  if (!info.ok()) return;
  SYSTOLE_CHECK(int64_t{info->width} * info->height <= kMaxPixels);
  std::vector<uint8_t> whole(size_t{3} * info->width * info->height);
  const bool whole_ok =
      decoder.Decode(WholeImage(info->height, info->width), absl::MakeSpan(whole)).ok() &&
      decoder.warnings() == 0;

  // The crop depends on the size of the input, so the fuzzer tries many crops.
  const CropRect crop = {info->height / 3, info->width / 5, (info->height + 2) / 3,
                         static_cast<int>(1 + jpeg.size() % ((info->width + 1) / 2))};
  if (!decoder.ReadHeader(jpeg).ok()) std::abort();  // The header could be read before.
  std::vector<uint8_t> part(size_t{3} * crop.width * crop.height);
  const absl::Status part_status = decoder.Decode(crop, absl::MakeSpan(part));
  if (!whole_ok) return;
  SYSTOLE_CHECK(part_status.ok());
  for (int y = 0; y < crop.height; ++y) {
    const size_t at = (size_t{1} * (crop.y + y) * info->width + crop.x) * 3;
    SYSTOLE_CHECK(
        std::memcmp(&whole[at], &part[size_t{3} * y * crop.width], size_t{3} * crop.width) == 0);
  }
}

}  // namespace
}  // namespace systole

SYSTOLE_FUZZER(jpeg, const uint8_t* data, size_t size) {
  using namespace systole;  // NOLINT: a fuzzer's entry point cannot be in a namespace.
  static JpegDecoder& strict =
      *new JpegDecoder(*JpegDecoder::Create({.max_pixels = kMaxPixels, .max_scans = 12}));
  static JpegDecoder& other =
      *new JpegDecoder(*JpegDecoder::Create({.max_pixels = kMaxPixels, .max_scans = 12}));
  static JpegDecoder& lenient = *new JpegDecoder(
      *JpegDecoder::Create({.fail_on_warning = false, .max_pixels = kMaxPixels, .max_scans = 12}));
  static ImageTransformer& transformer = *new ImageTransformer(
      *ImageTransformer::Create({.output = {.height = 9, .width = 7, .type = PixelType::kBfloat16},
                                 .jpeg = {.max_pixels = kMaxPixels, .max_scans = 12}}));
  const absl::string_view jpeg(reinterpret_cast<const char*>(data), size);
  DecodeAndCompare(strict, jpeg);
  DecodeAndCompare(lenient, jpeg);
  CompareWithLibrary(strict, /*strict=*/true, jpeg, /*whole=*/false);
  const std::string ended = WithOtherEnding(jpeg);
  CompareWithLibrary(strict, /*strict=*/true, ended, /*whole=*/true);
  CompareWithLibrary(lenient, /*strict=*/false, ended, /*whole=*/true);
  DecodeTogether(strict, other, jpeg, JpegScale::kFull);
  DecodeTogether(strict, other, jpeg, jpeg.size() % 2 == 0 ? JpegScale::kHalf : JpegScale::kEighth);
  DecodeScaled(strict, jpeg);
  DecodeScaled(strict, ended);
  std::vector<uint8_t> out(transformer.output_bytes());
  if (const auto info = transformer.ReadHeader(jpeg); info.ok()) {
    transformer
        .Transform(CentreCrop(0.9f, info->height, info->width), size % 2 == 1, absl::MakeSpan(out))
        .IgnoreError();
  }
  return 0;
}
