// JpegDecoder (jpeg_decoder.h) without the one-time check of the libjpeg that this process has
// loaded (entropy_check.h). The check uses this class; all other code uses JpegDecoder. All
// decoding by libjpeg-turbo goes through this class. Our own entropy decoder (huffman_decoder.h)
// replaces libjpeg's for clean baseline images.
//
// Single-thread. Reusable: keeps its buffers from image to image. The pixels and errors of an image
// do not depend on earlier images.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_UNCHECKED_JPEG_DECODER_H_
#define SYSTOLE_CORE_IMAGE_JPEG_UNCHECKED_JPEG_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/image/jpeg/jpeg_options.h"
#include "core/image/window/crop.h"

namespace systole {

struct JpegDecompressor;

struct ImageInfo {
  int width = 0;
  int height = 0;
  int components = 0;  // In the file. 1: grey, 3: colour, 4: CMYK or YCCK.
};

// `count` decoded rows, each `stride_bytes` after the one before.
struct DecodedRows {
  const uint8_t* data = nullptr;
  size_t stride_bytes = 0;
  int count = 0;
};

class UncheckedJpegDecoder {
 public:
  // This many bytes beyond the end of a row from NextRows() can be read. Their values have no
  // meaning.
  static constexpr size_t kRowPaddingBytes = 64;

  // DecodeAhead() makes at most this many bytes of rows for one image.
  static constexpr size_t kMaxKeptBytes = size_t{1} << 20;

  // InvalidArgument if an option is out of range.
  static absl::StatusOr<UncheckedJpegDecoder> Create(const JpegDecoderOptions& options = {});
  UncheckedJpegDecoder(UncheckedJpegDecoder&&) noexcept;
  UncheckedJpegDecoder& operator=(UncheckedJpegDecoder&&) noexcept;
  ~UncheckedJpegDecoder();

  // Parses everything before the first scan. `jpeg` must stay as it is until the image is decoded
  // or another header is read.
  //   DataLoss           not a JPEG, or a broken header. The message names the file's format if it
  //                      is PNG, GIF, BMP or WebP.
  //   ResourceExhausted  more pixels than max_pixels.
  //   Unavailable        no memory; the image itself may be good.
  absl::StatusOr<ImageInfo> ReadHeader(absl::string_view jpeg);

  // Decodes `crop` to `out`: [height, width, channels] uint8. The image is the one whose header was
  // read last. Call Decode() once per header. If the crop reaches the last row, the file is read up
  // to its end-of-image marker, so decoding a whole image checks the whole file. With a smaller
  // `scale` the crop is a part of the smaller image, whose sides are ScaledSide().
  //   InvalidArgument     the crop is not inside the image, or `out` has another size.
  //   FailedPrecondition  no header was read.
  //   DataLoss            an error of libjpeg or, with fail_on_warning, a warning.
  //   ResourceExhausted   more scans than max_scans.
  //   Unavailable         no memory; the image itself may be good.
  absl::Status Decode(const CropRect& crop, absl::Span<uint8_t> out,
                      JpegScale scale = JpegScale::kFull);

  // Decode() a few rows at a time: call StartCrop, then NextRows until crop.height rows have come.
  // Each call of NextRows returns 1 to `max_rows` rows, each [width, channels] uint8, valid until
  // the next call. The caller may stop before the last row. Errors: those of Decode(). REQUIRES:
  // max_rows > 0.
  absl::Status StartCrop(const CropRect& crop, JpegScale scale = JpegScale::kFull);
  absl::StatusOr<DecodedRows> NextRows(int max_rows);
  absl::StatusOr<const uint8_t*> NextRow();

  // Optional, between StartCrop and NextRows: entropy-decodes two crops together until is_ahead()
  // is true for one of them. This takes less time than decoding one crop after the other, and gives
  // the same pixels. At a smaller scale DecodeAhead() also makes rows from the coefficients, at
  // most kMaxKeptBytes bytes of rows. The memory of these coefficients is then used for other
  // coefficients. REQUIRES: is_ahead() is false for both.
  static void DecodeAhead(UncheckedJpegDecoder& a, UncheckedJpegDecoder& b);
  // Whether DecodeAhead() has nothing left to do for this image.
  bool is_ahead() const;

  // Ends the image and frees its memory. The next ReadHeader would do so too.
  void EndImage();

  // Whether libjpeg does the entropy decoding of the image that was begun last. The reason may be
  // an option, the image's kind, or an oddity in the image.
  bool by_library() const;

  // How many warnings libjpeg gave since the last ReadHeader. If fail_on_warning is set and no call
  // gave an error, only oddities that change no pixel are counted (padding between markers, an odd
  // colour profile).
  int64_t warnings() const;

 private:
  // The last part of StartCrop(). For images of several scans, the first NextRows() calls it.
  absl::Status BeginRows();
  void KeepRows();
  // NextRows() for rows that KeepRows() has not made.
  absl::StatusOr<DecodedRows> DecodeRows(int max_rows);
  absl::Status DecodeByLibrary(int rows);
  explicit UncheckedJpegDecoder(std::unique_ptr<JpegDecompressor> state);

  std::unique_ptr<JpegDecompressor> state_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_UNCHECKED_JPEG_DECODER_H_
