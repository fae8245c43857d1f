#include "core/image/image_transformer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/interrupt/lap_times.h"
#include "core/status/status_macros.h"

namespace systole {

static_assert(JpegDecoder::kRowPaddingBytes >= BilinearResizer::kRowPaddingBytes,
              "the resizer reads decoded rows with their padding");

namespace {

// Copies the pixels of a row in reverse order. `to` must have room for one more pixel.
void MirrorRow(const uint8_t* from, int width, int channels, uint8_t* to) {
  if (channels == 1) {
    std::reverse_copy(from, from + width, to);
    return;
  }
  // Each copy in the loop writes four bytes, and the next copy overwrites the fourth. The copy
  // before the loop has only three bytes, because nothing may be read after the last pixel of
  // `from`.
  std::memcpy(to, from + 3 * (width - 1), 3);
  for (int x = 1; x < width; ++x) std::memcpy(to + 3 * x, from + 3 * (width - 1 - x), 4);
}

}  // namespace

absl::StatusOr<ImageTransformer> ImageTransformer::Create(const ImageTransformerOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(BilinearResizer resizer, BilinearResizer::Create(options.output));
  JpegDecoderOptions jpeg = options.jpeg;
  jpeg.channels = options.output.channels;
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create(jpeg));
  SYSTOLE_ASSIGN_OR_RETURN(
      TensorNormaliser normaliser,
      TensorNormaliser::Create(options.output.channels, /*inner=*/1,
                               {.scale = options.output.scale, .bias = options.output.bias},
                               options.output.type));
  return ImageTransformer(std::move(decoder), std::move(resizer), std::move(normaliser), options);
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
    // Checks the crop before ScaleCrop divides it. The division may hide that a crop reaches
    // outside the image, because a pixel of the smaller image may cover places outside.
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
    NoteLap(decode_part_);
    resizer_.AddRows(rows->data, rows->stride_bytes, rows->count);
    NoteLap(rows_part_);
  }
  return absl::OkStatus();
}

absl::Status ImageTransformer::FinishPixels(absl::Span<uint8_t> out) {
  const absl::Status status = CopyRows(out);
  decoder_.EndImage();
  return status;
}

absl::Status ImageTransformer::CopyRows(absl::Span<uint8_t> out) {
  const CropRect& crop = crop_.rect;
  const size_t row_bytes = static_cast<size_t>(crop.width) * channels_;
  if (out.size() != row_bytes * crop.height) {
    return absl::InvalidArgumentError(
        absl::StrCat(out.size(), " bytes for the crop, want ", row_bytes * crop.height));
  }
  if (flip_) row_.resize(row_bytes + BilinearResizer::kRowPaddingBytes);
  uint8_t* to = out.data();
  for (int left = crop.height; left > 0;) {
    SYSTOLE_ASSIGN_OR_RETURN(const DecodedRows rows, decoder_.NextRows(left));
    left -= rows.count;
    for (int i = 0; i < rows.count; ++i, to += row_bytes) {
      const uint8_t* row = rows.data + i * rows.stride_bytes;
      if (flip_) {
        MirrorRow(row, crop.width, channels_, row_.data());
        row = row_.data();
      }
      std::memcpy(to, row, row_bytes);
    }
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
  if (crop.height == height_ && crop.width == width_) {
    if (static_cast<int64_t>(out.size()) < output_bytes()) {
      return absl::InvalidArgumentError(
          absl::StrCat(out.size(), " bytes for the output, want ", output_bytes()));
    }
    NormalisePixels(pixels, width, crop, flip, out);
    return absl::OkStatus();
  }
  SYSTOLE_RETURN_IF_ERROR(resizer_.Start(crop.height, crop.width, flip, out));
  const size_t crop_row_bytes = static_cast<size_t>(crop.width) * channels_;
  row_.resize(crop_row_bytes + BilinearResizer::kRowPaddingBytes);
  const size_t row_bytes = static_cast<size_t>(width) * channels_;
  const uint8_t* from = pixels.data() + crop.y * row_bytes + crop.x * size_t(channels_);
  for (; !resizer_.done(); from += row_bytes) {
    if (InterruptRequested()) {
      resizer_.Finish();
      return InterruptedError();
    }
    std::memcpy(row_.data(), from, crop_row_bytes);  // The resizer reads beyond a row's end.
    resizer_.AddRow(row_.data());
  }
  return absl::OkStatus();
}

void ImageTransformer::NormalisePixels(absl::Span<const uint8_t> pixels, int width,
                                       const CropRect& crop, bool flip, absl::Span<uint8_t> out) {
  const auto channels = static_cast<size_t>(channels_);
  const size_t crop_row_bytes = static_cast<size_t>(crop.width) * channels;
  const size_t row_bytes = static_cast<size_t>(width) * channels;
  const size_t out_row_bytes = static_cast<size_t>(output_bytes()) / crop.height;
  row_.resize(crop_row_bytes + BilinearResizer::kRowPaddingBytes);
  const uint8_t* from = pixels.data() + crop.y * row_bytes + crop.x * channels;
  uint8_t* to = out.data();
  for (int y = 0; y < crop.height && !InterruptRequested();
       ++y, from += row_bytes, to += out_row_bytes) {
    const uint8_t* row = from;
    if (flip) {
      MirrorRow(from, crop.width, channels_, row_.data());
      row = row_.data();
    }
    normaliser_.Apply(0, absl::MakeConstSpan(row, crop_row_bytes), to);
  }
}

}  // namespace systole
