#include "core/image/jpeg/jpeg_decompressor.h"

#include <algorithm>
#include <csetjmp>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"

namespace systole {
namespace {

// Columns decoded beyond the crop on either side. Interpolated colour of a column depends on the
// columns beside it, and libjpeg treats the first and last column it decodes as the image's edge.
constexpr int kMarginColumns = 2;

// Whether libjpeg will smooth block borders. libjpeg does so if a progressive image lacks low bits,
// because the image is damaged or was written without these bits. Smoothing reads blocks up to two
// places away. If only a part is decoded, some of these blocks are missing, so pixels near the
// part's edge would differ.
bool WillSmooth(const jpeg_decompress_struct& cinfo) {
  if (cinfo.coef_bits == nullptr) return false;  // Not progressive.
  for (int component = 0; component < cinfo.num_components; ++component) {
    for (int i = 1; i < DCTSIZE2; ++i) {
      if (cinfo.coef_bits[component][i] != 0) return true;
    }
  }
  return false;
}

}  // namespace

absl::Status JpegDecompressor::Error() const {
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
                    "; libjpeg got no memory, so the image may be good: give the process more "
                    "memory (or a larger JPEGMEM, if that is set) and try again");
  }
  return absl::Status(error.code, message);
}

void JpegDecompressor::CreateStep(JpegDecompressor* s) {
  jpeg_create_decompress(&s->cinfo);
  s->progress.progress_monitor = CheckProgress;
  s->cinfo.progress = &s->progress;
  s->cinfo.client_data = s;
}

// Jumps out of the step if the thread was interrupted, because the image is no longer needed.
void JpegDecompressor::CheckWanted(JpegDecompressor* s) {
  if (!InterruptRequested()) return;
  std::snprintf(s->error.message, sizeof(s->error.message),
                "cancelled: the image is no longer needed");
  s->error.code = absl::StatusCode::kCancelled;
  std::longjmp(s->error.jump, 1);
}

// libjpeg calls this for each row of blocks that it reads, and in each call that asks for rows.
void JpegDecompressor::CheckProgress(j_common_ptr common) {
  auto* s = static_cast<JpegDecompressor*>(common->client_data);
  CheckWanted(s);
  if (s->cinfo.input_scan_number <= s->options.max_scans) return;
  std::snprintf(s->error.message, sizeof(s->error.message),
                "more than %d scans, which is the limit (JpegDecoderOptions.max_scans)",
                s->options.max_scans);
  s->error.code = absl::StatusCode::kResourceExhausted;
  std::longjmp(s->error.jump, 1);
}

void JpegDecompressor::HeaderStep(JpegDecompressor* s) {
  CreateStep(s);
  s->error.in_image_data = false;
  jpeg_mem_src(&s->cinfo, reinterpret_cast<const unsigned char*>(s->jpeg.data()),
               static_cast<unsigned long>(s->jpeg.size()));  // NOLINT: libjpeg's type.
  jpeg_read_header(&s->cinfo, TRUE);
}

void JpegDecompressor::StartStep(JpegDecompressor* s) {
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
  // jpeg_crop_scanline moves `x` left to a block border, and increases `width` by as much.
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

void JpegDecompressor::RowsStep(JpegDecompressor* s) {
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
    // The memory source never suspends, so this call makes at least one row or raises an error.
    s->rows_ready += static_cast<int>(jpeg_read_scanlines(
        &s->cinfo, rows + s->rows_ready, static_cast<JDIMENSION>(want - s->rows_ready)));
  }
}

// Returns false if libjpeg failed, with the error in `error`, or if our entropy decoder gave up.
bool JpegDecompressor::MakeRows() {
  if (!eighth.started()) return RunGuarded(&error, &JpegDecompressor::RowsStep, this);
  next_ready = 0;
  rows_ready = eighth.NextRows(rows.data(), stride);
  return rows_ready > 0;
}

void JpegDecompressor::FinishStep(JpegDecompressor* s) { jpeg_finish_decompress(&s->cinfo); }

}  // namespace systole
