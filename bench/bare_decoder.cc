#include "bench/bare_decoder.h"

#include <cstdint>
#include <cstdio>
#include <vector>

#include "benchmark/benchmark.h"
// jpeglib.h comes last, because it needs <cstdio>.
#include "jpeglib.h"

namespace systole::bench {

struct BareDecoder::State {
  jpeg_decompress_struct cinfo;
  jpeg_error_mgr error;
  std::vector<uint8_t> row;
};

BareDecoder::BareDecoder() : state_(std::make_unique<State>()) {
  state_->cinfo.err = jpeg_std_error(&state_->error);  // An error then ends the program.
  jpeg_create_decompress(&state_->cinfo);
}

BareDecoder::~BareDecoder() { jpeg_destroy_decompress(&state_->cinfo); }

void BareDecoder::Decode(absl::string_view jpeg, const CropRect& crop) {
  jpeg_decompress_struct& cinfo = state_->cinfo;
  jpeg_mem_src(&cinfo, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&cinfo, TRUE);
  jpeg_start_decompress(&cinfo);
  state_->row.resize(static_cast<size_t>(cinfo.output_width) * cinfo.output_components);
  JSAMPROW rows[1] = {state_->row.data()};
  JDIMENSION x = crop.x;
  JDIMENSION width = crop.width;
  jpeg_crop_scanline(&cinfo, &x, &width);
  jpeg_skip_scanlines(&cinfo, crop.y);
  for (int y = 0; y < crop.height; ++y) jpeg_read_scanlines(&cinfo, rows, 1);
  jpeg_abort_decompress(&cinfo);
  benchmark::DoNotOptimize(state_->row.data());
}

}  // namespace systole::bench
