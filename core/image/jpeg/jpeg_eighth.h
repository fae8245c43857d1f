// Makes rows of a JPEG at an eighth of its size by EighthScale, from the coefficients that
// JpegEntropyDecoder decodes. libjpeg only reads the headers. Accepts the kinds of JPEG that
// photographs have: grey, or YCbCr with or without subsampled colour. Only JpegDecompressor and
// UncheckedJpegDecoder use this file.
//
// Single-thread. Reusable.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_JPEG_EIGHTH_H_
#define SYSTOLE_CORE_IMAGE_JPEG_JPEG_EIGHTH_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "core/image/jpeg/eighth_scale.h"
#include "core/image/jpeg/jpeg_entropy.h"
#include "core/image/window/crop.h"
// Included last, because it needs <cstdio> and defines many macros.
#include "jpeglib.h"

namespace systole {

class JpegEighth {
 public:
  // Call it before each image.
  void Reset() { entropy_ = nullptr; }

  // Call it after jpeg_start_decompress with scale_denom = 8. True: NextRows() makes the rows of
  // `crop`, and libjpeg must not be asked for rows. False: this class cannot make rows of this kind
  // of image, and libjpeg has to make them. `entropy` must outlive the rows.
  bool Start(j_decompress_ptr cinfo, const CropRect& crop, JpegEntropyDecoder& entropy);
  bool started() const { return entropy_ != nullptr; }

  static constexpr int kMaxRows = 4;
  // Writes the rows of the crop that come from the next row of MCUs (JPEG's groups of blocks).
  // These are 1 to kMaxRows rows of [width, channels], each `stride_bytes` after the row before.
  // Returns their number. If it returns 0, JpegEntropyDecoder::gave_up() is true, and libjpeg alone
  // must redo the image. REQUIRES: started(), and rows of the crop are left.
  int NextRows(uint8_t* out, size_t stride_bytes);

 private:
  bool NextMcuRow();

  JpegEntropyDecoder* entropy_ = nullptr;
  EighthScale scale_;
  CropRect crop_;
  int mcu_height_ = 1;    // In rows of the smaller image.
  int num_columns_ = 0;   // MCUs in a row.
  int next_row_ = 0;      // The next row of the smaller image to be made.
  int mcus_end_row_ = 0;  // The row of the smaller image where the last decoded MCUs end.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_EIGHTH_H_
