#include "core/image/jpeg/jpeg_eighth.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace systole {
namespace {

// Whether EighthScale takes MCUs that are this many blocks wide or high.
bool IsKnownSide(int blocks) {
  return blocks == 1 || blocks == 2 || blocks == JpegEighth::kMaxRows;
}

// Returns how the image's MCUs become pixels, or nullopt if libjpeg has to make the pixels.
std::optional<EighthScale::Format> FormatOf(const jpeg_decompress_struct& cinfo) {
  const bool grey = cinfo.jpeg_color_space == JCS_GRAYSCALE;
  if (!grey && (cinfo.jpeg_color_space != JCS_YCbCr || cinfo.num_components != 3)) {
    return std::nullopt;
  }
  EighthScale::Format format;
  format.channels = cinfo.output_components;
  format.num_planes = grey || format.channels == 1 ? 1 : 3;
  format.num_blocks = cinfo.blocks_in_MCU;
  // If an image has only one component, an MCU is one block, whatever the sampling.
  format.mcu_width = grey ? 1 : cinfo.max_h_samp_factor;
  format.mcu_height = grey ? 1 : cinfo.max_v_samp_factor;
  if (!IsKnownSide(format.mcu_width) || !IsKnownSide(format.mcu_height)) return std::nullopt;
  for (int plane = 0; plane < format.num_planes; ++plane) {
    const jpeg_component_info& info = cinfo.comp_info[plane];
    const bool is_luma = plane == 0;
    if (!grey && (info.h_samp_factor != (is_luma ? format.mcu_width : 1) ||
                  info.v_samp_factor != (is_luma ? format.mcu_height : 1))) {
      return std::nullopt;
    }
    if (info.quant_table == nullptr) return std::nullopt;
    std::copy(std::begin(info.quant_table->quantval), std::end(info.quant_table->quantval),
              format.quantization[plane].begin());
  }
  for (int i = 0; i < format.num_blocks; ++i) {
    format.planes[i] = cinfo.cur_comp_info[cinfo.MCU_membership[i]]->component_index;
  }
  return format;
}

}  // namespace

bool JpegEighth::Start(j_decompress_ptr cinfo, const CropRect& crop, JpegEntropyDecoder& entropy) {
  if (!JpegEntropyDecoder::Knows(cinfo)) return false;
  const std::optional<EighthScale::Format> format = FormatOf(*cinfo);
  if (!format.has_value()) return false;
  const int first_mcu = crop.x / format->mcu_width;
  const int end_mcu = (crop.x + crop.width - 1) / format->mcu_width + 1;
  const int first_mcu_row = crop.y / format->mcu_height;
  const int end_mcu_row = (crop.y + crop.height - 1) / format->mcu_height + 1;
  entropy.StartAlone(cinfo, {.y = first_mcu_row,
                             .x = first_mcu,
                             .height = end_mcu_row - first_mcu_row,
                             .width = end_mcu - first_mcu});
  entropy_ = &entropy;
  scale_.Start(*format, first_mcu, end_mcu - first_mcu);
  crop_ = crop;
  mcu_height_ = format->mcu_height;
  num_columns_ = static_cast<int>(cinfo->MCUs_per_row);
  next_row_ = crop.y;
  mcus_end_row_ = 0;
  return true;
}

bool JpegEighth::NextMcuRow() {
  for (int column = 0; column < num_columns_; ++column) {
    const HuffmanDecoder::Block* blocks = nullptr;
    if (!entropy_->Take(&blocks)) return false;
    if (blocks != nullptr && !scale_.AddMcu(blocks, column)) return false;
  }
  mcus_end_row_ += mcu_height_;
  return true;
}

int JpegEighth::NextRows(uint8_t* out, size_t stride_bytes) {
  bool ok = true;
  while (ok && mcus_end_row_ <= next_row_) ok = NextMcuRow();
  const int end = std::min(mcus_end_row_, crop_.y + crop_.height);
  int count = 0;
  for (; ok && next_row_ < end; ++next_row_, ++count, out += stride_bytes) {
    ok = scale_.WriteRow(next_row_ % mcu_height_, crop_.x, crop_.width, out);
  }
  if (ok) return count;
  entropy_->GiveUp();
  return 0;
}

}  // namespace systole
