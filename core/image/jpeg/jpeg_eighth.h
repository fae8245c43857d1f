// Rows of a JPEG at an eighth of its size without libjpeg, which only reads the headers:
// EighthScale on what JpegEntropyDecoder decodes. For photographs: grey, or YCbCr with colour
// subsampled or not. Only JpegDecoder uses this file.
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
// Last: needs <cstdio>, defines many macros.
#include "jpeglib.h"

namespace systole {

class JpegEighth {
 public:
  // Call it before each image.
  void Reset() { entropy_ = nullptr; }

  // Call it after jpeg_start_decompress with scale_denom = 8. If it returns true, rows of `crop`
  // come from here, and libjpeg must not be asked for any. False: libjpeg has to make them, because
  // this class does not know this kind of image. `entropy` must outlive the rows.
  bool Start(j_decompress_ptr cinfo, const CropRect& crop, JpegEntropyDecoder& entropy);
  bool started() const { return entropy_ != nullptr; }

  static constexpr int kMaxRows = 4;
  // The next rows of the crop, those of one row of MCUs: 1 to kMaxRows, each [width, channels] and
  // `stride_bytes` after the one before. Returns how many. 0: JpegEntropyDecoder::gave_up(), and
  // libjpeg alone must redo the image. REQUIRES: started(), rows of the crop are left.
  int NextRows(uint8_t* out, size_t stride_bytes);

 private:
  bool NextMcuRow();

  JpegEntropyDecoder* entropy_ = nullptr;
  EighthScale scale_;
  CropRect crop_;
  int mcu_height_ = 1;    // In rows of the smaller image.
  int num_columns_ = 0;   // MCUs in a row.
  int next_row_ = 0;      // Of the smaller image.
  int mcus_end_row_ = 0;  // Of the MCUs that were decoded last.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_EIGHTH_H_
