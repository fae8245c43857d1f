#include "core/image/jpeg/jpeg_encoder.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/image/jpeg/jpeg_errors.h"
// Included last, because it needs <cstdio> and defines many macros.
#include "jpeglib.h"

namespace systole {
namespace {

struct EncoderState {
  jpeg_compress_struct cinfo = {};
  JpegErrors error = {};
  JpegEncoderOptions options;
  const uint8_t* pixels = nullptr;
  int channels = 0;
  unsigned char* bytes = nullptr;  // Owned; malloc'ed by libjpeg.
  unsigned long size = 0;          // NOLINT: libjpeg's type.

  ~EncoderState() {
    jpeg_destroy_compress(&cinfo);
    std::free(bytes);
  }

  static void EncodeStep(EncoderState* s);
};

void SetSampling(JpegSampling sampling, jpeg_component_info* luma) {
  switch (sampling) {
    case JpegSampling::k444:
      luma->h_samp_factor = luma->v_samp_factor = 1;
      break;
    case JpegSampling::k422:
      luma->h_samp_factor = 2;
      luma->v_samp_factor = 1;
      break;
    case JpegSampling::k420:
      luma->h_samp_factor = luma->v_samp_factor = 2;
      break;
    case JpegSampling::k440:
      luma->h_samp_factor = 1;
      luma->v_samp_factor = 2;
      break;
    case JpegSampling::k411:
      luma->h_samp_factor = 4;
      luma->v_samp_factor = 1;
      break;
    case JpegSampling::k410:
      luma->h_samp_factor = 4;
      luma->v_samp_factor = 2;
      break;
  }
}

void EncoderState::EncodeStep(EncoderState* s) {
  jpeg_compress_struct* cinfo = &s->cinfo;
  const JDIMENSION width = cinfo->image_width;
  const JDIMENSION height = cinfo->image_height;
  jpeg_create_compress(cinfo);
  jpeg_mem_dest(cinfo, &s->bytes, &s->size);
  cinfo->image_width = width;
  cinfo->image_height = height;
  cinfo->input_components = s->channels;
  cinfo->in_color_space = s->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(cinfo);
  jpeg_set_quality(cinfo, s->options.quality, TRUE);
  if (s->channels == 3) SetSampling(s->options.sampling, &cinfo->comp_info[0]);
  if (s->options.progressive) jpeg_simple_progression(cinfo);
  cinfo->restart_in_rows = s->options.restart_rows;
  jpeg_start_compress(cinfo, TRUE);
  const size_t row_bytes = static_cast<size_t>(width) * s->channels;
  while (cinfo->next_scanline < height) {
    // libjpeg only reads the pixels, but its interface takes no pointer to const.
    JSAMPROW row = const_cast<JSAMPROW>(s->pixels + cinfo->next_scanline * row_bytes);
    jpeg_write_scanlines(cinfo, &row, 1);
  }
  jpeg_finish_compress(cinfo);
}

}  // namespace

absl::StatusOr<std::string> EncodeJpeg(absl::Span<const uint8_t> pixels, int width, int height,
                                       int channels, const JpegEncoderOptions& options) {
  if (channels != 1 && channels != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("EncodeJpeg: channels is ", channels, ", want 1 (grey) or 3 (RGB)"));
  }
  if (width < 1 || width > JPEG_MAX_DIMENSION || height < 1 || height > JPEG_MAX_DIMENSION) {
    return absl::InvalidArgumentError(absl::StrCat("EncodeJpeg: image is ", width, "x", height,
                                                   " pixels, want 1 to ", JPEG_MAX_DIMENSION,
                                                   " each"));
  }
  if (static_cast<int64_t>(pixels.size()) != int64_t{width} * height * channels) {
    return absl::InvalidArgumentError(absl::StrCat("EncodeJpeg: ", pixels.size(),
                                                   " bytes of pixels, want ",
                                                   int64_t{width} * height * channels));
  }
  if (options.quality < 1 || options.quality > 100 || options.restart_rows < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("JpegEncoderOptions: quality is ", options.quality, ", want 1 to 100; ",
                     "restart_rows is ", options.restart_rows, ", want 0 or more"));
  }
  EncoderState state;
  state.options = options;
  state.pixels = pixels.data();
  state.channels = channels;
  state.cinfo.image_width = static_cast<JDIMENSION>(width);
  state.cinfo.image_height = static_cast<JDIMENSION>(height);
  state.cinfo.err = InitErrors(&state.error);
  if (!RunGuarded(&state.error, &EncoderState::EncodeStep, &state)) {
    return absl::Status(state.error.code, absl::StrCat("EncodeJpeg: ", state.error.message));
  }
  return std::string(reinterpret_cast<const char*>(state.bytes), state.size);
}

}  // namespace systole
