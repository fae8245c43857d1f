#include "core/image/jpeg/jpeg_entropy.h"

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/image/jpeg/jpeg_errors.h"
#include "core/image/jpeg/jpeg_library.h"

namespace systole {
namespace {

// Whether libjpeg makes one pixel of each of the component's blocks. For such a pixel libjpeg needs
// only the block's first coefficient. At an eighth of the size this holds for all components except
// colour that is subsampled across and down. From a block of such colour, libjpeg makes more than
// one pixel, instead of interpolating.
bool IsOnePixel(const jpeg_decompress_struct& cinfo, const jpeg_component_info& info,
                int block_side) {
  return block_side == 1 && (cinfo.max_h_samp_factor % (2 * info.h_samp_factor) != 0 ||
                             cinfo.max_v_samp_factor % (2 * info.v_samp_factor) != 0);
}

// Describes the only scan of an image after jpeg_start_decompress(). The caller must add which MCUs
// it wants.
HuffmanScan ScanOf(const jpeg_decompress_struct& cinfo, int block_side) {
  HuffmanScan scan;
  scan.columns = static_cast<int>(cinfo.MCUs_per_row);
  scan.rows = static_cast<int>(cinfo.MCU_rows_in_scan);
  scan.num_blocks = cinfo.blocks_in_MCU;
  for (int i = 0; i < cinfo.blocks_in_MCU; ++i) {
    const int component = cinfo.MCU_membership[i];
    const jpeg_component_info& info = *cinfo.cur_comp_info[component];
    scan.blocks[i] = {
        .component = component,
        .dc_table = info.dc_tbl_no,
        .ac_table = info.ac_tbl_no,
        .wanted = info.component_needed != FALSE,
        .dc_only = info.component_needed != FALSE && IsOnePixel(cinfo, info, block_side)};
    const auto copy = [](const JHUFF_TBL& table, HuffmanCodes& codes) {
      std::copy(std::begin(table.bits), std::end(table.bits), codes.counts);
      std::copy(std::begin(table.huffval), std::end(table.huffval), codes.symbols);
    };
    copy(*cinfo.dc_huff_tbl_ptrs[info.dc_tbl_no], scan.dc_codes[info.dc_tbl_no]);
    copy(*cinfo.ac_huff_tbl_ptrs[info.ac_tbl_no], scan.ac_codes[info.ac_tbl_no]);
  }
  scan.restart_interval = cinfo.restart_interval;
  scan.bytes = absl::string_view(reinterpret_cast<const char*>(cinfo.src->next_input_byte),
                                 cinfo.src->bytes_in_buffer);
  return scan;
}

// Whether `entropy` looks like libjpeg's own decoder. If the struct's layout in the library differs
// from that in the headers, these two fields do not point to functions of libjpeg.
bool IsRecognisable(const jpeg_entropy_decoder& entropy) {
  return IsJpegLibraryCode(reinterpret_cast<uintptr_t>(entropy.start_pass)) &&
         IsJpegLibraryCode(reinterpret_cast<uintptr_t>(entropy.decode_mcu));
}

}  // namespace

bool JpegEntropyDecoder::Knows(j_decompress_ptr cinfo) {
  return !cinfo->progressive_mode && !cinfo->arith_code && !jpeg_has_multiple_scans(cinfo) &&
         IsRecognisable(*cinfo->entropy);
}

void JpegEntropyDecoder::Start(const HuffmanScan& scan) {
  decoder_->Start(scan);
  bytes_ = scan.bytes;
  mcus_left_ = int64_t{scan.columns} * scan.rows;
  in_place_ = true;
}

void JpegEntropyDecoder::StartAlone(j_decompress_ptr cinfo, const CropRect& mcus) {
  HuffmanScan scan = ScanOf(*cinfo, /*block_side=*/1);
  scan.first_row = mcus.y;
  scan.end_row = mcus.y + mcus.height;
  scan.first_column = mcus.x;
  scan.end_column = mcus.x + mcus.width;
  // The caller takes each row's coefficients at once, while they are still in the cache.
  scan.rows_ahead = 1;
  block_side_ = 1;
  rows_in_mcu_ = cinfo->comps_in_scan == 1 ? 1 : cinfo->max_v_samp_factor;
  mcu_rows_ = 1;
  Start(scan);
}

bool JpegEntropyDecoder::Take(const HuffmanDecoder::Block** blocks) {
  if (!decoder_->Take(blocks)) {
    gave_up_ = true;
  } else if (--mcus_left_ == 0) {
    const std::optional<size_t> end = decoder_->End();
    gave_up_ = !end.has_value();
    end_ = end.value_or(0);
  }
  return !gave_up_;
}

bool JpegEntropyDecoder::ends_image() const {
  return absl::StartsWith(bytes_.substr(end_), "\xff\xd9");
}

void JpegEntropyDecoder::Replace(j_decompress_ptr cinfo, JDIMENSION first_column, int first_row,
                                 int end_row, int block_side) {
  if (!Knows(cinfo)) return;
  HuffmanScan scan = ScanOf(*cinfo, block_side);
  // If an image has only one component, an MCU is one block, whatever the sampling.
  const JDIMENSION mcu_width = static_cast<JDIMENSION>(
      block_side * (cinfo->num_components == 1 ? 1 : cinfo->max_h_samp_factor));
  first_column_ = first_column / mcu_width;
  end_column_ = (first_column + cinfo->output_width + mcu_width - 1) / mcu_width;
  scan.first_column = static_cast<int>(first_column_);
  scan.end_column = static_cast<int>(end_column_);
  // Interpolated colour of a row depends on the rows of colour above and below it. A row of colour
  // covers at most max_v_samp_factor rows of pixels. So libjpeg needs up to 1 row of pixels above
  // the crop and max_v_samp_factor rows below it. libjpeg transforms whole rows of MCUs. If the
  // image has only one component, libjpeg's row of MCUs consists of v_samp_factor rows of the
  // scan's MCUs.
  block_side_ = block_side;
  rows_in_mcu_ = cinfo->max_v_samp_factor * block_side;
  mcu_rows_ = cinfo->comps_in_scan == 1 ? cinfo->cur_comp_info[0]->v_samp_factor : 1;
  scan.first_row = std::max(0, first_row - 1) / rows_in_mcu_ * mcu_rows_;
  scan.end_row = ((end_row - 1 + cinfo->max_v_samp_factor) / rows_in_mcu_ + 1) * mcu_rows_;
  for (int i = 0; i < scan.num_blocks; ++i) dc_only_[i] = scan.blocks[i].dc_only;
  Start(scan);
  column_ = 0;
  interface_ = {*cinfo->entropy, this};
  interface_.functions.decode_mcu = DecodeMcu;
  cinfo->entropy = &interface_.functions;
}

// A callback under RunGuarded: trivial locals only. libjpeg calls this for every MCU up to the
// crop's last row. Above the crop's first row, `blocks` is null. Of the other MCUs, libjpeg
// transforms those in the columns that jpeg_crop_scanline returned.
boolean JpegEntropyDecoder::DecodeMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks) {
  JpegEntropyDecoder& self = *reinterpret_cast<Interface*>(cinfo->entropy)->self;
  const bool transformed =
      blocks != nullptr && self.column_ >= self.first_column_ && self.column_ < self.end_column_;
  if (++self.column_ == cinfo->MCUs_per_row) self.column_ = 0;
  const HuffmanDecoder::Block* decoded = nullptr;
  if (!self.Take(&decoded) || (transformed && decoded == nullptr)) {
    self.GiveUp();
    std::longjmp(ErrorsOf(cinfo->err)->jump, 1);
  }
  for (int i = 0; transformed && i < cinfo->blocks_in_MCU; ++i) {
    if (self.dc_only_[i]) {
      (*blocks[i])[0] = decoded[i][0];
    } else {
      std::memcpy(blocks[i], decoded[i], sizeof(JBLOCK));
    }
  }
  if (self.mcus_left_ == 0) {
    // libjpeg continues reading after the scan.
    cinfo->src->next_input_byte += self.end_;
    cinfo->src->bytes_in_buffer -= self.end_;
  }
  return TRUE;
}

}  // namespace systole
