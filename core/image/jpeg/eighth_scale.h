// Makes the pixels of an image at an eighth of its size from its coefficients. The pixels equal
// those that libjpeg makes with scale_denom = 8. For each MCU (JPEG's group of blocks) libjpeg also
// does other work, which takes longer than the arithmetic. This class avoids that work. A block of
// luma becomes one pixel, its mean. A block of colour that is subsampled across and down becomes
// four pixels (2 x 2), by a transform that leaves some frequencies out (libjpeg's jidctred.c). Any
// other block becomes one pixel, which is repeated where colour is subsampled.
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
    int channels = 1;    // Of the output: 1, or 3 for RGB. Of a grey image all 3 are equal.
    int num_blocks = 1;  // Blocks in an MCU.
    // The plane of each block. A block whose plane is num_planes or more is not used. A plane's
    // blocks are ordered row by row, as in T.81, A.2.3.
    std::array<int, HuffmanScan::kMaxBlocks> planes = {};
    // The number of blocks of luma in an MCU, across and down. Each block becomes one pixel.
    int mcu_width = 1;
    int mcu_height = 1;
    // The quantization of each plane, in natural order.
    std::array<std::array<uint16_t, 64>, kMaxPlanes> quantization = {};
  };

  // Starts an image. In each row of MCUs, AddMcu() will add `num_mcus` MCUs from column `first_mcu`
  // on. REQUIRES: both sides of an MCU are 1, 2 or 4. With 3 planes an MCU has one block each of Cb
  // and Cr.
  void Start(const Format& format, int first_mcu, int num_mcus);

  // Adds the blocks of the MCU in `column` to a row of MCUs. The blocks replace those that `column`
  // had in the previous row of MCUs. Returns false if a coefficient is larger than any that an
  // encoder makes. Of such a coefficient, different builds of libjpeg make different pixels.
  // REQUIRES: first_mcu <= column < first_mcu + num_mcus.
  bool AddMcu(const HuffmanDecoder::Block* blocks, int column);

  // Writes `width` pixels from column `x` on. `row` is a row of pixels in the row of MCUs that was
  // added last, 0 <= row < mcu_height. `x` is a column of the image at an eighth of its size.
  // REQUIRES: the added MCUs cover the columns [x, x + width). Returns false, like AddMcu(), if a
  // value is larger than any that an encoder makes.
  bool WriteRow(int row, int x, int width, uint8_t* out);

  // One plane's quantization in the form that the loops need.
  struct Dequantization {
    // Each quantization factor, multiplied by the weight of its row in the column's sum. 0: the
    // coefficient is left out.
    std::array<int32_t, 64> factors = {};
    std::array<uint16_t, 64> limits = {};  // The largest absolute values accepted.
  };
  // The sums of a block's 8 columns, for its upper or its lower half. A sum has 16 bits, and two
  // sums share an int32_t.
  using ColumnSums = std::array<int32_t, 4>;

 private:
  struct Plane {
    int width = 1;  // Blocks in an MCU.
    int height = 1;
    std::array<int, HuffmanScan::kMaxBlocks> blocks = {};
    Dequantization dequantization;
    bool halved = false;  // A block becomes 2 x 2 samples, not one.
    // If not halved: the first coefficient of each block, [height, stride].
    std::vector<int16_t> means;
    size_t stride = 0;
    // If halved: the sums of each MCU, for the upper and the lower half of its block.
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
