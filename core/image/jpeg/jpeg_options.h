// How a JPEG is to be decoded.
//
// Thread-safe: value types and constants.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_JPEG_OPTIONS_H_
#define SYSTOLE_CORE_IMAGE_JPEG_JPEG_OPTIONS_H_

#include <cstdint>
#include <memory>

namespace systole {

class HuffmanDecoder;

// How coefficients become samples. The two differ by a few grey levels.
enum class JpegDct {
  kIslow,  // Accurate integer arithmetic; what PIL and OpenCV use.
  kIfast,  // Less accurate; what TensorFlow's decode_jpeg uses by default.
};

// The size at which an image is decoded. Each pixel of a smaller image stands for a square of
// pixels of the stored one, about their mean: libjpeg transforms each block to 4 x 4, 2 x 2 or 1
// value.
enum class JpegScale {
  kFull = 1,
  kHalf = 2,
  kQuarter = 4,
  kEighth = 8,
};

// `side` pixels of the stored image at that scale, rounded up.
constexpr int ScaledSide(int side, JpegScale scale) {
  const int divisor = static_cast<int>(scale);
  return side / divisor + (side % divisor == 0 ? 0 : 1);
}

struct JpegDecoderOptions {
  JpegDct dct = JpegDct::kIslow;
  // Interpolates subsampled colour (libjpeg's default, TensorFlow's too). False repeats samples:
  // faster, with visible blocks of colour.
  bool fancy_upsampling = true;
  // 3 = RGB (a grey image is replicated), 1 = grey.
  int channels = 3;
  // Every libjpeg warning about the image's data (bytes missing, extra or undecodable) is DataLoss.
  // libjpeg itself goes on with made-up pixels, and a network would silently train on them. False
  // accepts such images, for data sets where a grey stripe is better than a hole; see warnings().
  bool fail_on_warning = true;
  // Largest width * height accepted, checked on the header before anything of the image's size is
  // allocated. A few header bytes can claim 65500 x 65500. A progressive image takes about
  // 2 bytes * components per pixel while it is decoded: 200 MB at the default.
  int64_t max_pixels = int64_t{1} << 25;
  // Most scans accepted in a progressive image. Each scan costs a pass over all blocks, however few
  // its bytes, so a file of 100 kB could take hours. Cameras and encoders write about 10.
  int max_scans = 64;
  // Leaves the entropy decoding of baseline images to libjpeg too, for comparison: the same pixels,
  // warnings and errors, but slower.
  bool library_entropy_decoder = false;
  // What entropy decoding keeps from image to image: lookups, and at most 1 MiB of coefficients
  // decoded ahead. Decoders may share one if their images do not overlap in time: from StartCrop to
  // the last NextRows of one, no other may call StartCrop. Null: it makes its own.
  std::shared_ptr<HuffmanDecoder> huffman_decoder;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_OPTIONS_H_
