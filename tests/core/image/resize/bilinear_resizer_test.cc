#include "core/image/resize/bilinear_resizer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/resize/bilinear_reference.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::vector<uint8_t> Noise(size_t size, uint32_t seed) {
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(seed >> 24);
  }
  return bytes;
}

// Adds the rows one by one. The buffer of each row has exactly kRowPaddingBytes of padding, so ASan
// sees any read beyond the padding.
void Resize(BilinearResizer& resizer, const std::vector<uint8_t>& pixels, int in_height,
            int in_width, int channels, bool flip, absl::Span<uint8_t> out) {
  ASSERT_THAT(resizer.Start(in_height, in_width, flip, out), IsOk());
  const size_t row_bytes = static_cast<size_t>(in_width) * channels;
  for (int y = 0; !resizer.done(); ++y) {
    ASSERT_LT(y, in_height);
    std::vector<uint8_t> row(row_bytes + BilinearResizer::kRowPaddingBytes);
    std::memcpy(row.data(), pixels.data() + y * row_bytes, row_bytes);
    resizer.AddRow(row.data());
  }
}

std::vector<float> ResizeToFloats(const std::vector<uint8_t>& pixels, int in_height, int in_width,
                                  int out_height, int out_width) {
  auto resizer = BilinearResizer::Create(
      {.height = out_height, .width = out_width, .channels = 1, .type = PixelType::kFloat32});
  EXPECT_THAT(resizer, IsOk());
  std::vector<float> out(static_cast<size_t>(out_height) * out_width);
  Resize(*resizer, pixels, in_height, in_width, 1, false,
         absl::MakeSpan(reinterpret_cast<uint8_t*>(out.data()), out.size() * sizeof(float)));
  return out;
}

// The values are worked out by hand from the half-pixel rule.
TEST(BilinearResizerTest, UpscalesWithHalfPixelCentres) {
  EXPECT_THAT(ResizeToFloats({0, 100}, 1, 2, 1, 4), ElementsAre(0.0f, 25.0f, 75.0f, 100.0f));
  EXPECT_THAT(ResizeToFloats({0, 100}, 2, 1, 4, 1), ElementsAre(0.0f, 25.0f, 75.0f, 100.0f));
}

TEST(BilinearResizerTest, DownscalesWithoutAntialiasing) {
  EXPECT_THAT(ResizeToFloats({0, 10, 20, 30}, 1, 4, 1, 2), ElementsAre(5.0f, 25.0f));
  // From 8 pixels to 2, the samples lie at 1.5 and 5.5. So only the pixels 1, 2, 5 and 6 count.
  EXPECT_THAT(ResizeToFloats({0, 10, 20, 200, 0, 50, 70, 9}, 1, 8, 1, 2),
              ElementsAre(15.0f, 60.0f));
}

TEST(BilinearResizerTest, SameSizeKeepsEveryValue) {
  const std::vector<uint8_t> pixels = Noise(7 * 5, 1);
  EXPECT_EQ(ResizeToFloats(pixels, 7, 5, 7, 5), std::vector<float>(pixels.begin(), pixels.end()));
}

// Value i of the 2 results is sampled at (begin + (i + 0.5) * extent / 2) - 0.5 in the whole row.
TEST(BilinearResizerTest, APartOfTheInputIsSampledAtItsSubpixelPosition) {
  auto resizer = BilinearResizer::Create(
      {.height = 1, .width = 2, .channels = 1, .type = PixelType::kFloat32});
  ASSERT_THAT(resizer, IsOk());
  const auto resize = [&](const SourceSide& columns) {
    std::vector<uint8_t> row(4 + BilinearResizer::kRowPaddingBytes);
    for (size_t i = 0; i < 4; ++i) row[i] = static_cast<uint8_t>(10 * i);
    std::vector<float> out(2);
    EXPECT_THAT(resizer->Start(WholeSide(1), columns, false,
                               absl::MakeSpan(reinterpret_cast<uint8_t*>(out.data()), 8)),
                IsOk());
    resizer->AddRow(row.data());
    return out;
  };
  EXPECT_THAT(resize(WholeSide(4)), ElementsAre(5.0f, 25.0f));
  EXPECT_THAT(resize({.pixels = 4, .begin = 0.5f, .extent = 2}), ElementsAre(5.0f, 15.0f));
  EXPECT_THAT(resize({.pixels = 4, .begin = 0.875f, .extent = 3}), ElementsAre(11.25f, 26.25f));
  // This part has the size of the previous part, but begins elsewhere. So it needs other tables.
  EXPECT_THAT(resize({.pixels = 4, .begin = 0.25f, .extent = 3}), ElementsAre(5.0f, 20.0f));
}

struct Shape {
  int in_height, in_width, out_height, out_width;
};

TEST(BilinearResizerTest, EveryTargetEqualsTheReferenceByteForByte) {
  const Shape shapes[] = {
      {1, 1, 1, 1},   {1, 1, 5, 7},      {5, 7, 1, 1},      {28, 28, 28, 28},  {37, 53, 24, 24},
      {3, 3, 20, 17}, {100, 120, 9, 11}, {33, 300, 16, 19}, {64, 2000, 3, 10}, {240, 250, 64, 64}};
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (const Shape& shape : shapes) {
      for (const int channels : {1, 3}) {
        const std::vector<uint8_t> pixels =
            Noise(size_t{1} * shape.in_height * shape.in_width * channels, shape.in_width);
        for (const PixelType type :
             {PixelType::kUint8, PixelType::kFloat32, PixelType::kBfloat16, PixelType::kFloat16}) {
          BilinearResizerOptions options = {.height = shape.out_height,
                                            .width = shape.out_width,
                                            .channels = channels,
                                            .scale = {0.017f},
                                            .bias = {-2.1f, -2.0f, -1.8f},
                                            .type = type};
          if (channels == 1) options.bias = {0.3f};
          if (type == PixelType::kUint8) options.scale = options.bias = {1.0f};
          auto resizer = BilinearResizer::Create(options);
          ASSERT_THAT(resizer, IsOk());
          for (const bool flip : {false, true}) {
            std::vector<uint8_t> out(resizer->output_bytes() + 3, 0xee);
            Resize(*resizer, pixels, shape.in_height, shape.in_width, channels, flip,
                   absl::MakeSpan(out));
            EXPECT_THAT(std::vector<uint8_t>(out.end() - 3, out.end()),
                        ElementsAre(0xee, 0xee, 0xee));  // Not written.
            out.resize(resizer->output_bytes());
            ASSERT_EQ(out, ReferenceResize(pixels, shape.in_height, shape.in_width, flip, options))
                << shape.in_height << "x" << shape.in_width << " to " << shape.out_height << "x"
                << shape.out_width << ", channels " << channels << ", flip " << flip;
          }
        }
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(BilinearResizerTest, FlipMirrorsTheResult) {
  const std::vector<uint8_t> pixels = Noise(31 * 45 * 3, 3);
  auto resizer = BilinearResizer::Create({.height = 17, .width = 20});
  ASSERT_THAT(resizer, IsOk());
  std::vector<uint8_t> plain(17 * 20 * 3), flipped(17 * 20 * 3), mirrored(17 * 20 * 3);
  Resize(*resizer, pixels, 31, 45, 3, false, absl::MakeSpan(plain));
  Resize(*resizer, pixels, 31, 45, 3, true, absl::MakeSpan(flipped));
  for (int y = 0; y < 17; ++y) {
    for (int x = 0; x < 20; ++x) {
      std::memcpy(&mirrored[(y * 20 + x) * 3], &plain[(y * 20 + 19 - x) * 3], 3);
    }
  }
  EXPECT_EQ(flipped, mirrored);
}

TEST(BilinearResizerTest, ReuseAcrossSizesLeavesNoTrace) {
  auto reused = BilinearResizer::Create({.height = 12, .width = 13});
  ASSERT_THAT(reused, IsOk());
  for (const Shape& shape : {Shape{40, 50, 0, 0}, Shape{400, 700, 0, 0}, Shape{40, 50, 0, 0},
                             Shape{5, 50, 0, 0}, Shape{5, 3, 0, 0}}) {
    const std::vector<uint8_t> pixels = Noise(shape.in_height * shape.in_width * 3, 8);
    for (const bool flip : {true, false}) {
      auto fresh = BilinearResizer::Create({.height = 12, .width = 13});
      ASSERT_THAT(fresh, IsOk());
      std::vector<uint8_t> a(reused->output_bytes()), b(fresh->output_bytes());
      Resize(*reused, pixels, shape.in_height, shape.in_width, 3, flip, absl::MakeSpan(a));
      Resize(*fresh, pixels, shape.in_height, shape.in_width, 3, flip, absl::MakeSpan(b));
      EXPECT_EQ(a, b);
    }
  }
}

// A decoder gives as many rows at once as it has ready. Their number must not change the result.
TEST(BilinearResizerTest, RowsGivenTogetherGiveTheBytesOfRowsGivenOneByOne) {
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    // The first size is scaled up. The others are scaled down so far that some rows are not needed.
    // The last size is so wide that 4 values need more than 16 bytes of a row. The fast kernel
    // cannot load so many bytes.
    for (const auto& [in_height, in_width] : {std::pair(13, 40), {50, 61}, {111, 90}, {97, 400}}) {
      SCOPED_TRACE(absl::StrCat(target, " from ", in_height, "x", in_width));
      auto resizer = BilinearResizer::Create({.height = 24, .width = 50, .channels = 3});
      ASSERT_THAT(resizer, IsOk());
      const size_t stride = static_cast<size_t>(in_width) * 3 + 5;
      std::vector<uint8_t> pixels = Noise(stride * in_height, 3);
      pixels.resize(pixels.size() + BilinearResizer::kRowPaddingBytes);
      std::vector<uint8_t> one_by_one(resizer->output_bytes());
      ASSERT_THAT(resizer->Start(in_height, in_width, true, absl::MakeSpan(one_by_one)), IsOk());
      for (int y = 0; !resizer->done(); ++y) resizer->AddRow(pixels.data() + y * stride);
      for (const int piece : {2, 3, 8, in_height}) {
        std::vector<uint8_t> together(resizer->output_bytes());
        ASSERT_THAT(resizer->Start(in_height, in_width, true, absl::MakeSpan(together)), IsOk());
        for (int y = 0; !resizer->done(); y += piece) {
          resizer->AddRows(pixels.data() + y * stride, stride, std::min(piece, in_height - y));
        }
        EXPECT_EQ(together, one_by_one) << piece << " rows at once";
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

// A large float32 output is written with stores that bypass the caches, if it begins on a cache
// line and its rows consist of whole blocks of vectors (kBlock in bilinear_resizer.cc).
TEST(BilinearResizerTest, TheAddressOfTheOutputDoesNotChangeItsValues) {
  constexpr int kInSide = 150;
  const std::vector<uint8_t> pixels = Noise(size_t{kInSide} * kInSide * 3, 6);
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (const int side : {224, 225}) {  // Only with 224 are the rows whole blocks.
      SCOPED_TRACE(side);
      const size_t bytes = static_cast<size_t>(side) * side * 3 * sizeof(float);
      auto resizer =
          BilinearResizer::Create({.height = side, .width = side, .type = PixelType::kFloat32});
      ASSERT_THAT(resizer, IsOk());
      std::vector<uint8_t> buffer(bytes + 128, 0xee);
      uint8_t* line = buffer.data() + 64 - reinterpret_cast<uintptr_t>(buffer.data()) % 64;
      Resize(*resizer, pixels, kInSide, kInSide, 3, true, absl::MakeSpan(line, bytes));
      const std::vector<uint8_t> aligned(line, line + bytes);
      EXPECT_EQ(line[-1], 0xee);
      EXPECT_EQ(line[bytes], 0xee);
      Resize(*resizer, pixels, kInSide, kInSide, 3, true, absl::MakeSpan(line + 4, bytes));
      EXPECT_EQ(std::memcmp(line + 4, aligned.data(), bytes), 0);
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(BilinearResizerTest, LargestSizesStayInsideTheImage) {
  for (const Shape& shape : {Shape{1, 65535, 1, 16384}, Shape{1, 16383, 1, 16384},
                             Shape{1, 3, 1, 16384}, Shape{1, 65535, 1, 1}, Shape{1, 65534, 1, 3}}) {
    const std::vector<uint8_t> pixels = Noise(shape.in_width, 4);
    const BilinearResizerOptions options = {
        .height = 1, .width = shape.out_width, .channels = 1, .type = PixelType::kFloat32};
    auto resizer = BilinearResizer::Create(options);
    ASSERT_THAT(resizer, IsOk());
    std::vector<uint8_t> out(resizer->output_bytes());
    Resize(*resizer, pixels, 1, shape.in_width, 1, false, absl::MakeSpan(out));
    EXPECT_EQ(out, ReferenceResize(pixels, 1, shape.in_width, false, options));
  }
}

TEST(BilinearResizerTest, BadOptionsAndSizesAreNamed) {
  const auto create = [](BilinearResizerOptions options) {
    return BilinearResizer::Create(std::move(options)).status();
  };
  EXPECT_THAT(create({}), StatusIs(kInvalid, HasSubstr("0x0")));
  EXPECT_THAT(create({.height = 1, .width = 16385}), StatusIs(kInvalid, HasSubstr("1x16385")));
  EXPECT_THAT(create({.height = 1, .width = 1, .channels = 2}),
              StatusIs(kInvalid, HasSubstr("channels is 2")));
  EXPECT_THAT(create({.height = 1, .width = 1, .scale = {1, 2}}),
              StatusIs(kInvalid, HasSubstr("scale has 2 entries")));
  EXPECT_THAT(create({.height = 1, .width = 1, .bias = {}}),
              StatusIs(kInvalid, HasSubstr("bias has 0 entries")));
  EXPECT_THAT(create({.height = 1, .width = 1, .scale = {1, NAN, 1}}),
              StatusIs(kInvalid, HasSubstr("scale contains nan")));
  EXPECT_THAT(create({.height = 1, .width = 1, .bias = {-INFINITY}}),
              StatusIs(kInvalid, HasSubstr("bias contains -inf")));
  auto resizer = BilinearResizer::Create({.height = 2, .width = 2});
  ASSERT_THAT(resizer, IsOk());
  EXPECT_TRUE(resizer->done());  // No row is expected before Start.
  std::vector<uint8_t> out(12);
  EXPECT_THAT(resizer->Start(0, 5, false, absl::MakeSpan(out)),
              StatusIs(kInvalid, HasSubstr("0x5")));
  EXPECT_THAT(resizer->Start(5, 65536, false, absl::MakeSpan(out)),
              StatusIs(kInvalid, HasSubstr("5x65536")));
  for (const SourceSide& part :
       {SourceSide{5, -0.5f, 2}, SourceSide{5, 0, 0}, SourceSide{5, 1, 4.5f}, SourceSide{5, 0, NAN},
        SourceSide{5, NAN, 1}}) {
    EXPECT_THAT(resizer->Start(WholeSide(5), part, false, absl::MakeSpan(out)),
                StatusIs(kInvalid, HasSubstr("the part of 5 input pixels begins at")));
  }
  out.resize(11);
  EXPECT_THAT(resizer->Start(5, 5, false, absl::MakeSpan(out)),
              StatusIs(kInvalid, HasSubstr("11 bytes, want at least 12")));
}

}  // namespace
}  // namespace systole
