// JpegDecoder (jpeg_decoder.h) without its one-time check of the libjpeg that this process has.
// That check decodes with it; all other code uses JpegDecoder. All decoding by libjpeg-turbo is
// behind this class. Our own entropy decoder (huffman_decoder.h) replaces libjpeg's for clean
// baseline images.
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
  int components = 0;  // Stored: 1 grey, 3 colour, 4 CMYK or YCCK.
};

// `count` decoded rows, each `stride_bytes` after the one before.
struct DecodedRows {
  const uint8_t* data = nullptr;
  size_t stride_bytes = 0;
  int count = 0;
};

class UncheckedJpegDecoder {
 public:
  // Rows returned by NextRows() can be read (not used) this many bytes beyond their end.
  static constexpr size_t kRowPaddingBytes = 64;

  // Most bytes of the rows that DecodeAhead() makes of an image.
  static constexpr size_t kMaxKeptBytes = size_t{1} << 20;

  // InvalidArgument if an option is out of range.
  static absl::StatusOr<UncheckedJpegDecoder> Create(const JpegDecoderOptions& options = {});
  UncheckedJpegDecoder(UncheckedJpegDecoder&&) noexcept;
  UncheckedJpegDecoder& operator=(UncheckedJpegDecoder&&) noexcept;
  ~UncheckedJpegDecoder();

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
  static void DecodeAhead(UncheckedJpegDecoder& a, UncheckedJpegDecoder& b);
  // Whether nothing is left to decode ahead of NextRows.
  bool is_ahead() const;

  // Ends the image and frees its memory, which the next ReadHeader would do too.
  void EndImage();

  // Whether libjpeg does the entropy decoding of the image begun last: by choice, because of the
  // image's kind, or because of an oddity in it.
  bool by_library() const;

  // libjpeg warnings since the last ReadHeader. Above 0 with an OK status only if !fail_on_warning,
  // or for oddities that change no pixel (padding between markers, an odd colour profile).
  int64_t warnings() const;

 private:
  // For images of several scans: the part of StartCrop() that the first NextRows() does.
  absl::Status BeginRows();
  void KeepRows();
  // NextRows() without regard to rows that were kept.
  absl::StatusOr<DecodedRows> DecodeRows(int max_rows);
  absl::Status DecodeByLibrary(int rows);
  explicit UncheckedJpegDecoder(std::unique_ptr<JpegDecompressor> state);

  std::unique_ptr<JpegDecompressor> state_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_UNCHECKED_JPEG_DECODER_H_
