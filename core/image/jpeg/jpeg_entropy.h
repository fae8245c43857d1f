// Puts HuffmanDecoder in the place of libjpeg's entropy decoder. Only UncheckedJpegDecoder,
// JpegDecompressor and JpegEighth use this file.
//
// This file relies on two facts about the inside of libjpeg: `entropy` of jpeg_decompress_struct
// points to a struct of functions, and the function `decode_mcu` in this struct decodes an MCU
// (JPEG's group of blocks). The loaded libjpeg may differ from the libjpeg of the headers, so
// everything else comes from libjpeg's public interface. entropy_check.h tests that both facts
// hold.
//
// Single-thread. Reusable: HuffmanDecoder keeps its lookups from image to image. Several
// JpegEntropyDecoders may share one HuffmanDecoder if their images do not overlap in time.
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
// Included last, because it needs <cstdio> and defines many macros.
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

  // Whether HuffmanDecoder can decode this kind of image, and libjpeg's `entropy` looks as
  // expected.
  static bool Knows(j_decompress_ptr cinfo);

  // Starts the decoding for a caller that transforms the coefficients itself, at an eighth of the
  // size. Call it in place of Replace(), and do not ask libjpeg for rows. If a block becomes one
  // pixel, only its first coefficient is decoded. `mcus` are the MCUs of the scan that are wanted.
  // REQUIRES: Knows(cinfo).
  void StartAlone(j_decompress_ptr cinfo, const CropRect& mcus);
  // Takes the next MCU, as HuffmanDecoder::Take() does. Returns false if the decoder gave up. Then
  // gave_up() is true. The decoder also gives up if the last MCU is not followed by the marker that
  // ends the scan.
  bool Take(const HuffmanDecoder::Block** blocks);
  // Whether the end-of-image marker follows the scan. REQUIRES: the last MCU was taken.
  bool ends_image() const;
  // Makes gave_up() true. The caller must then leave the image to libjpeg.
  void GiveUp() { gave_up_ = true; }

  // Call it after jpeg_start_decompress and jpeg_crop_scanline. From then on libjpeg calls this
  // object. The caller will ask libjpeg for the rows [first_row, end_row). `first_column` is the
  // column that jpeg_crop_scanline begins with, or 0 if jpeg_crop_scanline was not called.
  // `block_side` is the side of a block in output pixels: DCTSIZE at full size, less at a smaller
  // scale. `cinfo->err` must be the manager of a JpegErrors. Does nothing unless Knows(cinfo).
  void Replace(j_decompress_ptr cinfo, JDIMENSION first_column, int first_row, int end_row,
               int block_side);

  // HuffmanDecoder::DecodeAhead() of two images. REQUIRES: neither is ahead.
  static void DecodeAhead(JpegEntropyDecoder& a, JpegEntropyDecoder& b) {
    HuffmanDecoder::DecodeAhead(*a.decoder_, *b.decoder_);
  }
  // Whether nothing is left to be decoded ahead of libjpeg.
  bool is_ahead() const { return !in_place_ || decoder_->is_ahead(); }
  // libjpeg can make the rows before row ready_row() from the coefficients that are decoded
  // already.
  int ready_row() const {
    // libjpeg may need the next row of MCUs to interpolate colour, but not for blocks of one pixel.
    return (decoder_->decoded_rows() / mcu_rows_ - (block_side_ == 1 ? 0 : 1)) * rows_in_mcu_;
  }
  // HuffmanDecoder::GoFurtherAhead(). REQUIRES: in_place(), is_ahead().
  void GoFurtherAhead() { decoder_->GoFurtherAhead(); }

  // Whether HuffmanDecoder has replaced libjpeg's entropy decoder for this image.
  bool in_place() const { return in_place_; }

  // Whether a step ended at an oddity. Then there is no error message, and libjpeg alone must redo
  // the image.
  bool gave_up() const { return gave_up_; }

 private:
  struct Interface {
    jpeg_entropy_decoder functions;  // Must be first: libjpeg passes back a pointer to it.
    JpegEntropyDecoder* self;
  };

  void Start(const HuffmanScan& scan);
  static boolean DecodeMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks);

  Interface interface_ = {};
  std::shared_ptr<HuffmanDecoder> decoder_;
  JDIMENSION column_ = 0;  // The column of the next MCU.
  // The columns of MCUs that libjpeg transforms.
  JDIMENSION first_column_ = 0;
  JDIMENSION end_column_ = 0;
  bool dc_only_[HuffmanScan::kMaxBlocks] = {};  // HuffmanScan::Block::dc_only.
  // The side of a block in output pixels. A row of MCUs in libjpeg has `rows_in_mcu_` rows of
  // pixels and `mcu_rows_` rows of the scan's MCUs.
  int block_side_ = DCTSIZE;
  int rows_in_mcu_ = 1;
  int mcu_rows_ = 1;
  int64_t mcus_left_ = 0;
  absl::string_view bytes_;  // HuffmanScan::bytes.
  size_t end_ = 0;           // The end of the scan in `bytes_`, once no MCU is left.
  bool in_place_ = false;
  bool gave_up_ = false;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_ENTROPY_H_
