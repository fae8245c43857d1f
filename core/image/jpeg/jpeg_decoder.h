// Decodes a rectangle of a JPEG to 8-bit pixels, byte-equal to those cut from the decoded whole
// image. It costs less: columns outside the rectangle are not transformed, rows above are only
// entropy-decoded, rows below are not touched. Of large images it can decode every second, fourth
// or eighth pixel's worth: see JpegScale. All decoding by libjpeg-turbo is behind this class. Our
// own entropy decoder (huffman_decoder.h) replaces libjpeg's for clean baseline images.
//
// Single-thread. Reusable: keeps its buffers from image to image. The pixels and errors of an image
// do not depend on earlier images.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_JPEG_DECODER_H_
#define SYSTOLE_CORE_IMAGE_JPEG_JPEG_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/image/window/crop.h"

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

struct ImageInfo {
  int width = 0;
  int height = 0;
  int components = 0;  // Stored: 1 grey, 3 colour, 4 CMYK or YCCK.
};

// `count` decoded rows, each `stride_bytes` after the one before.
struct DecodedRows {
  const uint8_t* data = nullptr;
  size_t stride_bytes = 0;
  int count = 0;
};

class JpegDecoder {
 public:
  // Rows returned by NextRows() can be read (not used) this many bytes beyond their end.
  static constexpr size_t kRowPaddingBytes = 64;

  // Of rows that DecodeAhead() makes of an image, at most.
  static constexpr size_t kMaxKeptBytes = size_t{1} << 20;

  // InvalidArgument if an option is out of range. The first call in a process takes some
  // milliseconds more: see OwnJpegEntropyDecoding (jpeg_check.h).
  static absl::StatusOr<JpegDecoder> Create(const JpegDecoderOptions& options = {});
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;
  ~JpegDecoder();

  // Parses everything before the first scan. `jpeg` must stay as it is until the image is decoded
  // or another header is read.
  //   DataLoss           not a JPEG (names PNG, GIF, .. when it is one of those), or a broken
  //                      header.
  //   ResourceExhausted  more pixels than max_pixels.
  //   Unavailable        no memory; the image itself may be good.
  absl::StatusOr<ImageInfo> ReadHeader(absl::string_view jpeg);

  // Decodes `crop` of the image whose header was read last into `out`: [height, width, channels]
  // uint8. One call per header. If the crop reaches the last row, the file is read up to its
  // end-of-image marker, so decoding a whole image checks all of it. With another `scale` the crop
  // is one of the smaller image, whose sides are ScaledSide().
  //   InvalidArgument     crop not inside the image, or `out` of another size.
  //   FailedPrecondition  no header read.
  //   DataLoss            libjpeg's error or, with fail_on_warning, warning.
  //   ResourceExhausted   more scans than max_scans.
  //   Unavailable         no memory; the image itself may be good.
  absl::Status Decode(const CropRect& crop, absl::Span<uint8_t> out,
                      JpegScale scale = JpegScale::kFull);

  // The same, a few rows at a time: StartCrop, then NextRows until crop.height rows have come. Each
  // call yields 1 to `max_rows` rows, each [width, channels] uint8, valid until the next call.
  // Stopping early is fine. Errors as above. REQUIRES: max_rows > 0.
  absl::Status StartCrop(const CropRect& crop, JpegScale scale = JpegScale::kFull);
  absl::StatusOr<DecodedRows> NextRows(int max_rows);
  absl::StatusOr<const uint8_t*> NextRow();

  // Optional, between StartCrop and NextRows: entropy-decodes two crops together, which takes less
  // time than one after the other, until one of them is ahead. Rows of an image at a smaller scale
  // are few: at most kMaxKeptBytes of them are made on the way, so that coefficients need not wait
  // for NextRows. Changes nothing but the time. REQUIRES: neither is ahead.
  static void DecodeAhead(JpegDecoder& a, JpegDecoder& b);
  // Whether nothing is left to decode ahead of NextRows.
  bool is_ahead() const;

  // Ends the image and frees its memory, which the next ReadHeader would do too.
  void EndImage();

  // Whether libjpeg does the entropy decoding of the image begun last: by choice, because of the
  // image's kind, because of an oddity in it, or because OwnJpegEntropyDecoding() is not OK.
  bool by_library() const;

  // libjpeg warnings since the last ReadHeader. Above 0 with an OK status only if !fail_on_warning,
  // or for oddities that change no pixel (padding between markers, an odd colour profile).
  int64_t warnings() const;

 private:
  struct State;
  friend absl::Status CheckJpegEntropyDecoding();
  // Create() without regard to OwnJpegEntropyDecoding().
  static absl::StatusOr<JpegDecoder> CreateUnchecked(const JpegDecoderOptions& options);
  // For images of several scans: the part of StartCrop() that the first NextRows() does.
  absl::Status BeginRows();
  void KeepRows();
  // NextRows() without regard to rows that were kept.
  absl::StatusOr<DecodedRows> DecodeRows(int max_rows);
  absl::Status DecodeByLibrary(int rows);
  explicit JpegDecoder(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_DECODER_H_
