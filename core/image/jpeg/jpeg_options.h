// How a JPEG is to be decoded.
//
// Thread-safe: value types and constants.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_JPEG_OPTIONS_H_
#define SYSTOLE_CORE_IMAGE_JPEG_JPEG_OPTIONS_H_

#include <cstdint>
#include <memory>

namespace systole {

class HuffmanDecoder;

// How coefficients become samples. The results of the two methods differ by a few grey levels.
enum class JpegDct {
  kIslow,  // Accurate integer arithmetic; what PIL and OpenCV use.
  kIfast,  // Less accurate; what TensorFlow's decode_jpeg uses by default.
};

// The size at which an image is decoded. At a smaller size libjpeg makes 4 x 4, 2 x 2 or 1 pixel of
// each block of 8 x 8 stored pixels. So each pixel of a smaller image is nearly the mean of a
// square of stored pixels.
enum class JpegScale {
  kFull = 1,
  kHalf = 2,
  kQuarter = 4,
  kEighth = 8,
};

// The number of pixels that `side` pixels of the stored image become at `scale`. Rounded up.
constexpr int ScaledSide(int side, JpegScale scale) {
  const int divisor = static_cast<int>(scale);
  return side / divisor + (side % divisor == 0 ? 0 : 1);
}

struct JpegDecoderOptions {
  JpegDct dct = JpegDct::kIslow;
  // True interpolates subsampled colour, which is libjpeg's and TensorFlow's default. False repeats
  // samples, which is faster but leaves visible blocks of colour.
  bool fancy_upsampling = true;
  // 3: RGB, where a grey image has three equal channels. 1: grey.
  int channels = 3;
  // True makes every libjpeg warning about the image's data (bytes missing, extra or undecodable) a
  // DataLoss. After a warning, libjpeg itself continues with made-up pixels, and a network would
  // silently train on them. False accepts such images, for data sets where a grey stripe is better
  // than a missing example. JpegDecoder::warnings() counts the warnings.
  bool fail_on_warning = true;
  // The largest width * height accepted. It is checked before memory for the image is allocated,
  // because a few header bytes can claim 65500 x 65500 pixels. A progressive image takes about 2
  // bytes * components per pixel while it is decoded: 200 MB for 3 components and the default
  // limit.
  int64_t max_pixels = int64_t{1} << 25;
  // The most scans accepted in a progressive image. Each scan costs a pass over all blocks, even if
  // it has few bytes, so a file of 100 kB could take hours. Cameras and encoders write about 10.
  int max_scans = 64;
  // True leaves the entropy decoding of baseline images to libjpeg as well. Use it for comparisons.
  // Pixels, warnings and errors are the same, but decoding is slower.
  bool library_entropy_decoder = false;
  // The Huffman decoder to use. From image to image it keeps its lookups, and memory for at most 1
  // MiB of coefficients that are decoded ahead. JPEG decoders may share one Huffman decoder if
  // their images do not overlap in time: from StartCrop to the last NextRows of one JPEG decoder,
  // no other JPEG decoder may call StartCrop. Null: the JPEG decoder makes a Huffman decoder of its
  // own.
  std::shared_ptr<HuffmanDecoder> huffman_decoder;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_OPTIONS_H_
