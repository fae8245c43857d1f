// HuffmanDecoder in the place of libjpeg's entropy decoder. For the decoder of this room.
//
// All that is known here of libjpeg's inside is that `entropy` of jpeg_decompress_struct points to
// functions, and which of them decodes an MCU. Another libjpeg than the headers' may be mapped, so
// whatever else is needed comes from its public interface, and jpeg_check.h tries out the rest.
//
// Single-thread. Reusable: HuffmanDecoder keeps its lookups from image to image, and may be that of
// other JpegEntropyDecoders too, if their images do not overlap.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_ENTROPY_H_
#define SYSTOLE_CORE_IMAGE_JPEG_ENTROPY_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

#include "core/image/huffman_decoder.h"
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

  // Before each image.
  void Reset() { in_place_ = gave_up_ = false; }

  // After jpeg_start_decompress and jpeg_crop_scanline, of an image whose rows [first_row, end_row)
  // will be asked for; `first_column` is where jpeg_crop_scanline put the first, 0 without it.
  // libjpeg calls this object from now on, unless the image is of a kind that HuffmanDecoder does
  // not know, or `entropy` does not look as expected. `cinfo->err` must be a JpegErrors's manager.
  void Replace(j_decompress_ptr cinfo, JDIMENSION first_column, int first_row, int end_row);

  // HuffmanDecoder's of two images. REQUIRES: neither is ahead.
  static void DecodeAhead(JpegEntropyDecoder& a, JpegEntropyDecoder& b) {
    HuffmanDecoder::DecodeAhead(*a.decoder_, *b.decoder_);
  }
  // There is nothing to do before libjpeg asks.
  bool is_ahead() const { return !in_place_ || decoder_->is_ahead(); }

  // It has replaced libjpeg's for this image.
  bool in_place() const { return in_place_; }

  // An oddity ended a step, without a message: the image must be decoded anew by libjpeg alone.
  bool gave_up() const { return gave_up_; }

 private:
  struct Interface {
    jpeg_entropy_decoder functions;  // First: libjpeg hands back a pointer to it.
    JpegEntropyDecoder* self;
  };

  static boolean DecodeMcu(j_decompress_ptr cinfo, JBLOCKROW* blocks);

  Interface interface_ = {};
  std::shared_ptr<HuffmanDecoder> decoder_;
  JDIMENSION column_ = 0;  // Of the next MCU.
  // The columns of MCUs that libjpeg transforms.
  JDIMENSION first_column_ = 0;
  JDIMENSION end_column_ = 0;
  int64_t mcus_left_ = 0;
  bool in_place_ = false;
  bool gave_up_ = false;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_ENTROPY_H_
