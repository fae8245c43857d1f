// The state and the steps of the decoding of one image: libjpeg's decoder with our entropy decoder
// in it, and the rows that libjpeg makes. Each step may jump out of libjpeg. So each step has
// trivial locals only, and is run by RunGuarded() (jpeg_errors.h). Only UncheckedJpegDecoder uses
// this file, and decides when each step runs.
//
// Single-thread.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_JPEG_DECOMPRESSOR_H_
#define SYSTOLE_CORE_IMAGE_JPEG_JPEG_DECOMPRESSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/image/jpeg/huffman_decoder.h"
#include "core/image/jpeg/jpeg_eighth.h"
#include "core/image/jpeg/jpeg_entropy.h"
#include "core/image/jpeg/jpeg_errors.h"
#include "core/image/jpeg/jpeg_options.h"
#include "core/image/window/crop.h"
// Included last, because it needs <cstdio> and defines many macros.
#include "jpeglib.h"

namespace systole {

// How many rows each call asks of libjpeg: so many that the cost of setjmp does not matter, and so
// few that they stay in the cache.
inline constexpr int kRowsPerCall = 8;
static_assert(kRowsPerCall >= JpegEighth::kMaxRows);

struct JpegDecompressor {
  enum class Phase { kIdle, kHeader, kWaiting, kRows };

  jpeg_decompress_struct cinfo = {};
  JpegErrors error = {};
  jpeg_progress_mgr progress = {};
  JpegDecoderOptions options;
  Phase phase = Phase::kIdle;
  absl::string_view jpeg;
  JpegEntropyDecoder entropy;
  JpegEighth eighth;
  bool own_entropy = false;  // Whether our entropy decoder may decode this image.

  CropRect crop;  // The crop in the image at `scale`.
  JpegScale scale = JpegScale::kFull;
  int jump_rows = 0;          // Rows to skip before the first row is decoded.
  int skip_rows = 0;          // Rows to decode and drop before the first row of the crop.
  size_t skip_bytes = 0;      // From the start of a decoded row to the first pixel of the crop.
  size_t stride = 0;          // From one row of `rows` to the next, in bytes.
  std::vector<uint8_t> rows;  // [kRowsPerCall, stride], as libjpeg writes them.
  std::vector<uint8_t> converted;  // One row after conversion from CMYK.
  std::vector<uint8_t> rgb;        // One row on the way from CMYK to grey.
  int rows_ready = 0;              // Rows in `rows` that are decoded.
  int next_ready = 0;
  int rows_left = 0;  // Rows that were neither returned nor kept yet, including skip_rows.

  // Rows that KeepRows() of the decoder decoded ahead, and the error that stopped it.
  std::vector<uint8_t> kept;  // [kept_rows, kept_stride].
  size_t kept_stride = 0;
  int kept_rows = 0;
  int next_kept = 0;
  absl::Status kept_status;

  explicit JpegDecompressor(const JpegDecoderOptions& options)
      : options(options),
        entropy(options.huffman_decoder != nullptr ? options.huffman_decoder
                                                   : std::make_shared<HuffmanDecoder>()) {
    error.fail_on_warning = options.fail_on_warning;
    cinfo.err = InitErrors(&error);
  }
  JpegDecompressor(const JpegDecompressor&) = delete;
  JpegDecompressor& operator=(const JpegDecompressor&) = delete;
  ~JpegDecompressor() { jpeg_destroy_decompress(&cinfo); }

  bool IsCmyk() const { return cinfo.out_color_space == JCS_CMYK; }
  // Whether jpeg_crop_scanline works. At a smaller scale libjpeg may make more pixels of a block of
  // colour than of a block of luma, and then interpolates less. jpeg_crop_scanline does not allow
  // for these additional pixels. With a sampling factor of at most 2 the call is still safe,
  // because nothing is left to interpolate.
  bool CanCropColumns() const { return scale == JpegScale::kFull || cinfo.max_h_samp_factor <= 2; }
  absl::Status Error() const;
  bool MakeRows();

  // Steps under RunGuarded: trivial locals only.
  static void CreateStep(JpegDecompressor* s);
  static void HeaderStep(JpegDecompressor* s);
  static void StartStep(JpegDecompressor* s);
  static void RowsStep(JpegDecompressor* s);
  static void FinishStep(JpegDecompressor* s);
  static void CheckProgress(j_common_ptr cinfo);
  static void CheckWanted(JpegDecompressor* s);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_DECOMPRESSOR_H_
