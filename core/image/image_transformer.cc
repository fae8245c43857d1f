#include "core/image/image_transformer.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {

static_assert(JpegDecoder::kRowPaddingBytes >= BilinearResizer::kRowPaddingBytes,
              "decoded rows go to the resizer as they are");

absl::StatusOr<ImageTransformer> ImageTransformer::Create(const ImageTransformerOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(BilinearResizer resizer, BilinearResizer::Create(options.output));
  JpegDecoderOptions jpeg = options.jpeg;
  jpeg.channels = options.output.channels;
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create(jpeg));
  return ImageTransformer(std::move(decoder), std::move(resizer), options);
}

absl::StatusOr<ImageInfo> ImageTransformer::ReadHeader(absl::string_view jpeg) {
  SYSTOLE_ASSIGN_OR_RETURN(info_, decoder_.ReadHeader(jpeg));
  return info_;
}

absl::Status ImageTransformer::Transform(const CropRect& crop, bool flip, absl::Span<uint8_t> out) {
  SYSTOLE_RETURN_IF_ERROR(Start(crop, flip));
  return Finish(out);
}

absl::Status ImageTransformer::Start(const CropRect& crop, bool flip) {
  if (scaled_) {
    // Before it is divided: pixels that the image lacks may lie on one that the smaller one has.
    SYSTOLE_RETURN_IF_ERROR(CheckCropInside(crop, info_.height, info_.width));
    crop_ = ScaleCrop(crop, height_, width_);
  } else {
    crop_ = {.rect = crop, .rows = WholeSide(crop.height), .columns = WholeSide(crop.width)};
  }
  flip_ = flip;
  return decoder_.StartCrop(crop_.rect, crop_.scale);
}

void ImageTransformer::DecodeAhead(ImageTransformer& a, ImageTransformer& b) {
  JpegDecoder::DecodeAhead(a.decoder_, b.decoder_);
}

absl::Status ImageTransformer::Finish(absl::Span<uint8_t> out) {
  const absl::Status status = FinishRows(out);
  decoder_.EndImage();
  return status;
}

absl::Status ImageTransformer::FinishRows(absl::Span<uint8_t> out) {
  SYSTOLE_RETURN_IF_ERROR(resizer_.Start(crop_.rows, crop_.columns, flip_, out));
  while (!resizer_.done()) {
    const absl::StatusOr<DecodedRows> rows = decoder_.NextRows(crop_.rect.height);
    if (!rows.ok()) {
      resizer_.Finish();
      return rows.status();
    }
    resizer_.AddRows(rows->data, rows->stride_bytes, rows->count);
  }
  return absl::OkStatus();
}

absl::Status ImageTransformer::TransformPixels(absl::Span<const uint8_t> pixels, int height,
                                               int width, const CropRect& crop, bool flip,
                                               absl::Span<uint8_t> out) {
  constexpr int kMaxSide = 65535;
  const int64_t want = int64_t{height} * width * channels_;
  if (height < 1 || width < 1 || height > kMaxSide || width > kMaxSide ||
      static_cast<int64_t>(pixels.size()) != want) {
    return absl::InvalidArgumentError(absl::StrCat(pixels.size(), " bytes of pixels, want ", want,
                                                   " for height ", height, ", width ", width,
                                                   ", channels ", channels_));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckCropInside(crop, height, width));
  SYSTOLE_RETURN_IF_ERROR(resizer_.Start(crop.height, crop.width, flip, out));
  const size_t crop_row_bytes = static_cast<size_t>(crop.width) * channels_;
  row_.resize(crop_row_bytes + BilinearResizer::kRowPaddingBytes);
  const size_t row_bytes = static_cast<size_t>(width) * channels_;
  const uint8_t* from = pixels.data() + crop.y * row_bytes + crop.x * size_t(channels_);
  for (; !resizer_.done(); from += row_bytes) {
    std::memcpy(row_.data(), from, crop_row_bytes);  // The resizer reads beyond a row's end.
    resizer_.AddRow(row_.data());
  }
  return absl::OkStatus();
}

}  // namespace systole
