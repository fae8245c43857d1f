#include "core/image/jpeg/jpeg_decoder.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/image/jpeg/huffman_decoder.h"
#include "core/image/jpeg/jpeg_check.h"
#include "core/image/jpeg/jpeg_eighth.h"
#include "core/image/jpeg/jpeg_entropy.h"
#include "core/image/jpeg/jpeg_errors.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/scratch_scope.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
// Last: needs <cstdio>, defines many macros.
#include "jpeglib.h"

namespace systole {
namespace {

// Columns decoded beyond the crop on either side. Interpolated colour of a column looks at its
// neighbours, and libjpeg treats the first and last column it decodes as the image's edge.
constexpr int kMarginColumns = 2;
// Rows asked of libjpeg at a time: enough to spread the cost of setjmp, few enough to stay in
// cache.
constexpr int kRowsPerCall = 8;
static_assert(kRowsPerCall >= JpegEighth::kMaxRows);

// Rows kept from image to image, of 10,000 pixels: those of a wider one are not worth their memory.
constexpr size_t kMaxKeptRowBytes = 256 << 10;

// What bytes that are no JPEG look like.
const char* ForeignFormat(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\x89PNG")) return "a PNG image";
  if (absl::StartsWith(bytes, "GIF8")) return "a GIF image";
  if (absl::StartsWith(bytes, "BM")) return "a BMP image";
  if (absl::StartsWith(bytes, "RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP") {
    return "a WebP image";
  }
  return "no image format known here";
}

// TensorFlow's integer formulas. With an Adobe marker the four inks are stored inverted.
void CmykToRgb(const uint8_t* cmyk, int width, bool inverted, uint8_t* rgb) {
  for (int i = 0; i < width; ++i, cmyk += 4, rgb += 3) {
    const int k = inverted ? cmyk[3] : 255 - cmyk[3];
    for (int c = 0; c < 3; ++c) {
      const int ink = inverted ? cmyk[c] : 255 - cmyk[c];
      rgb[c] = static_cast<uint8_t>(k * ink / 255);
    }
  }
}

// Whether libjpeg will smooth block borders, as it does for a progressive image whose low bits
// never came (damaged or written so). Smoothing looks at blocks two away, which a decode of part of
// the image does not have: its pixels then depend on the part.
bool WillSmooth(const jpeg_decompress_struct& cinfo) {
  if (cinfo.coef_bits == nullptr) return false;  // Not progressive.
  for (int component = 0; component < cinfo.num_components; ++component) {
    for (int i = 1; i < DCTSIZE2; ++i) {
      if (cinfo.coef_bits[component][i] != 0) return true;
    }
  }
  return false;
}

// What libjpeg keeps of an image of several scans until the last one has come: all coefficients.
int64_t CoefficientBytes(const jpeg_decompress_struct& cinfo) {
  int64_t blocks = 0;
  for (int i = 0; i < cinfo.num_components; ++i) {
    const jpeg_component_info& component = cinfo.comp_info[i];
    // Rounded up to whole groups of blocks, as libjpeg does.
    const auto rounded = [](JDIMENSION count, int group) {
      return (int64_t{count} + group - 1) / group * group;
    };
    blocks += rounded(component.width_in_blocks, component.h_samp_factor) *
              rounded(component.height_in_blocks, component.v_samp_factor);
  }
  return blocks * int64_t{sizeof(JBLOCK)};
}

// libjpeg's own luma (ITU-R BT.601 in 16-bit fixed point), for images it cannot turn grey itself.
void RgbToGrey(const uint8_t* rgb, int width, uint8_t* grey) {
  for (int i = 0; i < width; ++i, rgb += 3) {
    grey[i] = static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
  }
}

}  // namespace

struct JpegDecoder::State {
  enum class Phase { kIdle, kHeader, kWaiting, kRows };

  jpeg_decompress_struct cinfo = {};
  JpegErrors error = {};
  jpeg_progress_mgr progress = {};
  JpegDecoderOptions options;
  Phase phase = Phase::kIdle;
  absl::string_view jpeg;
  JpegEntropyDecoder entropy;
  JpegEighth eighth;
  bool own_entropy = false;  // For this image.

  CropRect crop;  // At `scale`.
  JpegScale scale = JpegScale::kFull;
  int jump_rows = 0;          // To be skipped before the first row is decoded,
  int skip_rows = 0;          // or to decode and drop before the first row of the crop.
  size_t skip_bytes = 0;      // From the start of a decoded row to the first pixel of the crop.
  size_t stride = 0;          // Of `rows`.
  std::vector<uint8_t> rows;  // [kRowsPerCall, stride], as libjpeg writes them.
  std::vector<uint8_t> converted;  // One row after conversion from CMYK.
  std::vector<uint8_t> rgb;        // On the way from CMYK to grey.
  int rows_ready = 0;              // In `rows`.
  int next_ready = 0;
  int rows_left = 0;  // Of the crop, not yet returned, or kept.

  // Rows that KeepRows() made, and what ended them.
  std::vector<uint8_t> kept;  // [kept_rows, kept_stride].
  size_t kept_stride = 0;
  int kept_rows = 0;
  int next_kept = 0;
  absl::Status kept_status;

  explicit State(const JpegDecoderOptions& options)
      : options(options),
        entropy(options.huffman_decoder != nullptr ? options.huffman_decoder
                                                   : std::make_shared<HuffmanDecoder>()) {
    error.fail_on_warning = options.fail_on_warning;
    cinfo.err = InitErrors(&error);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { jpeg_destroy_decompress(&cinfo); }

  bool IsCmyk() const { return cinfo.out_color_space == JCS_CMYK; }
  // At a smaller scale libjpeg may make colour of more pixels than a block's share, so that it has
  // less to interpolate. jpeg_crop_scanline forgets that. It does no harm where nothing is left to
  // interpolate, as behind a factor of 2.
  bool CanCropColumns() const { return scale == JpegScale::kFull || cinfo.max_h_samp_factor <= 2; }
  absl::Status Error() const;
  bool MakeRows();

  // Steps under RunGuarded: trivial locals only.
  static void CreateStep(State* s);
  static void HeaderStep(State* s);
  static void StartStep(State* s);
  static void RowsStep(State* s);
  static void FinishStep(State* s);
  static void CheckProgress(j_common_ptr cinfo);
  static void CheckWanted(State* s);
};

absl::Status JpegDecoder::State::Error() const {
  std::string message = absl::StrCat("JPEG of ", jpeg.size(), " bytes");
  if (cinfo.image_width > 0) {
    absl::StrAppend(&message, ", ", cinfo.image_width, "x", cinfo.image_height, " pixels");
  }
  absl::StrAppend(&message, ": ", error.message);
  if (cinfo.output_scanline > 0) {
    absl::StrAppend(&message, " (near row ", cinfo.output_scanline, ")");
  }
  if (error.code == absl::StatusCode::kUnavailable) {
    absl::StrAppend(&message,
                    "; libjpeg got no memory, the image may be whole: give the process more memory "
                    "(or a larger JPEGMEM, if that is set) and try again");
  }
  return absl::Status(error.code, message);
}

void JpegDecoder::State::CreateStep(State* s) {
  jpeg_create_decompress(&s->cinfo);
  s->progress.progress_monitor = CheckProgress;
  s->cinfo.progress = &s->progress;
  s->cinfo.client_data = s;
}

// Jumps out of the step if nobody wants the image any more.
void JpegDecoder::State::CheckWanted(State* s) {
  if (!InterruptRequested()) return;
  std::snprintf(s->error.message, sizeof(s->error.message), "nobody wants it any more");
  s->error.code = absl::StatusCode::kCancelled;
  std::longjmp(s->error.jump, 1);
}

// libjpeg calls it for each row of blocks, and for the rows that it is asked for.
void JpegDecoder::State::CheckProgress(j_common_ptr common) {
  auto* s = static_cast<State*>(common->client_data);
  CheckWanted(s);
  if (s->cinfo.input_scan_number <= s->options.max_scans) return;
  std::snprintf(s->error.message, sizeof(s->error.message),
                "more than %d scans, the limit (JpegDecoderOptions.max_scans)",
                s->options.max_scans);
  s->error.code = absl::StatusCode::kResourceExhausted;
  std::longjmp(s->error.jump, 1);
}

void JpegDecoder::State::HeaderStep(State* s) {
  CreateStep(s);
  s->error.in_image_data = false;
  jpeg_mem_src(&s->cinfo, reinterpret_cast<const unsigned char*>(s->jpeg.data()),
               static_cast<unsigned long>(s->jpeg.size()));  // NOLINT: libjpeg's type.
  jpeg_read_header(&s->cinfo, TRUE);
}

void JpegDecoder::State::StartStep(State* s) {
  jpeg_decompress_struct* cinfo = &s->cinfo;
  s->error.in_image_data = true;
  jpeg_start_decompress(cinfo);
  s->jump_rows = 0;
  s->skip_rows = 0;
  s->skip_bytes = 0;
  if (s->own_entropy && s->scale == JpegScale::kEighth &&
      s->eighth.Start(cinfo, s->crop, s->entropy)) {
    return;
  }
  if (WillSmooth(*cinfo)) {
    s->skip_rows = s->crop.y;
    s->skip_bytes = static_cast<size_t>(s->crop.x) * cinfo->output_components;
    return;
  }
  // jpeg_crop_scanline moves the start left to a block border and widens by as much.
  const int begin = std::max(0, s->crop.x - kMarginColumns);
  const int end =
      std::min(static_cast<int>(cinfo->output_width), s->crop.x + s->crop.width + kMarginColumns);
  JDIMENSION x = static_cast<JDIMENSION>(begin);
  JDIMENSION width = static_cast<JDIMENSION>(end - begin);
  if (width < cinfo->output_width && s->CanCropColumns()) {
    jpeg_crop_scanline(cinfo, &x, &width);
  } else {
    x = 0;
  }
  s->skip_bytes = (s->crop.x - x) * static_cast<size_t>(cinfo->output_components);
  s->jump_rows = s->crop.y;
  if (s->own_entropy) {
    s->entropy.Replace(cinfo, x, s->crop.y, s->crop.y + s->crop.height,
                       DCTSIZE / static_cast<int>(s->scale));
  }
}

void JpegDecoder::State::RowsStep(State* s) {
  CheckWanted(s);
  const JDIMENSION jump = static_cast<JDIMENSION>(s->jump_rows);
  s->jump_rows = 0;
  if (jump > 0) jpeg_skip_scanlines(&s->cinfo, jump);
  JSAMPROW rows[kRowsPerCall];
  for (int i = 0; i < kRowsPerCall; ++i) rows[i] = s->rows.data() + i * s->stride;
  const int want = std::min(kRowsPerCall, s->rows_left);
  s->rows_ready = 0;
  s->next_ready = 0;
  while (s->rows_ready < want) {
    // The memory source never suspends, so this makes progress or raises.
    s->rows_ready += static_cast<int>(jpeg_read_scanlines(
        &s->cinfo, rows + s->rows_ready, static_cast<JDIMENSION>(want - s->rows_ready)));
  }
}

// False: the error is in `error`, or the entropy decoder gave up.
bool JpegDecoder::State::MakeRows() {
  if (!eighth.started()) return RunGuarded(&error, &State::RowsStep, this);
  next_ready = 0;
  rows_ready = eighth.NextRows(rows.data(), stride);
  return rows_ready > 0;
}

void JpegDecoder::State::FinishStep(State* s) { jpeg_finish_decompress(&s->cinfo); }

JpegDecoder::JpegDecoder(std::unique_ptr<State> state) : state_(std::move(state)) {}
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;
JpegDecoder::~JpegDecoder() = default;

absl::StatusOr<JpegDecoder> JpegDecoder::Create(const JpegDecoderOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, CreateUnchecked(options));
  if (!OwnJpegEntropyDecoding().ok()) decoder.state_->options.library_entropy_decoder = true;
  return decoder;
}

absl::StatusOr<JpegDecoder> JpegDecoder::CreateUnchecked(const JpegDecoderOptions& options) {
  if (options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError(absl::StrCat("JpegDecoderOptions.channels is ",
                                                   options.channels, ", want 1 (grey) or 3 (RGB)"));
  }
  if (options.max_pixels < 1 || options.max_scans < 1) {
    return absl::InvalidArgumentError(absl::StrCat("JpegDecoderOptions: max_pixels is ",
                                                   options.max_pixels, " and max_scans is ",
                                                   options.max_scans, ", want both at least 1"));
  }
  auto state = std::make_unique<State>(options);
  // Tried once here: another library than the headers' is no image's fault.
  if (!RunGuarded(&state->error, &State::CreateStep, state.get())) return state->Error();
  return JpegDecoder(std::move(state));
}

absl::StatusOr<ImageInfo> JpegDecoder::ReadHeader(absl::string_view jpeg) {
  State* s = state_.get();
  // Each image has a libjpeg decoder of its own, at 0.2 us. One used again would decode an image
  // that lacks tables with those of an earlier image. And with plain upsampling, where no colour
  // converter is made, jpeg_skip_scanlines (2.1) would write through the pointer to an earlier
  // image's, which is freed: into this image's coefficients.
  jpeg_destroy_decompress(&s->cinfo);
  s->error.manager.num_warnings = 0;
  s->phase = State::Phase::kIdle;
  s->own_entropy = !s->options.library_entropy_decoder;
  s->entropy.Reset();
  s->eighth.Reset();
  s->jpeg = jpeg;
  if (jpeg.size() < 3 || !absl::StartsWith(jpeg, "\xff\xd8\xff")) {
    return absl::DataLossError(absl::StrCat("image of ", jpeg.size(), " bytes is not a JPEG; ",
                                            jpeg.empty() ? "it is empty" : "it looks like ",
                                            jpeg.empty() ? "" : ForeignFormat(jpeg)));
  }
  if (!RunGuarded(&s->error, &State::HeaderStep, s)) return s->Error();
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
  s->phase = State::Phase::kHeader;
  return ImageInfo{static_cast<int>(s->cinfo.image_width), static_cast<int>(s->cinfo.image_height),
                   s->cinfo.num_components};
}

absl::Status JpegDecoder::StartCrop(const CropRect& crop, JpegScale scale) {
  State* s = state_.get();
  if (s->phase != State::Phase::kHeader) {
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
  s->phase = State::Phase::kWaiting;
  // An image of several scans is decoded whole to coefficients, and nothing of it can be done
  // beside another's. Of many images that have begun, only the one whose rows are taken should have
  // them.
  return jpeg_has_multiple_scans(&s->cinfo) ? absl::OkStatus() : BeginRows();
}

absl::Status JpegDecoder::BeginRows() {
  State* s = state_.get();
  s->phase = State::Phase::kIdle;
  if (jpeg_has_multiple_scans(&s->cinfo) &&
      !NeedScratch(ScratchUse::kCoefficients, CoefficientBytes(s->cinfo))) {
    return InterruptedError();
  }
  if (!RunGuarded(&s->error, &State::StartStep, s)) return s->Error();
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
  s->phase = State::Phase::kRows;
  for (int i = 0; i < s->skip_rows; ++i) SYSTOLE_RETURN_IF_ERROR(NextRow().status());
  return absl::OkStatus();
}

void JpegDecoder::DecodeAhead(JpegDecoder& a, JpegDecoder& b) {
  SYSTOLE_CHECK(!a.is_ahead() && !b.is_ahead());
  JpegEntropyDecoder::DecodeAhead(a.state_->entropy, b.state_->entropy);
  for (JpegDecoder* const decoder : {&a, &b}) {
    if (decoder->is_ahead()) decoder->KeepRows();
  }
}

// Makes rows of the coefficients that are there, so that they leave memory for others.
void JpegDecoder::KeepRows() {
  State* s = state_.get();
  if (s->scale == JpegScale::kFull || s->IsCmyk() || !s->entropy.in_place()) return;
  s->kept_stride =
      static_cast<size_t>(s->crop.width) * s->cinfo.output_components + kRowPaddingBytes;
  const int room = static_cast<int>(std::min(kMaxKeptBytes / s->kept_stride, size_t{1} << 16));
  int end = std::min({s->entropy.ready_row() - s->crop.y, s->crop.height, room});
  // In the calls in which NextRows would ask libjpeg for them: an error takes the other rows of its
  // call with it, and how many rows come before it must not depend on what is decoded beside it.
  if (end < s->crop.height && !s->eighth.started()) end -= end % kRowsPerCall;
  if (end <= s->kept_rows) return;
  try {
    s->kept.resize(static_cast<size_t>(std::min(room, s->crop.height)) * s->kept_stride);
    s->rows.resize(std::max(s->rows.size(), s->stride * kRowsPerCall));
  } catch (const std::bad_alloc&) {
    return;  // NextRows asks again.
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
  // None if libjpeg took over on the way.
  if (s->entropy.in_place() && s->entropy.is_ahead()) s->entropy.GoFurtherAhead();
}

bool JpegDecoder::is_ahead() const {
  return state_->phase != State::Phase::kRows || state_->entropy.is_ahead();
}

// Starts the crop again and drops the `rows` that were returned before.
absl::Status JpegDecoder::DecodeByLibrary(int rows) {
  SYSTOLE_RETURN_IF_ERROR(ReadHeader(state_->jpeg).status());
  state_->own_entropy = false;
  // Stay as they are, and are none of those that are dropped here.
  const int kept_rows = state_->kept_rows;
  const int next_kept = state_->next_kept;
  SYSTOLE_RETURN_IF_ERROR(StartCrop(state_->crop, state_->scale));
  for (int i = 0; i < rows; ++i) SYSTOLE_RETURN_IF_ERROR(NextRow().status());
  state_->kept_rows = kept_rows;
  state_->next_kept = next_kept;
  return absl::OkStatus();
}

absl::StatusOr<DecodedRows> JpegDecoder::NextRows(int max_rows) {
  State* s = state_.get();
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

absl::StatusOr<DecodedRows> JpegDecoder::DecodeRows(int max_rows) {
  State* s = state_.get();
  if (s->phase == State::Phase::kWaiting) SYSTOLE_RETURN_IF_ERROR(BeginRows());
  if (s->phase != State::Phase::kRows || s->rows_left == 0) {
    return absl::FailedPreconditionError("no row of a crop is left to decode");
  }
  // Not before they are wanted: of many images that have begun, one is decoded at a time.
  if (s->rows.size() < s->stride * kRowsPerCall) s->rows.resize(s->stride * kRowsPerCall);
  if (s->next_ready == s->rows_ready && !s->MakeRows()) {
    s->phase = State::Phase::kIdle;
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

absl::StatusOr<const uint8_t*> JpegDecoder::NextRow() {
  SYSTOLE_ASSIGN_OR_RETURN(const DecodedRows rows, NextRows(1));
  return rows.data;
}

absl::Status JpegDecoder::Decode(const CropRect& crop, absl::Span<uint8_t> out, JpegScale scale) {
  State* s = state_.get();
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
    // libjpeg has the last word on what follows.
    SYSTOLE_RETURN_IF_ERROR(DecodeByLibrary(crop.height));
  }
  s->phase = State::Phase::kIdle;
  if (s->cinfo.output_scanline == s->cinfo.output_height &&
      !RunGuarded(&s->error, &State::FinishStep, s)) {
    return s->Error();
  }
  return absl::OkStatus();
}

void JpegDecoder::EndImage() {
  state_->phase = State::Phase::kIdle;
  jpeg_destroy_decompress(&state_->cinfo);
  if (state_->rows.size() > kMaxKeptRowBytes) state_->rows = {};
  if (state_->kept.size() > kMaxKeptRowBytes) state_->kept = {};
}

bool JpegDecoder::by_library() const { return !state_->entropy.in_place(); }

int64_t JpegDecoder::warnings() const { return state_->error.manager.num_warnings; }

}  // namespace systole
