// Decodes the pictures of a contact sheet and compares them with the pixels in the steps.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/look/sheet_page.h"
#include "tests/client/look/sheet_steps.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The largest difference between a value of the picture and the same value of the coloured blocks
// of `example`. 256 if the picture has another size.
int DifferenceFromBlocks(const DecodedPicture& picture, int64_t example, int64_t channels) {
  if (picture.height != kImageHeight || picture.width != kImageWidth) return 256;
  int largest = 0;
  for (int y = 0; y < kImageHeight; ++y) {
    for (int x = 0; x < kImageWidth; ++x) {
      for (int channel = 0; channel < 3; ++channel) {
        const int seen = picture.pixels[static_cast<size_t>((y * kImageWidth + x) * 3 + channel)];
        const int want = PixelAt(example, y, x, channels == 1 ? 0 : channel);
        largest = std::max(largest, std::abs(seen - want));
      }
    }
  }
  return largest;
}

TEST(ContactSheetPictureTest, PicturesAreRestoredFromEveryLayoutTypeAndPlacement) {
  const double kMean[] = {123.5, 116.25, 103}, kStddev[] = {58.5, 57, 57.25};
  for (const v1::Layout layout : {v1::NHWC, v1::NCHW, v1::HWCN, v1::HWCN_TILED}) {
    for (const DType dtype : {DType::kUint8, DType::kFloat32, DType::kBfloat16}) {
      if (layout == v1::HWCN_TILED && dtype != DType::kBfloat16) continue;
      for (const int64_t channels : {1, 3}) {
        for (const StepPlacement placement :
             {StepPlacement::kCoreMajor, StepPlacement::kTensorMajor}) {
          SCOPED_TRACE(absl::StrCat(v1::Layout_Name(layout), " ", DTypeName(dtype), " ", channels,
                                    placement == StepPlacement::kCoreMajor ? "" : " tensor-major"));
          const bool normalised = dtype != DType::kUint8;
          std::string transforms = channels == 1 ? kGreyDecode : kDecode;
          if (normalised) {
            absl::StrAppend(&transforms, " transforms { normalize { ",
                            channels == 1 ? "mean: 123.5 stddev: 58.5"
                                          : "mean: [123.5, 116.25, 103] stddev: [58.5, 57, 57.25]",
                            " } }");
          }
          const v1::FeedSpec spec = ParseSpec(
              SpecText(absl::StrCat("outputs { name: 'image' feature: 'image' ", transforms,
                                    " layout: ", v1::Layout_Name(layout), " }")));
          const SheetFeed feed = {.tensors = {BlocksTensor("image", dtype, layout, channels,
                                                           [&](uint8_t pixel, int64_t channel) {
                                                             if (!normalised)
                                                               return static_cast<double>(pixel);
                                                             return (pixel - kMean[channel]) /
                                                                    kStddev[channel];
                                                           })},
                                  .placement = placement};
          const std::string page = MustRender(spec, MakeSteps(feed, 0, 1));
          const std::vector<DecodedPicture> pictures = PicturesOf(page);
          ASSERT_THAT(pictures, SizeIs(8));
          for (int64_t example = 0; example < 8; ++example) {
            const DecodedPicture& picture = pictures[static_cast<size_t>(example)];
            EXPECT_EQ(picture.components, channels);
            EXPECT_LE(DifferenceFromBlocks(picture, example, channels), 4);
          }
          EXPECT_THAT(page, HasSubstr(normalised ? "normalize undone"
                                                 : "taken as they are: 0 is black, 255 is white"));
          EXPECT_EQ(RowOf(page, "image")[2], layout != v1::HWCN_TILED ? v1::Layout_Name(layout)
                                             : channels == 1
                                                 ? "HWCN_TILED, 3072 of 786432 bytes useful"
                                                 : "HWCN_TILED, 9216 of 786432 bytes useful");
        }
      }
    }
  }
}

// As in torchvision, pixels are first scaled to 0 .. 1, and then normalized by mean and deviation.
TEST(ContactSheetPictureTest, TwoNormalizesAreBothUndone) {
  const v1::FeedSpec spec = ParseSpec(SpecText(absl::StrCat(
      "outputs { name: 'image' feature: 'image' ", kDecode,
      " transforms { normalize { scale: 0.00392156862745098 } } transforms { random_flip {} }"
      " transforms { normalize { mean: 0.5 stddev: 0.25 } } }")));
  const SheetFeed feed = {
      .tensors = {BlocksTensor("image", DType::kFloat32, v1::NHWC, 3, [](uint8_t pixel, int64_t) {
        return (pixel / 255.0 - 0.5) / 0.25;
      })}};
  const std::vector<DecodedPicture> pictures = PicturesOf(MustRender(spec, MakeSteps(feed, 0, 1)));
  ASSERT_THAT(pictures, SizeIs(8));
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_LE(DifferenceFromBlocks(pictures[static_cast<size_t>(i)], i, 3), 4);
  }
}

TEST(ContactSheetPictureTest, WithoutNormalizeTheRangeDecidesWhetherValuesAreStretched) {
  const v1::FeedSpec spec = ParseSpec(
      SpecText("outputs { name: 'image' feature: 'pixels' shape: [16, 24, 3] dtype: FLOAT32 }"));
  const auto render = [&](double scale, double offset) {
    const SheetFeed feed = {
        .tensors = {BlocksTensor("image", DType::kFloat32, v1::NHWC, 3,
                                 [=](uint8_t pixel, int64_t) { return pixel * scale + offset; })}};
    return MustRender(spec, MakeSteps(feed, 0, 1));
  };
  const std::string plain = render(1, 0);
  EXPECT_THAT(plain, HasSubstr("taken as they are: 0 is black, 255 is white"));
  EXPECT_LE(DifferenceFromBlocks(PicturesOf(plain)[3], 3, 3), 4);
  // Pixels are 20 .. 235, so these values are -0.9216 .. -0.0784. The sheet must stretch them to
  // 0 .. 255.
  const std::string stretched = render(1.0 / 255, -1);
  EXPECT_THAT(stretched, HasSubstr("stretched over their range: -0.9216 is black, "));
  const std::vector<DecodedPicture> pictures = PicturesOf(stretched);
  uint8_t least = 255, most = 0;
  for (const DecodedPicture& picture : pictures) {
    for (const uint8_t pixel : picture.pixels) {
      least = std::min(least, pixel);
      most = std::max(most, pixel);
    }
  }
  EXPECT_LE(least, 3);
  EXPECT_GE(most, 252);
  // Floats of 0 to 1 must not be shown as an almost black picture.
  EXPECT_THAT(render(1.0 / 255, 0), HasSubstr("stretched over their range: 0.07843 is black, "));
}

TEST(ContactSheetPictureTest, StoredNumbersAreStretchedOverTheirRangeAlsoAfterNormalize) {
  const struct {
    std::string decode;
    double scale;  // The stored number of a pixel is pixel * scale.
    std::string how;
  } cases[] = {
      {"decode_raw { stored: FLOAT32 }", 1.0 / 255,
       "stretched over their range: 0.07843 is black, "},
      {"decode_raw { stored: UINT16 } } transforms { cast { dtype: FLOAT32 }", 100,
       "stretched over their range: 2000 is black, "},
  };
  for (const auto& test : cases) {
    const auto page = [&](absl::string_view normalize, double mean) {
      const auto value = [&](uint8_t pixel, int64_t) { return pixel * test.scale - mean; };
      const SheetFeed feed = {
          .tensors = {BlocksTensor("image", DType::kFloat32, v1::NHWC, 3, value)}};
      const std::string output = absl::StrCat(
          "outputs { name: 'image' feature: 'pixels' shape: [16, 24, 3] dtype: FLOAT32 "
          "transforms { ",
          test.decode, " } ", normalize, " }");
      return MustRender(ParseSpec(SpecText(output)), MakeSteps(feed, 0, 1));
    };
    EXPECT_THAT(page("", 0), HasSubstr(test.how));
    EXPECT_THAT(page("transforms { normalize { mean: 0.5 } }", 0.5), HasSubstr(test.how));
  }
}

TEST(ContactSheetPictureTest, ValuesThatAreNoPixelsAreClampedAndNanIsBlack) {
  const v1::FeedSpec spec =
      ParseSpec(SpecText(absl::StrCat("outputs { name: 'image' feature: 'image' ", kGreyDecode,
                                      " transforms { normalize { mean: 100 } } }")));
  const SheetFeed feed = {.tensors = {{.name = "image",
                                       .dtype = DType::kFloat32,
                                       .shape = {16, 24, 1},
                                       .value = [](int64_t, int64_t example, int64_t) {
                                         if (example == 0)
                                           return std::numeric_limits<double>::quiet_NaN();
                                         if (example == 1)
                                           return std::numeric_limits<double>::infinity();
                                         return example == 2 ? -1000.0 : 1000.0;
                                       }}}};
  const std::string page = MustRender(spec, MakeSteps(feed, 0, 1));
  const std::vector<DecodedPicture> pictures = PicturesOf(page);
  ASSERT_THAT(pictures, SizeIs(8));
  EXPECT_THAT(pictures[0].pixels, testing::Each(0));
  EXPECT_THAT(pictures[1].pixels, testing::Each(255));
  EXPECT_THAT(pictures[2].pixels, testing::Each(0));
  EXPECT_THAT(pictures[3].pixels, testing::Each(255));
  // Two of the eight examples, a quarter of the values, are NaN or infinite.
  EXPECT_EQ(RowOf(page, "image")[6], "25 %");
  EXPECT_EQ(RowOf(page, "valid")[6], "none");
  EXPECT_THAT(page, HasSubstr("25 % of its values are NaN or infinite"));
}

TEST(ContactSheetPictureTest, ATensorOfTwoChannelsOrOfInt64IsNoPicture) {
  const v1::FeedSpec spec =
      ParseSpec(SpecText("outputs { name: 'pairs' feature: 'a' shape: [2, 2, 2] dtype: FLOAT32 }"
                         "outputs { name: 'classes' feature: 'b' shape: [2, 2, 1] dtype: INT64 }"));
  const auto value = [](int64_t, int64_t, int64_t element) { return static_cast<double>(element); };
  const SheetFeed feed = {.tensors = {{"pairs", DType::kFloat32, {2, 2, 2}, v1::NHWC, value},
                                      {"classes", DType::kInt64, {2, 2, 1}, v1::NHWC, value}}};
  const std::string page = MustRender(spec, MakeSteps(feed, 0, 1));
  EXPECT_THAT(PicturesOf(page), IsEmpty());
  EXPECT_THAT(CardsOf(page)[0],
              AllOf(HasSubstr("0, 1, 2, 3, 4, 5, 6, 7"), HasSubstr("0, 1, 2, 3")));
}

TEST(ContactSheetPictureTest, LargeImagesAreShownSubsampled) {
  const v1::FeedSpec spec =
      ParseSpec(SpecText("outputs { name: 'wide' feature: 'w' transforms { decode_raw {} } "
                         "shape: [8, 1100, 1] dtype: UINT8 }"));
  const SheetFeed feed = {
      .tensors = {{"wide", DType::kUint8, {8, 1100, 1}, v1::NHWC, [](int64_t, int64_t, int64_t i) {
                     return i % 1100 % 3 == 0 ? 200.0 : 0.0;
                   }}}};
  const std::string page = MustRender(spec, MakeSteps(feed, 0, 1), {.max_examples = 1});
  const std::vector<DecodedPicture> pictures = PicturesOf(page);
  ASSERT_THAT(pictures, SizeIs(1));
  EXPECT_EQ(pictures[0].width, 367);
  EXPECT_EQ(pictures[0].height, 3);
  EXPECT_THAT(pictures[0].pixels, testing::Each(200));
  EXPECT_THAT(page, AllOf(HasSubstr("width=\"367\" height=\"3\""),
                          HasSubstr("of 1100 x 8 pixels every 3rd is shown")));
}

TEST(ContactSheetPictureTest, OfManyImageOutputsTheFirstFourAreDrawn) {
  std::string outputs;
  SheetFeed feed;
  for (int i = 0; i < 6; ++i) {
    absl::StrAppend(&outputs, "outputs { name: 'i", i, "' feature: 'image' ", kDecode, " } ");
    feed.tensors.push_back(BlocksTensor(absl::StrCat("i", i), DType::kUint8, v1::NHWC, 3, AsItIs));
  }
  const std::string page =
      MustRender(ParseSpec(SpecText(outputs)), MakeSteps(feed, 0, 1), {.max_examples = 2});
  EXPECT_THAT(PicturesOf(page), SizeIs(8));
  EXPECT_THAT(page, HasSubstr("The first 4 of 6 image outputs of each example are drawn"));
  EXPECT_THAT(CardsOf(page)[0], HasSubstr(">i3</figcaption>"));
}

}  // namespace
}  // namespace systole
