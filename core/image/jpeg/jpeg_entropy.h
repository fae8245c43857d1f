// Puts HuffmanDecoder in the place of libjpeg's entropy decoder. Only JpegDecoder and JpegEighth
// use this file.
//
// This file relies on two facts about libjpeg's inside: that `entropy` of jpeg_decompress_struct
// points to functions, and which of them decodes an MCU. The loaded libjpeg may differ from the
// headers', so all else comes from libjpeg's public interface. entropy_check.h tests that both
// facts hold.
//
// Single-thread. Reusable: HuffmanDecoder keeps its lookups from image to image. Several
// JpegEntropyDecoders may share one if their images do not overlap in time.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_JPEG_ENTROPY_H_
#define SYSTOLE_CORE_IMAGE_JPEG_JPEG_ENTROPY_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/image/jpeg/huffman_decoder.h"
#include "core/image/window/crop.h"
// Last: needs <cstdio>, defines many macros.
#include "jpeglib.h"
// After jpeglib.h:
#include "jpegint.h"

namespace systole {

class JpegEntropyDecoder {
 public:
  explicit JpegEntropyDecoder(std::shared_ptr<HuffmanDecoder> decoder)
      : decoder_(std::move(decoder)) {}
  JpegEntropyDecoder(const JpegEntropyDecoder&) = delete;
  JpegEntropyDecoder& operator=(const JpegEntropyDecoder&) = delete;

  // Call it before each image.
  void Reset() { in_place_ = gave_up_ = false; }

  // Whether HuffmanDecoder knows this kind of image, in a libjpeg where `entropy` looks as
  // expected.
  static bool Knows(j_decompress_ptr cinfo);

  // In place of Replace(), for a caller that transforms the coefficients itself and does not ask
  // libjpeg for rows. Of a block of one pixel only the first coefficient is decoded, as for libjpeg
  // at an eighth of the size. `mcus`: those that are wanted, in MCUs of the scan. REQUIRES:
  // Knows(cinfo).
  void StartAlone(j_decompress_ptr cinfo, const CropRect& mcus);
  // The next MCU: HuffmanDecoder::Take(). False: gave_up(). After the last one the marker that ends
  // the scan must follow.
  bool Take(const HuffmanDecoder::Block** blocks);
  // Whether the image's end follows the scan. REQUIRES: the last MCU was taken.
  bool ends_image() const;
  // Leaves the image to libjpeg.
  void GiveUp() { gave_up_ = true; }

  // Call it after jpeg_start_decompress and jpeg_crop_scanline. Rows [first_row, end_row) will be
  // asked for. `first_column` is the column that jpeg_crop_scanline begins with, 0 without that
  // call. `block_side` pixels are made of a block's side: DCTSIZE, or fewer at a smaller scale.
  // From now on libjpeg calls this object. `cinfo->err` must be a JpegErrors's manager. Does
  // nothing unless Knows(cinfo).
  void Replace(j_decompress_ptr cinfo, JDIMENSION first_column, int first_row, int end_row,
               int block_side);

  // HuffmanDecoder::DecodeAhead() of two images. REQUIRES: neither is ahead.
  static void DecodeAhead(JpegEntropyDecoder& a, JpegEntropyDecoder& b) {
    HuffmanDecoder::DecodeAhead(*a.decoder_, *b.decoder_);
  }
  // Whether nothing is left to decode before libjpeg asks.
  bool is_ahead() const { return !in_place_ || decoder_->is_ahead(); }
  // Up to this row libjpeg can make the image from what is decoded already.
  int ready_row() const {
    // It may look at the next row of MCUs to interpolate colour, but not at blocks of one pixel.
    return (decoder_->decoded_rows() / mcu_rows_ - (block_side_ == 1 ? 0 : 1)) * rows_in_mcu_;
  }
  // HuffmanDecoder::GoFurtherAhead(). REQUIRES: in_place(), is_ahead().
  void GoFurtherAhead() { decoder_->GoFurtherAhead(); }

  // Whether HuffmanDecoder has replaced libjpeg's entropy decoder for this image.
  bool in_place() const { return in_place_; }

  // Whether an oddity ended a step, without a message: libjpeg alone must then redo the image.
  bool gave_up() const { return gave_up_; }

 private:
  struct Interface {
    jpeg_entropy_decoder functions;  // First: libjpeg hands back a pointer to it.
    JpegEntropyDecoder* self;
  };

  void Start(const HuffmanScan& scan);
  static boolean DecodeMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks);

  Interface interface_ = {};
  std::shared_ptr<HuffmanDecoder> decoder_;
  JDIMENSION column_ = 0;  // Of the next MCU.
  // The columns of MCUs that libjpeg transforms.
  JDIMENSION first_column_ = 0;
  JDIMENSION end_column_ = 0;
  bool dc_only_[HuffmanScan::kMaxBlocks] = {};  // HuffmanScan::Block's.
  // The side of a block in pixels. libjpeg's row of MCUs is `rows_in_mcu_` rows of pixels and
  // `mcu_rows_` rows of the scan's MCUs.
  int block_side_ = DCTSIZE;
  int rows_in_mcu_ = 1;
  int mcu_rows_ = 1;
  int64_t mcus_left_ = 0;
  absl::string_view bytes_;  // HuffmanScan's.
  size_t end_ = 0;           // Of the scan, in `bytes_`, once no MCU is left.
  bool in_place_ = false;
  bool gave_up_ = false;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_ENTROPY_H_
