#include "core/image/jpeg/unchecked_jpeg_decoder.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/image/jpeg/jpeg_decompressor.h"
#include "core/image/jpeg/jpeg_entropy.h"
#include "core/image/jpeg/jpeg_errors.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/scratch_scope.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Row buffers up to this size are kept from image to image. Such buffers are enough for colour
// images that are 10,000 pixels wide. Larger buffers are freed.
constexpr size_t kMaxKeptRowBytes = 256 << 10;

// Names the format of bytes that are not a JPEG, or says which formats it is not. The text fits at
// the end of a sentence.
const char* ForeignFormat(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\x89PNG")) return "a PNG image";
  if (absl::StartsWith(bytes, "GIF8")) return "a GIF image";
  if (absl::StartsWith(bytes, "BM")) return "a BMP image";
  if (absl::StartsWith(bytes, "RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP") {
    return "a WebP image";
  }
  return "none of PNG, GIF, BMP and WebP";
}

// Uses TensorFlow's integer formulas. With an Adobe marker the four inks are stored inverted.
void CmykToRgb(const uint8_t* cmyk, int width, bool inverted, uint8_t* rgb) {
  for (int i = 0; i < width; ++i, cmyk += 4, rgb += 3) {
    const int k = inverted ? cmyk[3] : 255 - cmyk[3];
    for (int c = 0; c < 3; ++c) {
      const int ink = inverted ? cmyk[c] : 255 - cmyk[c];
      rgb[c] = static_cast<uint8_t>(k * ink / 255);
    }
  }
}

// How many bytes an image's coefficients take. libjpeg keeps them all if there are several scans.
int64_t CoefficientBytes(const jpeg_decompress_struct& cinfo) {
  int64_t blocks = 0;
  for (int i = 0; i < cinfo.num_components; ++i) {
    const jpeg_component_info& component = cinfo.comp_info[i];
    // Rounds up to whole groups of blocks, as libjpeg does.
    const auto rounded = [](JDIMENSION count, int group) {
      return (int64_t{count} + group - 1) / group * group;
    };
    blocks += rounded(component.width_in_blocks, component.h_samp_factor) *
              rounded(component.height_in_blocks, component.v_samp_factor);
  }
  return blocks * int64_t{sizeof(JBLOCK)};
}

// libjpeg's own luma (ITU-R BT.601 in 16-bit fixed point), for images that libjpeg cannot turn grey
// itself.
void RgbToGrey(const uint8_t* rgb, int width, uint8_t* grey) {
  for (int i = 0; i < width; ++i, rgb += 3) {
    grey[i] = static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
  }
}

}  // namespace

UncheckedJpegDecoder::UncheckedJpegDecoder(std::unique_ptr<JpegDecompressor> state)
    : state_(std::move(state)) {}
UncheckedJpegDecoder::UncheckedJpegDecoder(UncheckedJpegDecoder&&) noexcept = default;
UncheckedJpegDecoder& UncheckedJpegDecoder::operator=(UncheckedJpegDecoder&&) noexcept = default;
UncheckedJpegDecoder::~UncheckedJpegDecoder() = default;

absl::StatusOr<UncheckedJpegDecoder> UncheckedJpegDecoder::Create(
    const JpegDecoderOptions& options) {
  if (options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat("JpegDecoderOptions.channels is ",
                                                   options.channels, ", want 1 (grey) or 3 (RGB)"));
  }
  if (options.max_pixels < 1 || options.max_scans < 1) {
    return absl::InvalidArgumentError(absl::StrCat("JpegDecoderOptions: max_pixels is ",
                                                   options.max_pixels, " and max_scans is ",
                                                   options.max_scans, ", want both at least 1"));
  }
  auto state = std::make_unique<JpegDecompressor>(options);
  // Makes a libjpeg decoder once here. If the library does not fit the headers, the error comes
  // now, and does not look like an image's fault.
  if (!RunGuarded(&state->error, &JpegDecompressor::CreateStep, state.get())) return state->Error();
  return UncheckedJpegDecoder(std::move(state));
}

absl::StatusOr<ImageInfo> UncheckedJpegDecoder::ReadHeader(absl::string_view jpeg) {
  JpegDecompressor* s = state_.get();
  // Makes a new libjpeg decoder for each image, which takes 0.2 us. An old decoder would decode an
  // image that lacks tables with the tables of an earlier image. An old decoder would also keep a
  // pointer to an earlier image's colour converter, whose memory is freed. Plain upsampling makes
  // no new converter. jpeg_skip_scanlines (2.1) would write through the old pointer, into this
  // image's coefficients.
  jpeg_destroy_decompress(&s->cinfo);
  s->error.manager.num_warnings = 0;
  s->phase = JpegDecompressor::Phase::kIdle;
  s->own_entropy = !s->options.library_entropy_decoder;
  s->entropy.Reset();
  s->eighth.Reset();
  s->jpeg = jpeg;
  if (jpeg.size() < 3 || !absl::StartsWith(jpeg, "\xff\xd8\xff")) {
    return absl::DataLossError(absl::StrCat("image of ", jpeg.size(), " bytes is not a JPEG; ",
                                            jpeg.empty() ? "it is empty" : "it looks like ",
                                            jpeg.empty() ? "" : ForeignFormat(jpeg)));
  }
  if (!RunGuarded(&s->error, &JpegDecompressor::HeaderStep, s)) return s->Error();
  const int64_t pixels = int64_t{s->cinfo.image_width} * s->cinfo.image_height;
  if (pixels > s->options.max_pixels) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "JPEG header claims ", s->cinfo.image_width, "x", s->cinfo.image_height, " = ", pixels,
        " pixels, the limit is ", s->options.max_pixels, "; make the image smaller"));
  }
  switch (s->cinfo.jpeg_color_space) {
    case JCS_GRAYSCALE:
    case JCS_YCbCr:
    case JCS_RGB:
      s->cinfo.out_color_space = s->options.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
      break;
    case JCS_CMYK:
    case JCS_YCCK:
      s->cinfo.out_color_space = JCS_CMYK;
      break;
    default:
      return absl::DataLossError(absl::StrCat("JPEG has ", s->cinfo.num_components,
                                              " components of unknown meaning, want grey, colour "
                                              "or CMYK (1, 3 or 4)"));
  }
  s->cinfo.dct_method = s->options.dct == JpegDct::kIslow ? JDCT_ISLOW : JDCT_IFAST;
  s->cinfo.do_fancy_upsampling = s->options.fancy_upsampling ? TRUE : FALSE;
  s->phase = JpegDecompressor::Phase::kHeader;
  return ImageInfo{static_cast<int>(s->cinfo.image_width), static_cast<int>(s->cinfo.image_height),
                   s->cinfo.num_components};
}

absl::Status UncheckedJpegDecoder::StartCrop(const CropRect& crop, JpegScale scale) {
  JpegDecompressor* s = state_.get();
  if (s->phase != JpegDecompressor::Phase::kHeader) {
    return absl::FailedPreconditionError("no JPEG header was read for this decode");
  }
  SYSTOLE_RETURN_IF_ERROR(
      CheckCropInside(crop, ScaledSide(static_cast<int>(s->cinfo.image_height), scale),
                      ScaledSide(static_cast<int>(s->cinfo.image_width), scale)));
  s->crop = crop;
  s->scale = scale;
  s->kept_rows = s->next_kept = 0;
  s->kept_status = absl::OkStatus();
  s->cinfo.scale_num = 1;
  s->cinfo.scale_denom = static_cast<unsigned>(scale);
  s->rows_left = crop.height;
  s->phase = JpegDecompressor::Phase::kWaiting;
  // An image of several scans cannot be decoded together with another image, and memory holds all
  // its coefficients while its rows are taken. So the decoding of such an image begins when its
  // first row is taken. Otherwise all such images that have begun would hold coefficients at the
  // same time.
  return jpeg_has_multiple_scans(&s->cinfo) ? absl::OkStatus() : BeginRows();
}

absl::Status UncheckedJpegDecoder::BeginRows() {
  JpegDecompressor* s = state_.get();
  s->phase = JpegDecompressor::Phase::kIdle;
  if (jpeg_has_multiple_scans(&s->cinfo) &&
      !NeedScratch(ScratchUse::kCoefficients, CoefficientBytes(s->cinfo))) {
    return InterruptedError();
  }
  if (!RunGuarded(&s->error, &JpegDecompressor::StartStep, s)) return s->Error();
  const size_t width =
      s->eighth.started() ? static_cast<size_t>(s->crop.width) : s->cinfo.output_width;
  s->stride = width * s->cinfo.output_components + kRowPaddingBytes;
  if (s->IsCmyk()) {
    s->rgb.resize(static_cast<size_t>(s->crop.width) * 3);
    s->converted.resize(static_cast<size_t>(s->crop.width) * 3 + kRowPaddingBytes);
  }
  s->rows_left = s->skip_rows + s->crop.height;
  s->rows_ready = 0;
  s->next_ready = 0;
  s->phase = JpegDecompressor::Phase::kRows;
  for (int i = 0; i < s->skip_rows; ++i) SYSTOLE_RETURN_IF_ERROR(NextRow().status());
  return absl::OkStatus();
}

void UncheckedJpegDecoder::DecodeAhead(UncheckedJpegDecoder& a, UncheckedJpegDecoder& b) {
  SYSTOLE_CHECK(!a.is_ahead() && !b.is_ahead());
  JpegEntropyDecoder::DecodeAhead(a.state_->entropy, b.state_->entropy);
  for (UncheckedJpegDecoder* const decoder : {&a, &b}) {
    if (decoder->is_ahead()) decoder->KeepRows();
  }
}

// Makes rows from the decoded coefficients, so that other coefficients can use their memory.
void UncheckedJpegDecoder::KeepRows() {
  JpegDecompressor* s = state_.get();
  if (s->scale == JpegScale::kFull || s->IsCmyk() || !s->entropy.in_place()) return;
  s->kept_stride =
      static_cast<size_t>(s->crop.width) * s->cinfo.output_components + kRowPaddingBytes;
  const int room = static_cast<int>(std::min(kMaxKeptBytes / s->kept_stride, size_t{1} << 16));
  int end = std::min({s->entropy.ready_row() - s->crop.y, s->crop.height, room});
  // If a call of libjpeg fails, all rows of this call are lost. The number of rows before an error
  // must not depend on the second image. So each call asks for as many rows as a call by NextRows
  // would.
  if (end < s->crop.height && !s->eighth.started()) end -= end % kRowsPerCall;
  if (end <= s->kept_rows) return;
  try {
    s->kept.resize(static_cast<size_t>(std::min(room, s->crop.height)) * s->kept_stride);
    s->rows.resize(std::max(s->rows.size(), s->stride * kRowsPerCall));
  } catch (const std::bad_alloc&) {
    return;  // NextRows tries again.
  }
  while (s->kept_rows < end) {
    const absl::StatusOr<DecodedRows> rows = DecodeRows(end - s->kept_rows);
    if (!rows.ok()) {
      s->kept_status = rows.status();
      return;
    }
    for (int i = 0; i < rows->count; ++i, ++s->kept_rows) {
      std::memcpy(s->kept.data() + static_cast<size_t>(s->kept_rows) * s->kept_stride,
                  rows->data + static_cast<size_t>(i) * rows->stride_bytes,
                  s->kept_stride - kRowPaddingBytes);
    }
  }
  // Nothing is decoded ahead if libjpeg took over while the rows were made.
  if (s->entropy.in_place() && s->entropy.is_ahead()) s->entropy.GoFurtherAhead();
}

bool UncheckedJpegDecoder::is_ahead() const {
  return state_->phase != JpegDecompressor::Phase::kRows || state_->entropy.is_ahead();
}

// Starts the crop again without our own entropy decoder. Drops the first `rows` rows, which were
// returned or kept before.
absl::Status UncheckedJpegDecoder::DecodeByLibrary(int rows) {
  SYSTOLE_RETURN_IF_ERROR(ReadHeader(state_->jpeg).status());
  state_->own_entropy = false;
  // StartCrop() forgets the rows that KeepRows() made. They are still to be returned, so they are
  // restored below.
  const int kept_rows = state_->kept_rows;
  const int next_kept = state_->next_kept;
  SYSTOLE_RETURN_IF_ERROR(StartCrop(state_->crop, state_->scale));
  for (int i = 0; i < rows; ++i) SYSTOLE_RETURN_IF_ERROR(NextRow().status());
  state_->kept_rows = kept_rows;
  state_->next_kept = next_kept;
  return absl::OkStatus();
}

absl::StatusOr<DecodedRows> UncheckedJpegDecoder::NextRows(int max_rows) {
  JpegDecompressor* s = state_.get();
  SYSTOLE_CHECK(max_rows > 0);
  if (s->next_kept < s->kept_rows) {
    const uint8_t* const row = s->kept.data() + static_cast<size_t>(s->next_kept) * s->kept_stride;
    const int count = std::min(max_rows, s->kept_rows - s->next_kept);
    s->next_kept += count;
    return DecodedRows{row, s->kept_stride, count};
  }
  SYSTOLE_RETURN_IF_ERROR(s->kept_status);
  return DecodeRows(max_rows);
}

absl::StatusOr<DecodedRows> UncheckedJpegDecoder::DecodeRows(int max_rows) {
  JpegDecompressor* s = state_.get();
  if (s->phase == JpegDecompressor::Phase::kWaiting) SYSTOLE_RETURN_IF_ERROR(BeginRows());
  if (s->phase != JpegDecompressor::Phase::kRows || s->rows_left == 0) {
    return absl::FailedPreconditionError("no row of a crop is left to decode");
  }
  // Allocated only now: many images may have begun, but only one is decoded at a time.
  if (s->rows.size() < s->stride * kRowsPerCall) s->rows.resize(s->stride * kRowsPerCall);
  if (s->next_ready == s->rows_ready && !s->MakeRows()) {
    s->phase = JpegDecompressor::Phase::kIdle;
    if (!s->entropy.gave_up()) return s->Error();
    SYSTOLE_RETURN_IF_ERROR(DecodeByLibrary(s->skip_rows + s->crop.height - s->rows_left));
    return DecodeRows(max_rows);
  }
  const uint8_t* row = s->rows.data() + s->next_ready * s->stride + s->skip_bytes;
  const int count = s->IsCmyk() ? 1 : std::min(max_rows, s->rows_ready - s->next_ready);
  s->next_ready += count;
  s->rows_left -= count;
  if (!s->IsCmyk()) return DecodedRows{row, s->stride, count};
  const bool inverted = s->cinfo.saw_Adobe_marker != FALSE;
  if (s->options.channels == 3) {
    CmykToRgb(row, s->crop.width, inverted, s->converted.data());
  } else {
    CmykToRgb(row, s->crop.width, inverted, s->rgb.data());
    RgbToGrey(s->rgb.data(), s->crop.width, s->converted.data());
  }
  return DecodedRows{s->converted.data(), 0, 1};
}

absl::StatusOr<const uint8_t*> UncheckedJpegDecoder::NextRow() {
  SYSTOLE_ASSIGN_OR_RETURN(const DecodedRows rows, NextRows(1));
  return rows.data;
}

absl::Status UncheckedJpegDecoder::Decode(const CropRect& crop, absl::Span<uint8_t> out,
                                          JpegScale scale) {
  JpegDecompressor* s = state_.get();
  const size_t row_bytes = static_cast<size_t>(std::max(0, crop.width)) * s->options.channels;
  if (crop.height >= 0 && out.size() != row_bytes * crop.height) {
    return absl::InvalidArgumentError(absl::StrCat("output has ", out.size(), " bytes, want ",
                                                   row_bytes * crop.height, " for a crop of ",
                                                   crop.height, "x", crop.width));
  }
  SYSTOLE_RETURN_IF_ERROR(StartCrop(crop, scale));
  for (int y = 0; y < crop.height; ++y) {
    SYSTOLE_ASSIGN_OR_RETURN(const uint8_t* row, NextRow());
    std::memcpy(out.data() + y * row_bytes, row, row_bytes);
  }
  if (s->eighth.started() && crop.y + crop.height == static_cast<int>(s->cinfo.output_height) &&
      !s->entropy.ends_image()) {
    // libjpeg decides what the bytes after the scan mean.
    SYSTOLE_RETURN_IF_ERROR(DecodeByLibrary(crop.height));
  }
  s->phase = JpegDecompressor::Phase::kIdle;
  if (s->cinfo.output_scanline == s->cinfo.output_height &&
      !RunGuarded(&s->error, &JpegDecompressor::FinishStep, s)) {
    return s->Error();
  }
  return absl::OkStatus();
}

void UncheckedJpegDecoder::EndImage() {
  state_->phase = JpegDecompressor::Phase::kIdle;
  jpeg_destroy_decompress(&state_->cinfo);
  if (state_->rows.size() > kMaxKeptRowBytes) state_->rows = {};
  if (state_->kept.size() > kMaxKeptRowBytes) state_->kept = {};
}

bool UncheckedJpegDecoder::by_library() const { return !state_->entropy.in_place(); }

int64_t UncheckedJpegDecoder::warnings() const { return state_->error.manager.num_warnings; }

}  // namespace systole
