// Makes one example's finished tensor from a JPEG or raw pixels, in one pass: decodes the crop,
// resizes it bilinearly, mirrors, normalises and casts it, and writes it into the batch. The pass
// stores only a few rows of pixels at a time, and coefficients up to a bound (jpeg_options.h).
//
// Single-thread: each worker has an ImageTransformer of its own. From one image to the next, an
// ImageTransformer keeps only scratch memory. So the output depends on the arguments alone.
#ifndef SYSTOLE_CORE_IMAGE_IMAGE_TRANSFORMER_H_
#define SYSTOLE_CORE_IMAGE_IMAGE_TRANSFORMER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/resize/bilinear_resizer.h"
#include "core/image/scaled_crop.h"
#include "core/image/window/crop.h"
#include "core/numeric/normalise.h"

namespace systole {

struct ImageTransformerOptions {
  // Size, channels, normalisation and type of the output.
  BilinearResizerOptions output = {};
  // jpeg.channels is not used: output.channels counts.
  JpegDecoderOptions jpeg = {};
  // Decodes JPEGs at the scale that ScaleCrop() chooses (core/image/scaled_crop.h). If the output
  // is much smaller than the crop, this takes a fraction of the time, but the pixels differ from
  // those of a decode at full scale.
  bool scaled = false;
  // The numbers of two parts for NoteLap() (core/interrupt/lap_times.h). The time of a JPEG's
  // decoding counts for the first part, and the time of all work on the decoded rows for the second
  // part. -1: the time counts for no part.
  int decode_part = -1;
  int rows_part = -1;
};

class ImageTransformer {
 public:
  // InvalidArgument if an option is out of range.
  static absl::StatusOr<ImageTransformer> Create(const ImageTransformerOptions& options);

  // Bytes from the output's first value to the end of its last value.
  int64_t output_bytes() const { return resizer_.output_bytes(); }

  // First half: reads the image's size. The caller needs the size to choose the crop. `jpeg` is
  // borrowed, and must not change, until Transform() returns. Errors: JpegDecoder::ReadHeader.
  absl::StatusOr<ImageInfo> ReadHeader(absl::string_view jpeg);
  // The size of the image whose header was read last.
  const ImageInfo& info() const { return info_; }

  // Second half, for a crop of the stored image: writes the example to `out`, which must have
  // output_bytes() bytes or more. On an error parts of `out` may have been written. Rows below the
  // crop are not read, so damage in these rows is not noticed. Errors: JpegDecoder::Decode.
  absl::Status Transform(const CropRect& crop, bool flip, absl::Span<uint8_t> out);

  // Transform() in two steps. Between Start() and Finish(), two images can be decoded together in
  // less time: see core/image/paired_decoding.h.
  absl::Status Start(const CropRect& crop, bool flip);
  absl::Status Finish(absl::Span<uint8_t> out);
  // Call it instead of Finish() to get the crop as it was decoded, without a resize. Writes the
  // crop's pixels, mirrored if `flip`, to `out`: [crop.height, crop.width, channels] uint8. Of the
  // options, only `jpeg` and output.channels count. REQUIRES: the options are not `scaled`.
  //   InvalidArgument  `out` has another size.
  absl::Status FinishPixels(absl::Span<uint8_t> out);
  // The crop that was started last. REQUIRES: the options are not `scaled`.
  const CropRect& crop() const { return crop_.rect; }
  // Gives up the image that was started, and frees the image's memory. May be called at any time
  // instead of Finish().
  void Drop() { decoder_.EndImage(); }

  // Like Transform(), but from `pixels`, [height, width, channels] uint8.
  //   InvalidArgument  pixels.size() or the crop does not fit height and width.
  absl::Status TransformPixels(absl::Span<const uint8_t> pixels, int height, int width,
                               const CropRect& crop, bool flip, absl::Span<uint8_t> out);

 private:
  friend class PairedDecoding;

  // Decodes both images until one of them cannot be decoded further ahead (is_ahead()). REQUIRES:
  // both images were started, and is_ahead() is false for both.
  static void DecodeAhead(ImageTransformer& a, ImageTransformer& b);
  bool is_ahead() const { return decoder_.is_ahead(); }

  ImageTransformer(JpegDecoder decoder, BilinearResizer resizer, TensorNormaliser normaliser,
                   const ImageTransformerOptions& options)
      : decoder_(std::move(decoder)),
        resizer_(std::move(resizer)),
        normaliser_(std::move(normaliser)),
        height_(options.output.height),
        width_(options.output.width),
        channels_(options.output.channels),
        scaled_(options.scaled),
        decode_part_(options.decode_part),
        rows_part_(options.rows_part) {}

  absl::Status FinishRows(absl::Span<uint8_t> out);
  absl::Status CopyRows(absl::Span<uint8_t> out);
  // Does what TransformPixels() does, for a crop of the output's size, without the resizer. A
  // resize to the same size changes no value, so the resizer would write the same bits.
  void NormalisePixels(absl::Span<const uint8_t> pixels, int width, const CropRect& crop, bool flip,
                       absl::Span<uint8_t> out);

  JpegDecoder decoder_;
  BilinearResizer resizer_;
  TensorNormaliser normaliser_;
  // Size and channels of the output.
  int height_;
  int width_;
  int channels_;
  bool scaled_;
  int decode_part_;
  int rows_part_;
  ImageInfo info_;   // The image whose header was read last.
  ScaledCrop crop_;  // The crop that was started last.
  bool flip_ = false;
  std::vector<uint8_t> row_;  // One row of raw pixels with the padding the resizer needs.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_IMAGE_TRANSFORMER_H_
