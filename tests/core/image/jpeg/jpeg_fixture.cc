#include "tests/core/image/jpeg/jpeg_fixture.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Needs <cstdio>.
#include "jpeglib.h"

namespace systole {
namespace {

struct DamageManager {
  // The first member: libjpeg hands back its address, which is also the DamageManager's address.
  jpeg_error_mgr manager;
  std::jmp_buf jump;
};

void LeaveByJump(j_common_ptr cinfo) {
  std::longjmp(reinterpret_cast<DamageManager*>(cinfo->err)->jump, 1);
}

void CountOnly(j_common_ptr cinfo, int level) {
  if (level < 0) ++cinfo->err->num_warnings;
}

// This function has only trivial locals, because an error leaves it by longjmp.
void ReadDamaged(jpeg_decompress_struct* cinfo, const std::string& jpeg, bool finish,
                 BareOutcome* outcome) {
  jpeg_create_decompress(cinfo);
  jpeg_mem_src(cinfo, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(cinfo, TRUE);
  jpeg_start_decompress(cinfo);
  const size_t row_bytes = static_cast<size_t>(cinfo->output_width) * cinfo->output_components;
  outcome->pixels.resize(row_bytes * cinfo->output_height);
  while (cinfo->output_scanline < cinfo->output_height) {
    JSAMPROW row = outcome->pixels.data() + cinfo->output_scanline * row_bytes;
    jpeg_read_scanlines(cinfo, &row, 1);
  }
  if (finish) jpeg_finish_decompress(cinfo);
}

}  // namespace

const std::vector<JpegKind>& AllJpegKinds() {
  static const std::vector<JpegKind>& kinds = *new std::vector<JpegKind>{
      {.name = "444"},
      {.name = "422", .h = 2},
      {.name = "420", .h = 2, .v = 2},
      {.name = "440", .v = 2},
      {.name = "411", .h = 4},
      {.name = "410", .h = 4, .v = 2},
      {.name = "grey", .colour = JpegColour::kGrey},
      {.name = "grey with odd sampling", .colour = JpegColour::kGrey, .h = 2, .v = 2},
      {.name = "rgb", .colour = JpegColour::kRgb},
      {.name = "cmyk", .colour = JpegColour::kCmyk},
      {.name = "cmyk without adobe", .colour = JpegColour::kCmykNoAdobe},
      {.name = "ycck 444", .colour = JpegColour::kYcck},
      {.name = "ycck 420", .colour = JpegColour::kYcck, .h = 2, .v = 2},
      {.name = "420 progressive", .h = 2, .v = 2, .progressive = true},
      {.name = "422 progressive", .h = 2, .progressive = true},
      {.name = "444 progressive", .progressive = true},
      {.name = "420 coarse", .h = 2, .v = 2, .progressive = true, .coarse = true},
      {.name = "grey progressive", .colour = JpegColour::kGrey, .progressive = true},
      {.name = "ycck progressive",
       .colour = JpegColour::kYcck,
       .h = 2,
       .v = 2,
       .progressive = true},
      {.name = "420 separate scans", .h = 2, .v = 2, .separate_scans = true},
      {.name = "420 restarts", .h = 2, .v = 2, .restart_interval = 3},
      {.name = "444 restarts", .restart_interval = 7},
      {.name = "420 progressive restarts",
       .h = 2,
       .v = 2,
       .progressive = true,
       .restart_interval = 5},
      {.name = "420 arithmetic", .h = 2, .v = 2, .arithmetic = true},
  };
  return kinds;
}

std::vector<uint8_t> TestPixels(int width, int height, int channels, uint32_t seed) {
  std::vector<uint8_t> pixels;
  pixels.reserve(static_cast<size_t>(width) * height * channels);
  uint32_t state = seed * 2654435761u + 12345u;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        state = state * 1664525u + 1013904223u;
        const int wave = (x * (3 + c) + y * (5 - c)) & 255;
        const int edge = ((x / 13 + y / 9 + c) & 1) * 60;
        pixels.push_back(static_cast<uint8_t>((wave / 2 + edge + (state >> 27)) & 255));
      }
    }
  }
  return pixels;
}

std::string MakeJpeg(const JpegKind& kind, int width, int height, uint32_t seed) {
  const bool grey = kind.colour == JpegColour::kGrey;
  const bool four = kind.colour == JpegColour::kCmyk || kind.colour == JpegColour::kCmykNoAdobe ||
                    kind.colour == JpegColour::kYcck;
  const int channels = grey ? 1 : four ? 4 : 3;
  std::vector<uint8_t> pixels = TestPixels(width, height, channels, seed);

  jpeg_compress_struct cinfo;
  jpeg_error_mgr error;
  cinfo.err = jpeg_std_error(&error);
  jpeg_create_compress(&cinfo);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type.
  jpeg_mem_dest(&cinfo, &bytes, &size);
  cinfo.image_width = width;
  cinfo.image_height = height;
  cinfo.input_components = channels;
  cinfo.in_color_space = grey ? JCS_GRAYSCALE : four ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&cinfo);
  jpeg_set_colorspace(&cinfo, grey                               ? JCS_GRAYSCALE
                              : kind.colour == JpegColour::kRgb  ? JCS_RGB
                              : kind.colour == JpegColour::kYcck ? JCS_YCCK
                              : four                             ? JCS_CMYK
                                                                 : JCS_YCbCr);
  if (kind.colour == JpegColour::kCmykNoAdobe) cinfo.write_Adobe_marker = FALSE;
  jpeg_set_quality(&cinfo, 85, TRUE);
  cinfo.comp_info[0].h_samp_factor = kind.h;
  cinfo.comp_info[0].v_samp_factor = kind.v;
  if (four) {  // The fourth component, black, has the resolution of the first.
    cinfo.comp_info[3].h_samp_factor = kind.h;
    cinfo.comp_info[3].v_samp_factor = kind.v;
  }
  if (kind.progressive) jpeg_simple_progression(&cinfo);
  static const jpeg_scan_info kCoarse[] = {{3, {0, 1, 2}, 0, 0, 0, 1}, {1, {0}, 1, 5, 0, 2}};
  static const jpeg_scan_info kSeparate[] = {
      {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  if (kind.coarse) {
    cinfo.scan_info = kCoarse;
    cinfo.num_scans = 2;
  }
  if (kind.separate_scans) {
    cinfo.scan_info = kSeparate;
    cinfo.num_scans = 3;
  }
  cinfo.restart_interval = kind.restart_interval;
  cinfo.arith_code = kind.arithmetic ? TRUE : FALSE;
  jpeg_start_compress(&cinfo, TRUE);
  while (cinfo.next_scanline < cinfo.image_height) {
    JSAMPROW row = pixels.data() + static_cast<size_t>(cinfo.next_scanline) * width * channels;
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  std::string jpeg(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return jpeg;
}

Decoded DecodeWhole(const std::string& jpeg, const OracleOptions& options) {
  jpeg_decompress_struct cinfo;
  jpeg_error_mgr error;
  cinfo.err = jpeg_std_error(&error);
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&cinfo, TRUE);
  const bool four = cinfo.jpeg_color_space == JCS_CMYK || cinfo.jpeg_color_space == JCS_YCCK;
  cinfo.out_color_space = four ? JCS_CMYK : options.grey ? JCS_GRAYSCALE : JCS_RGB;
  cinfo.dct_method = options.ifast ? JDCT_IFAST : JDCT_ISLOW;
  cinfo.do_fancy_upsampling = options.fancy_upsampling ? TRUE : FALSE;
  cinfo.scale_denom = static_cast<unsigned>(options.divisor);
  jpeg_start_decompress(&cinfo);
  Decoded decoded = {static_cast<int>(cinfo.output_width),
                     static_cast<int>(cinfo.output_height),
                     cinfo.output_components,
                     cinfo.saw_Adobe_marker != FALSE,
                     {}};
  const size_t row_bytes = static_cast<size_t>(decoded.width) * decoded.channels;
  decoded.pixels.resize(row_bytes * decoded.height);
  while (cinfo.output_scanline < cinfo.output_height) {
    JSAMPROW row = decoded.pixels.data() + cinfo.output_scanline * row_bytes;
    jpeg_read_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_decompress(&cinfo);
  jpeg_destroy_decompress(&cinfo);
  return decoded;
}

BareOutcome DecodeDamaged(const std::string& jpeg, bool finish) {
  BareOutcome outcome;
  jpeg_decompress_struct cinfo = {};
  DamageManager errors = {};
  cinfo.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = LeaveByJump;
  errors.manager.emit_message = CountOnly;
  if (setjmp(errors.jump) == 0) {
    ReadDamaged(&cinfo, jpeg, finish, &outcome);
  } else {
    outcome.error = true;
    outcome.pixels.clear();
  }
  outcome.warnings = errors.manager.num_warnings;
  jpeg_destroy_decompress(&cinfo);
  return outcome;
}

std::vector<uint8_t> Cut(const std::vector<uint8_t>& pixels, int image_width, int channels, int y,
                         int x, int height, int width) {
  std::vector<uint8_t> cut;
  cut.reserve(static_cast<size_t>(height) * width * channels);
  for (int row = y; row < y + height; ++row) {
    const auto begin = pixels.begin() + (static_cast<int64_t>(row) * image_width + x) * channels;
    cut.insert(cut.end(), begin, begin + static_cast<int64_t>(width) * channels);
  }
  return cut;
}

}  // namespace systole
