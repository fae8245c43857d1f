// Tests that long loops over images end soon, within a row or so, after an InterruptFlag is raised.
// Most tests raise the flag before the loop begins. Then a loop that ends in time leaves the bytes
// of the output untouched.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/image/image_transformer.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/image/png/png_decoder.h"
#include "core/image/resize/bilinear_resizer.h"
#include "core/image/resize/resampler.h"
#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/png/png_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr int kSide = 512;
constexpr uint8_t kUntouched = 0xab;

std::vector<uint8_t> Pixels() {
  std::vector<uint8_t> pixels(size_t{kSide} * kSide * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i >> 7);
  return pixels;
}

class InterruptedImageTest : public testing::Test {
 protected:
  // The number of rows that were written. Each row has `row_bytes` bytes.
  static size_t RowsWritten(const std::vector<uint8_t>& out, size_t row_bytes) {
    const auto last =
        std::find_if(out.rbegin(), out.rend(), [](uint8_t byte) { return byte != kUntouched; });
    return (static_cast<size_t>(out.rend() - last) + row_bytes - 1) / row_bytes;
  }

  InterruptFlag unwanted_;
};

TEST_F(InterruptedImageTest, DecodingAJpegOfAnyKindEndsBeforeItsFirstRow) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg = *EncodeJpeg(Pixels(), kSide, kSide, 3, {.progressive = progressive});
    for (const bool by_library : {false, true}) {
      for (const JpegScale scale : {JpegScale::kFull, JpegScale::kHalf, JpegScale::kEighth}) {
        SCOPED_TRACE(testing::Message() << "progressive " << progressive << ", library "
                                        << by_library << ", scale " << static_cast<int>(scale));
        absl::StatusOr<JpegDecoder> decoder =
            JpegDecoder::Create({.library_entropy_decoder = by_library});
        ASSERT_THAT(decoder, IsOk());
        const int side = ScaledSide(kSide, scale);
        // The decoder skips the rows before this crop.
        const CropRect crop = {.y = side / 4, .x = 0, .height = side / 2, .width = side};
        std::vector<uint8_t> out(size_t(crop.height) * crop.width * 3, kUntouched);
        {
          InterruptFlag unwanted;
          unwanted.Raise();
          const InterruptScope scope(unwanted);
          ASSERT_THAT(decoder->ReadHeader(jpeg), IsOk());
          EXPECT_THAT(decoder->Decode(crop, absl::MakeSpan(out), scale),
                      StatusIs(absl::StatusCode::kCancelled, testing::_));
          EXPECT_EQ(RowsWritten(out, size_t(crop.width) * 3), 0u);
        }
        // The decoder works like a new one afterwards.
        std::vector<uint8_t> fresh(out.size());
        ASSERT_THAT(decoder->ReadHeader(jpeg), IsOk());
        ASSERT_THAT(decoder->Decode(crop, absl::MakeSpan(out), scale), IsOk());
        absl::StatusOr<JpegDecoder> other = JpegDecoder::Create();
        ASSERT_THAT(other->ReadHeader(jpeg), IsOk());
        ASSERT_THAT(other->Decode(crop, absl::MakeSpan(fresh), scale), IsOk());
        EXPECT_EQ(out, fresh);
      }
    }
  }
}

TEST_F(InterruptedImageTest, DecodingAJpegInAPairEndsWithin32Rows) {
  const std::string jpeg = *EncodeJpeg(Pixels(), kSide, kSide, 3, {});
  absl::StatusOr<JpegDecoder> a = JpegDecoder::Create();
  absl::StatusOr<JpegDecoder> b = JpegDecoder::Create();
  for (JpegDecoder* const decoder : {&*a, &*b}) {
    ASSERT_THAT(decoder->ReadHeader(jpeg), IsOk());
    ASSERT_THAT(decoder->StartCrop({.y = 0, .x = 0, .height = kSide, .width = kSide}), IsOk());
  }
  unwanted_.Raise();
  const InterruptScope scope(unwanted_);
  if (!a->is_ahead() && !b->is_ahead()) JpegDecoder::DecodeAhead(*a, *b);
  // Rows that were decoded ahead may still come.
  absl::Status status;
  int rows = 0;
  while (status.ok() && rows < kSide) {
    const absl::StatusOr<DecodedRows> next = a->NextRows(kSide);
    status = next.status();
    if (next.ok()) rows += next->count;
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, testing::_));
  EXPECT_LE(rows, 32);
}

TEST_F(InterruptedImageTest, DecodingAPngEndsBeforeItsFirstRow) {
  const std::vector<uint8_t> pixels = Pixels();
  const std::string png =
      PngOf(absl::string_view(reinterpret_cast<const char*>(pixels.data()), pixels.size()), kSide,
            kSide, 3);
  std::vector<uint8_t> out(pixels.size(), kUntouched);
  unwanted_.Raise();
  const InterruptScope scope(unwanted_);
  EXPECT_THAT(DecodePng(png, 3, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kCancelled, testing::_));
  EXPECT_EQ(RowsWritten(out, kSide * 3), 0u);
}

TEST_F(InterruptedImageTest, TransformingRawPixelsWritesAtMostOneRow) {
  const std::vector<uint8_t> pixels = Pixels();
  for (const int side : {kSide, 2 * kSide, kSide / 2}) {
    SCOPED_TRACE(side);
    absl::StatusOr<ImageTransformer> transformer = ImageTransformer::Create(
        {.output = {.height = side, .width = side, .channels = 3, .type = PixelType::kUint8}});
    ASSERT_THAT(transformer, IsOk());
    const CropRect whole = {.y = 0, .x = 0, .height = kSide, .width = kSide};
    const size_t row_bytes = static_cast<size_t>(side) * 3;
    std::vector<uint8_t> out(static_cast<size_t>(transformer->output_bytes()), kUntouched);
    InterruptFlag unwanted;
    const InterruptScope scope(unwanted);
    EXPECT_THAT(
        transformer->TransformPixels(pixels, kSide, kSide, whole, false, absl::MakeSpan(out)),
        IsOk());
    EXPECT_EQ(RowsWritten(out, row_bytes), static_cast<size_t>(side));
    std::fill(out.begin(), out.end(), kUntouched);
    unwanted.Raise();
    // At the same size the status is OK, and only the flag says that rows are missing.
    EXPECT_THAT(
        transformer->TransformPixels(pixels, kSide, kSide, whole, false, absl::MakeSpan(out)),
        StatusIs(side == kSide ? absl::StatusCode::kOk : absl::StatusCode::kCancelled, testing::_));
    EXPECT_LE(RowsWritten(out, row_bytes), 1u);
  }
}

TEST_F(InterruptedImageTest, EveryMethodOfResizingEndsBeforeItsFirstRow) {
  const std::vector<uint8_t> pixels = Pixels();
  unwanted_.Raise();
  const InterruptScope scope(unwanted_);
  for (const ResampleMethod method :
       {ResampleMethod::kBilinear, ResampleMethod::kBicubic, ResampleMethod::kArea,
        ResampleMethod::kLanczos3, ResampleMethod::kLanczos5, ResampleMethod::kGaussian,
        ResampleMethod::kMitchellCubic}) {
    std::vector<float> out(size_t{100} * 100 * 3, -1);
    Resample<uint8_t>(
        {.method = method},
        {.values = pixels.data(),
         .row_values = kSide * 3,
         .height = kSide,
         .width = kSide,
         .channels = 3},
        {.values = out.data(), .row_values = 300, .height = 100, .width = 100, .channels = 3});
    EXPECT_THAT(out, testing::Each(-1)) << static_cast<int>(method);
  }
}

}  // namespace
}  // namespace systole
