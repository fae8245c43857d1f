#include "core/image/jpeg_entropy.h"

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <iterator>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/image/jpeg_errors.h"

namespace systole {
namespace {

// The one scan of an image whose header was read, ready to be decoded.
HuffmanScan ScanOf(const jpeg_decompress_struct& cinfo) {
  HuffmanScan scan;
  scan.num_blocks = cinfo.blocks_in_MCU;
  for (int i = 0; i < cinfo.blocks_in_MCU; ++i) {
    const int component = cinfo.MCU_membership[i];
    const jpeg_component_info& info = *cinfo.cur_comp_info[component];
    scan.blocks[i] = {component, info.dc_tbl_no, info.ac_tbl_no, info.component_needed != FALSE};
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

}  // namespace

void JpegEntropyDecoder::Replace(j_decompress_ptr cinfo) {
  if (cinfo->progressive_mode || cinfo->arith_code || cinfo->inputctl->has_multiple_scans) return;
  decoder_.Start(ScanOf(*cinfo));
  column_ = 0;
  mcus_left_ = int64_t{cinfo->MCUs_per_row} * cinfo->MCU_rows_in_scan;
  interface_ = {*cinfo->entropy, this};
  interface_.functions.decode_mcu = DecodeMcu;
  cinfo->entropy = &interface_.functions;
}

// A callback under RunGuarded: trivial locals only.
// libjpeg asks for every MCU up to the crop's last row, without `blocks` above its first. It
// transforms those between first_iMCU_col and last_iMCU_col.
boolean JpegEntropyDecoder::DecodeMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks) {
  JpegEntropyDecoder& self = *reinterpret_cast<Interface*>(cinfo->entropy)->self;
  const bool transformed = blocks != nullptr && self.column_ >= cinfo->master->first_iMCU_col &&
                           self.column_ <= cinfo->master->last_iMCU_col;
  if (++self.column_ == cinfo->MCUs_per_row) self.column_ = 0;
  bool ok = transformed ? self.decoder_.Decode(blocks) : self.decoder_.Skip();
  if (ok && --self.mcus_left_ == 0) {
    const std::optional<size_t> end = self.decoder_.End();
    ok = end.has_value();
    // libjpeg reads on from there.
    cinfo->src->next_input_byte += end.value_or(0);
    cinfo->src->bytes_in_buffer -= end.value_or(0);
  }
  if (!ok) {
    self.gave_up_ = true;
    std::longjmp(ErrorsOf(cinfo->err)->jump, 1);
  }
  return TRUE;
}

}  // namespace systole
