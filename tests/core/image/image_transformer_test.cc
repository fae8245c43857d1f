#include "core/image/image_transformer.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/image/paired_decoding.h"
#include "core/image/scaled_crop.h"
#include "core/numeric/simd_target.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/jpeg/jpeg_fixture.h"
#include "tests/core/image/resize/bilinear_reference.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr JpegKind k420 = {.name = "420", .h = 2, .v = 2};

ImageTransformer MakeTransformer(const ImageTransformerOptions& options) {
  absl::StatusOr<ImageTransformer> transformer = ImageTransformer::Create(options);
  EXPECT_THAT(transformer, IsOk());
  return *std::move(transformer);
}

BilinearResizerOptions Imagenet(int side, PixelType type) {
  return {.height = side,
          .width = side,
          .scale = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f},
          .bias = {-2.1179f, -2.0357f, -1.8044f},
          .type = type};
}

// The fused path must give, on every target, what three plain steps give: libjpeg decodes the whole
// image, the crop is cut out, and the scalar reference resizes it.
TEST(ImageTransformerTest, EqualsDecodeThenCutThenResizeOnEveryTarget) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (const PixelType type :
         {PixelType::kUint8, PixelType::kFloat32, PixelType::kBfloat16, PixelType::kFloat16}) {
      ImageTransformerOptions options = {.output = Imagenet(24, type)};
      if (type == PixelType::kUint8) options.output.scale = options.output.bias = {1.0f};
      ImageTransformer transformer = MakeTransformer(options);
      for (int record = 0; record < 12; ++record) {
        const std::string jpeg = MakeJpeg(k420, 90 + record, 70, record);
        CounterRng rng(/*seed=*/1, 0, record, 0);
        const auto info = transformer.ReadHeader(jpeg);
        ASSERT_THAT(info, IsOk());
        const CropRect crop = RandomResizedCrop({}, info->height, info->width, rng);
        const bool flip = DrawFlip(rng);
        std::vector<uint8_t> out(transformer.output_bytes());
        ASSERT_THAT(transformer.Transform(crop, flip, absl::MakeSpan(out)), IsOk());
        const Decoded whole = DecodeWhole(jpeg, {});
        const std::vector<uint8_t> cut =
            Cut(whole.pixels, whole.width, 3, crop.y, crop.x, crop.height, crop.width);
        ASSERT_EQ(out, ReferenceResize(cut, crop.height, crop.width, flip, options.output));
        std::vector<uint8_t> from_pixels(transformer.output_bytes());
        ASSERT_THAT(transformer.TransformPixels(whole.pixels, whole.height, whole.width, crop, flip,
                                                absl::MakeSpan(from_pixels)),
                    IsOk());
        ASSERT_EQ(from_pixels, out);
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

// The result must be what three plain steps give: libjpeg decodes the whole image at the smaller
// scale, the crop is cut out, and the scalar reference resizes it.
TEST(ImageTransformerTest, ScaledEqualsDecodeAtThatScaleThenResizeOnEveryTarget) {
  const std::vector<JpegKind> kinds = {
      {.name = "444"},
      {.name = "422", .h = 2},
      k420,
      {.name = "411", .h = 4},
      {.name = "progressive 420", .h = 2, .v = 2, .progressive = true}};
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    std::vector<int> drawn(9);  // How many crops each divisor got.
    const ImageTransformerOptions options = {.output = Imagenet(12, PixelType::kFloat32),
                                             .scaled = true};
    ImageTransformer transformer = MakeTransformer(options);
    for (int record = 0; record < 60; ++record) {
      const JpegKind& kind = kinds[static_cast<size_t>(record) % kinds.size()];
      SCOPED_TRACE(kind.name);
      const std::string jpeg = MakeJpeg(kind, 100 + record, 81 + record, record);
      CounterRng rng(/*seed=*/1, 0, record, 0);
      const auto info = transformer.ReadHeader(jpeg);
      ASSERT_THAT(info, IsOk());
      const CropRect crop = record < 5 ? WholeImage(info->height, info->width)
                                       : RandomResizedCrop({}, info->height, info->width, rng);
      const bool flip = DrawFlip(rng);
      std::vector<uint8_t> out(transformer.output_bytes());
      ASSERT_THAT(transformer.Transform(crop, flip, absl::MakeSpan(out)), IsOk());
      const ScaledCrop scaled = ScaleCrop(crop, 12, 12);
      const int divisor = static_cast<int>(scaled.scale);
      ++drawn[static_cast<size_t>(divisor)];
      const Decoded whole = DecodeWhole(jpeg, {.divisor = divisor});
      const CropRect& rect = scaled.rect;
      const std::vector<uint8_t> cut =
          Cut(whole.pixels, whole.width, 3, rect.y, rect.x, rect.height, rect.width);
      ASSERT_EQ(out, ReferenceResize(cut, scaled.rows, scaled.columns, flip, options.output));
    }
    for (const size_t divisor : {2, 4, 8}) EXPECT_GT(drawn[divisor], 3) << divisor;
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(ImageTransformerTest, PixelsOfACropAreThoseOfTheWholeImage) {
  const std::vector<JpegKind> kinds = {
      {.name = "444"}, k420, {.name = "progressive 420", .h = 2, .v = 2, .progressive = true}};
  for (const JpegKind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    const std::string jpeg = MakeJpeg(kind, 83, 70, 1);
    const Decoded whole = DecodeWhole(jpeg, {});
    ImageTransformer transformer =
        MakeTransformer({.output = {.height = 1, .width = 1, .channels = 3}});
    for (const CropRect& crop :
         {WholeImage(70, 83), CropRect{7, 9, 50, 1}, CropRect{20, 30, 50, 53}}) {
      std::vector<uint8_t> want =
          Cut(whole.pixels, whole.width, 3, crop.y, crop.x, crop.height, crop.width);
      for (const bool flip : {false, true}) {
        std::vector<uint8_t> got(want.size());
        ASSERT_THAT(transformer.ReadHeader(jpeg), IsOk());
        ASSERT_THAT(transformer.Start(crop, flip), IsOk());
        ASSERT_THAT(transformer.FinishPixels(absl::MakeSpan(got)), IsOk());
        for (int y = 0; flip && y < crop.height; ++y) {
          for (int x = 0; x < crop.width / 2; ++x) {
            uint8_t* const row = got.data() + y * crop.width * 3;
            std::swap_ranges(row + 3 * x, row + 3 * x + 3, row + 3 * (crop.width - 1 - x));
          }
        }
        EXPECT_EQ(got, want);
      }
    }
    std::vector<uint8_t> small(10);
    ASSERT_THAT(transformer.ReadHeader(jpeg), IsOk());
    ASSERT_THAT(transformer.Start(WholeImage(70, 83), false), IsOk());
    EXPECT_THAT(transformer.FinishPixels(absl::MakeSpan(small)), StatusIs(kInvalid, testing::_));
  }
}

TEST(ImageTransformerTest, TheScaledOptionDecodesInFullIfHalfSizeIsTooSmall) {
  const std::string jpeg = MakeJpeg(k420, 61, 50, 1);
  std::vector<uint8_t> out[2];
  for (const bool scaled : {false, true}) {
    ImageTransformer transformer =
        MakeTransformer({.output = {.height = 20, .width = 26}, .scaled = scaled});
    out[scaled ? 1 : 0].resize(transformer.output_bytes());
    ASSERT_THAT(transformer.ReadHeader(jpeg), IsOk());
    // Half of the crop's 58 columns would be enough for 26 output columns. Half of its 39 rows is
    // too little for 20 output rows.
    ASSERT_THAT(transformer.Transform({7, 3, 39, 58}, true, absl::MakeSpan(out[scaled ? 1 : 0])),
                IsOk());
  }
  EXPECT_EQ(out[1], out[0]);
}

TEST(ImageTransformerTest, EveryKindOfJpegIsDecodedCutAndResized) {
  for (const int channels : {1, 3}) {
    BilinearResizerOptions output = {.height = 16, .width = 16, .channels = channels};
    ImageTransformer transformer = MakeTransformer({.output = output});
    for (const JpegKind& kind : AllJpegKinds()) {
      const std::string jpeg = MakeJpeg(kind, 50, 40, 1);
      ASSERT_THAT(transformer.ReadHeader(jpeg), IsOk()) << kind.name;
      std::vector<uint8_t> out(transformer.output_bytes());
      ASSERT_THAT(transformer.Transform({3, 5, 30, 31}, false, absl::MakeSpan(out)), IsOk());
      const Decoded whole = DecodeWhole(jpeg, {.grey = channels == 1});
      if (whole.channels == 4) continue;  // jpeg_decoder_test covers the conversion.
      EXPECT_EQ(out, ReferenceResize(Cut(whole.pixels, 50, channels, 3, 5, 30, 31), 30, 31, false,
                                     output))
          << kind.name;
    }
  }
}

TEST(ImageTransformerTest, RawPixelsOfOneChannelAreResizedLikeTheReference) {
  const std::vector<uint8_t> pixels = TestPixels(28, 28, 1, 5);
  const BilinearResizerOptions output = {.height = 28,
                                         .width = 28,
                                         .channels = 1,
                                         .scale = {kUint8ToUnit},
                                         .type = PixelType::kFloat32};
  ImageTransformer transformer = MakeTransformer({.output = output});
  std::vector<uint8_t> out(transformer.output_bytes());
  ASSERT_THAT(
      transformer.TransformPixels(pixels, 28, 28, WholeImage(28, 28), false, absl::MakeSpan(out)),
      IsOk());
  EXPECT_EQ(out, ReferenceResize(pixels, 28, 28, false, output));
}

TEST(ImageTransformerTest, ImagesDecodedTogetherEqualImagesAlone) {
  const ImageTransformerOptions options = {.output = Imagenet(24, PixelType::kFloat32)};
  ImageTransformer a = MakeTransformer(options);
  ImageTransformer b = MakeTransformer(options);
  for (int record = 0; record < 12; ++record) {
    const std::string jpeg_a = MakeJpeg(k420, 90 + record, 70, record);
    const std::string jpeg_b = MakeJpeg(k420, 80, 60 + record, record);
    const CropRect crop_a = {record, 3, 50, 60};
    const CropRect crop_b = WholeImage(60 + record, 80);
    std::vector<uint8_t> want_a(a.output_bytes()), want_b(want_a), out_a(want_a), out_b(want_a);
    ASSERT_THAT(a.ReadHeader(jpeg_a), IsOk());
    ASSERT_THAT(a.Transform(crop_a, true, absl::MakeSpan(want_a)), IsOk());
    ASSERT_THAT(a.ReadHeader(jpeg_b), IsOk());
    ASSERT_THAT(a.Transform(crop_b, false, absl::MakeSpan(want_b)), IsOk());

    ASSERT_THAT(a.ReadHeader(jpeg_a), IsOk());
    ASSERT_THAT(a.Start(crop_a, true), IsOk());
    ASSERT_THAT(b.ReadHeader(jpeg_b), IsOk());
    ASSERT_THAT(b.Start(crop_b, false), IsOk());
    PairedDecoding decoding;
    decoding.Add(0, a);
    decoding.Add(1, b);
    ASSERT_TRUE(decoding.waits(0) && decoding.waits(1));
    decoding.Advance();
    ASSERT_THAT(b.Finish(absl::MakeSpan(out_b)), IsOk());
    ASSERT_THAT(a.Finish(absl::MakeSpan(out_a)), IsOk());
    EXPECT_EQ(out_a, want_a);
    EXPECT_EQ(out_b, want_b);
  }
}

TEST(ImageTransformerTest, DamageInTheCropIsDataLossAndTheNextImageIsFine) {
  const std::string jpeg = MakeJpeg(k420, 64, 64, 3);
  const std::string cut = jpeg.substr(0, jpeg.size() / 2);
  ImageTransformer transformer = MakeTransformer({.output = {.height = 16, .width = 16}});
  std::vector<uint8_t> want(transformer.output_bytes()), out(transformer.output_bytes());
  ASSERT_THAT(transformer.ReadHeader(jpeg), IsOk());
  ASSERT_THAT(transformer.Transform(WholeImage(64, 64), false, absl::MakeSpan(want)), IsOk());
  ASSERT_THAT(transformer.ReadHeader(cut), IsOk());
  EXPECT_THAT(transformer.Transform(WholeImage(64, 64), false, absl::MakeSpan(out)),
              StatusIs(kDataLoss, HasSubstr("64x64")));
  // The missing half lies below this crop.
  ASSERT_THAT(transformer.ReadHeader(cut), IsOk());
  EXPECT_THAT(transformer.Transform({0, 0, 8, 64}, false, absl::MakeSpan(out)), IsOk());
  ASSERT_THAT(transformer.ReadHeader(jpeg), IsOk());
  ASSERT_THAT(transformer.Transform(WholeImage(64, 64), false, absl::MakeSpan(out)), IsOk());
  EXPECT_EQ(out, want);
}

TEST(ImageTransformerTest, BadArgumentsAreNamed) {
  EXPECT_THAT(ImageTransformer::Create({}).status(), StatusIs(kInvalid, HasSubstr("0x0")));
  EXPECT_THAT(
      ImageTransformer::Create({.output = {.height = 1, .width = 1}, .jpeg = {.max_pixels = 0}})
          .status(),
      StatusIs(kInvalid, HasSubstr("max_pixels")));
  ImageTransformer transformer = MakeTransformer({.output = {.height = 2, .width = 2}});
  std::vector<uint8_t> out(12);
  EXPECT_THAT(transformer.Transform({0, 0, 1, 1}, false, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("header")));
  const std::string jpeg = MakeJpeg(k420, 20, 10, 3);
  ASSERT_THAT(transformer.ReadHeader(jpeg), IsOk());
  EXPECT_THAT(transformer.Transform({0, 0, 11, 1}, false, absl::MakeSpan(out)),
              StatusIs(kInvalid, HasSubstr("crop of 11x1")));
  ASSERT_THAT(transformer.ReadHeader(jpeg), IsOk());
  EXPECT_THAT(transformer.Transform({0, 0, 1, 1}, false, absl::MakeSpan(out).subspan(1)),
              StatusIs(kInvalid, HasSubstr("11 bytes")));
  // At an eighth, both the image's 10 rows and the crop's 11 rows are rounded up to 2 rows. The
  // crop is refused all the same.
  ImageTransformer scaled = MakeTransformer({.output = {.height = 1, .width = 1}, .scaled = true});
  ASSERT_THAT(scaled.ReadHeader(jpeg), IsOk());
  EXPECT_THAT(scaled.Transform({0, 0, 11, 20}, false, absl::MakeSpan(out)),
              StatusIs(kInvalid, HasSubstr("crop of 11x20")));
  const std::vector<uint8_t> pixels(11);
  EXPECT_THAT(
      transformer.TransformPixels(pixels, 2, 2, WholeImage(2, 2), false, absl::MakeSpan(out)),
      StatusIs(kInvalid, HasSubstr("11 bytes of pixels, want 12")));
  EXPECT_THAT(transformer.TransformPixels(pixels, 1 << 30, 1 << 30, WholeImage(2, 2), false,
                                          absl::MakeSpan(out)),
              StatusIs(kInvalid, HasSubstr("bytes of pixels")));
}

}  // namespace
}  // namespace systole
