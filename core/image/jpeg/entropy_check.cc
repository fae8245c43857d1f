#include "core/image/jpeg/entropy_check.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/image/jpeg/jpeg_library.h"
#include "core/image/jpeg/jpeg_options.h"
#include "core/image/jpeg/unchecked_jpeg_decoder.h"
#include "core/image/window/crop.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// With any sampling, the image has several MCUs (JPEG's units of coded blocks) across and down. The
// last MCU of each row and column is not full.
constexpr int kWidth = 109;
constexpr int kHeight = 51;
// A crop whose edges lie inside MCUs. On each of its four sides there are MCUs that the crop does
// not touch.
constexpr CropRect kPart = {19, 37, 14, 31};

struct BuiltIn {
  const char* name;
  int channels = 3;
  JpegEncoderOptions options;
  // Sets a grey image's sampling factors to 2, which changes only numbers in the header.
  bool odd_sampling = false;
};

constexpr BuiltIn kBuiltIns[] = {
    {"4:4:4", 3, {.sampling = JpegSampling::k444}},
    {"4:2:2", 3, {.sampling = JpegSampling::k422}},
    {"4:2:0", 3, {.sampling = JpegSampling::k420}},
    {"4:4:0", 3, {.sampling = JpegSampling::k440}},
    {"4:1:1", 3, {.sampling = JpegSampling::k411}},
    {"4:1:0", 3, {.sampling = JpegSampling::k410}},
    {"4:2:0 with restarts", 3, {.sampling = JpegSampling::k420, .restart_rows = 1}},
    {"grey", 1},
    {"grey with sampling factors of 2", 1, {}, true},
};

// Waves, edges and noise: few coefficients are zero, and neighbouring blocks differ.
std::vector<uint8_t> BuiltInPixels(int channels) {
  std::vector<uint8_t> pixels;
  uint32_t noise = 1;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      for (int c = 0; c < channels; ++c) {
        noise = noise * 1664525u + 1013904223u;
        pixels.push_back(static_cast<uint8_t>(
            x * (3 + c) + y * (5 - c) + (x / 13 + y / 9) % 2 * 90 + static_cast<int>(noise >> 28)));
      }
    }
  }
  return pixels;
}

absl::StatusOr<std::string> MakeBuiltIn(const BuiltIn& built_in) {
  SYSTOLE_ASSIGN_OR_RETURN(std::string jpeg,
                           EncodeJpeg(BuiltInPixels(built_in.channels), kWidth, kHeight,
                                      built_in.channels, built_in.options));
  if (built_in.odd_sampling) {
    // The sampling factors come after the marker (2 bytes), the length (2), precision, sizes and
    // number of components (6), and the component's number (1).
    const size_t frame = jpeg.find("\xff\xc0");
    if (frame == std::string::npos || frame + 11 >= jpeg.size()) {
      return absl::InternalError("the encoded image has no frame header");
    }
    jpeg[frame + 11] = 0x22;
  }
  return jpeg;
}

absl::StatusOr<std::vector<uint8_t>> DecodeCrop(UncheckedJpegDecoder& decoder,
                                                absl::string_view jpeg, const CropRect& crop,
                                                JpegScale scale) {
  SYSTOLE_RETURN_IF_ERROR(decoder.ReadHeader(jpeg).status());
  std::vector<uint8_t> pixels(size_t{3} * crop.width * crop.height);
  SYSTOLE_RETURN_IF_ERROR(decoder.Decode(crop, absl::MakeSpan(pixels), scale));
  return pixels;
}

// The fault of our entropy decoder on one image, as part of a message. Empty if there is no fault.
absl::StatusOr<std::string> FaultOn(const BuiltIn& built_in, UncheckedJpegDecoder& own,
                                    UncheckedJpegDecoder& library) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::string jpeg, MakeBuiltIn(built_in));
  // At an eighth of the size, only one coefficient of some blocks is decoded.
  const CropRect eighth =
      WholeImage(ScaledSide(kHeight, JpegScale::kEighth), ScaledSide(kWidth, JpegScale::kEighth));
  for (const auto& [crop, scale] : {std::pair(WholeImage(kHeight, kWidth), JpegScale::kFull),
                                    {kPart, JpegScale::kFull},
                                    {eighth, JpegScale::kEighth}}) {
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<uint8_t> theirs,
                             DecodeCrop(library, jpeg, crop, scale));
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<uint8_t> ours, DecodeCrop(own, jpeg, crop, scale));
    if (own.by_library()) return "cannot replace libjpeg's decoder for";
    if (ours != theirs) return "gives other pixels for";
  }
  return "";
}

}  // namespace

absl::Status CheckJpegEntropyDecoding() {
  for (const bool fancy_upsampling : {true, false}) {
    JpegDecoderOptions options = {.fancy_upsampling = fancy_upsampling};
    SYSTOLE_ASSIGN_OR_RETURN(UncheckedJpegDecoder own, UncheckedJpegDecoder::Create(options));
    options.library_entropy_decoder = true;
    SYSTOLE_ASSIGN_OR_RETURN(UncheckedJpegDecoder library, UncheckedJpegDecoder::Create(options));
    for (const BuiltIn& built_in : kBuiltIns) {
      const absl::StatusOr<std::string> fault = FaultOn(built_in, own, library);
      if (fault.ok() && fault->empty()) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("our entropy decoder ", fault.ok() ? *fault : "fails on", " a ",
                       built_in.name, " test image, in this libjpeg (", JpegLibraryVersion(), ")",
                       fault.ok() ? "" : absl::StrCat(": ", fault.status().message())));
    }
  }
  return absl::OkStatus();
}

const absl::Status& OwnJpegEntropyDecoding() {
  static const absl::Status& status = *new absl::Status(CheckJpegEntropyDecoding());
  return status;
}

}  // namespace systole
