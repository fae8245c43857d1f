// The pixels of an image at an eighth of its size, straight from its coefficients: those that
// libjpeg makes of it with scale_denom = 8, but without its work for each MCU, which takes longer
// than the arithmetic. A block of luma becomes one pixel, its mean. A block of colour that is
// subsampled both ways becomes 2 x 2 pixels, by a transform that leaves some frequencies out
// (libjpeg's jidctred.c). Any other block becomes one pixel, which is repeated where colour is
// subsampled.
//
// Single-thread. Reusable.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_EIGHTH_SCALE_H_
#define SYSTOLE_CORE_IMAGE_JPEG_EIGHTH_SCALE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/image/jpeg/huffman_decoder.h"
#include "core/image/jpeg/huffman_scan.h"

namespace systole {

class EighthScale {
 public:
  static constexpr int kMaxPlanes = 3;  // Y, Cb, Cr.

  // An image of Y alone, or of Y, Cb and Cr with one block of each colour in an MCU.
  struct Format {
    int num_planes = 1;  // 1 or 3: the planes that become pixels.
    int channels = 1;    // 1, or 3: RGB. Of a grey image all three are equal.
    int num_blocks = 1;  // In an MCU.
    // The plane of each block; num_planes and above: the block is not used. A plane's blocks stand
    // row by row, as T.81, A.2.3 has them.
    std::array<int, HuffmanScan::kMaxBlocks> planes = {};
    // Blocks of luma in an MCU, and so its pixels.
    int mcu_width = 1;
    int mcu_height = 1;
    // Of each plane, in natural order.
    std::array<std::array<uint16_t, 64>, kMaxPlanes> quantization = {};
  };

  // Of each row of MCUs, `num_mcus` from `first_mcu` on will be added. REQUIRES: both sides of an
  // MCU 1, 2 or 4; of 3 planes one block each of Cb and Cr.
  void Start(const Format& format, int first_mcu, int num_mcus);

  // Adds the blocks of the MCU in `column` to a row of MCUs, over those of the row before. False: a
  // coefficient is larger than any encoder makes it; there the builds of libjpeg differ from each
  // other. REQUIRES: first_mcu <= column < first_mcu + num_mcus.
  bool AddMcu(const HuffmanDecoder::Block* blocks, int column);

  // `width` pixels from `x` on of a row of the MCUs that were added last, 0 <= row < mcu_height.
  // `x` is a column of the image; the MCUs must have the columns [x, x + width). False: as for
  // AddMcu().
  bool WriteRow(int row, int x, int width, uint8_t* out);

  // One plane's quantization in the form that the loops need.
  struct Dequantization {
    // Multiplied with the weight of a coefficient's row in its column's sum. 0: left out.
    std::array<int32_t, 64> factors = {};
    std::array<uint16_t, 64> limits = {};  // The largest coefficients that are transformed.
  };
  // The sum of each column, for the upper or the lower half of a block: 16 bits, two to a word.
  using ColumnSums = std::array<int32_t, 4>;

 private:
  struct Plane {
    int width = 1;  // Blocks in an MCU.
    int height = 1;
    std::array<int, HuffmanScan::kMaxBlocks> blocks = {};
    Dequantization dequantization;
    bool halved = false;  // A block becomes 2 x 2 samples, not one.
    // If not halved: the first coefficients, [height, stride].
    std::vector<int16_t> means;
    size_t stride = 0;
    // If halved: the sums of each MCU; above, below.
    std::array<std::vector<ColumnSums>, 2> sums;
    std::vector<uint8_t> row;  // One row of samples.
  };

  bool MakeRow(Plane& plane, int row);

  Format format_;
  int first_mcu_ = 0;
  size_t num_mcus_ = 0;
  std::array<Plane, kMaxPlanes> planes_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_EIGHTH_SCALE_H_
