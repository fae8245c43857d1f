#include "core/image/png/plain_png.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/image/png/png_decoder.h"
#include "core/interrupt/interrupt.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/png/random_png.h"
#include "tests/core/image/png/spng_reference.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

PngLayout LayoutOf(const PngKind& kind) {
  return {.width = static_cast<size_t>(kind.width),
          .height = static_cast<size_t>(kind.height),
          .bit_depth = kind.bit_depth,
          .colour_type = static_cast<PngColourType>(kind.colour_type),
          .is_interlaced = kind.interlaced};
}

bool IsPlain(const std::string& png, const PngKind& kind) {
  std::vector<uint8_t> out(static_cast<size_t>(kind.width) * kind.height * 3);
  return DecodePlainPng(png, LayoutOf(kind), 3, out.data());
}

TEST(PlainPngTest, EveryKindOfPlainFileIsAccepted) {
  RandomBits bits(1);
  for (const auto& [colour_type, bit_depth] : std::vector<std::pair<int, int>>{
           {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}}) {
    PngKind kind = {.width = 37, .height = 21, .bit_depth = bit_depth, .colour_type = colour_type};
    const std::string deflated = Deflated(bits, RandomRows(bits, kind));
    EXPECT_TRUE(IsPlain(PngFile(kind, deflated, 1 << 20), kind)) << colour_type;
    EXPECT_TRUE(IsPlain(PngFile(kind, deflated, 100), kind)) << colour_type;
    EXPECT_TRUE(IsPlain(PngFile(kind, deflated, 1), kind)) << colour_type;
  }
}

TEST(PlainPngTest, InterlacedFilesAndSmallSamplesAreNotPlain) {
  RandomBits bits(1);
  const PngKind interlaced = {.width = 9, .height = 9, .interlaced = true};
  EXPECT_FALSE(
      IsPlain(PngFile(interlaced, Deflated(bits, RandomRows(bits, interlaced)), 1000), interlaced));
  const PngKind small = {.width = 9, .height = 9, .bit_depth = 4, .colour_type = 0};
  EXPECT_FALSE(IsPlain(PngFile(small, Deflated(bits, RandomRows(bits, small)), 1000), small));
}

TEST(PlainPngTest, AFileWithAFaultIsNotPlain) {
  RandomBits bits(1);
  const PngKind kind = {.width = 30, .height = 20};
  const std::string rows = RandomRows(bits, kind);
  const std::string deflated = Deflated(bits, rows);
  const auto is_plain = [&kind](const std::string& zlib) {
    return IsPlain(PngFile(kind, zlib, 1 << 20), kind);
  };
  ASSERT_TRUE(is_plain(deflated));
  EXPECT_FALSE(is_plain(Deflated(bits, rows + "x"))) << "too much data";
  EXPECT_FALSE(is_plain(Deflated(bits, rows.substr(1)))) << "too little data";
  EXPECT_FALSE(is_plain(deflated.substr(0, deflated.size() - 1))) << "half a checksum";
  std::string wrong = deflated;
  wrong.back() ^= 1;
  EXPECT_FALSE(is_plain(wrong)) << "a wrong checksum";
  wrong = deflated;
  wrong[0] = static_cast<char>(0x88), wrong[1] = 0x1c;
  EXPECT_FALSE(is_plain(wrong)) << "a window of 64 KiB";
  wrong = rows;
  wrong[91] = 5;
  EXPECT_FALSE(is_plain(Deflated(bits, wrong))) << "an unknown filter";

  const std::string png = PngFile(kind, deflated, 1 << 20);
  const size_t end = png.find("IDAT") + 4 + deflated.size() + 4;
  for (size_t at = png.find("IDAT"); at < end; ++at) {
    std::string damaged = png;
    damaged[at] ^= 4;
    ASSERT_FALSE(IsPlain(damaged, kind)) << at;
    ASSERT_FALSE(IsPlain(png.substr(0, at), kind)) << at;
  }
  EXPECT_TRUE(IsPlain(png.substr(0, end), kind)) << "nothing is needed behind the pixels";
}

TEST(PlainPngTest, DecodingFailsIfItIsInterrupted) {
  RandomBits bits(1);
  const PngKind kind = {.width = 30, .height = 20};
  const std::string png = PngFile(kind, Deflated(bits, RandomRows(bits, kind)), 1 << 20);
  InterruptFlag unwanted;
  unwanted.Raise();
  const InterruptScope scope(unwanted);
  EXPECT_FALSE(IsPlain(png, kind));
}

// Decodes with the public functions, and compares with libspng. Returns whether the file is good.
bool ExpectLikeSpng(const std::string& png) {
  const std::optional<std::vector<uint8_t>> expected = DecodeBySpng(png);
  const absl::StatusOr<PngInfo> info = ReadPngHeader(png, 3);
  absl::Status status = info.status();
  std::vector<uint8_t> rgb;
  if (info.ok()) {
    rgb.resize(static_cast<size_t>(info->width) * info->height * 3);
    status = DecodePng(png, 3, absl::MakeSpan(rgb));
  }
  EXPECT_EQ(status.ok(), expected.has_value()) << status;
  if (!status.ok() || !expected.has_value()) return false;
  EXPECT_EQ(rgb, *expected);
  std::vector<uint8_t> grey(rgb.size() / 3);
  EXPECT_THAT(DecodePng(png, 1, absl::MakeSpan(grey)), IsOk());
  if ((png[25] & 2) != 0) return true;  // A coloured file.
  for (size_t i = 0; i < grey.size(); ++i) rgb[i] = rgb[3 * i];
  rgb.resize(grey.size());
  EXPECT_EQ(grey, rgb);
  return true;
}

TEST(PngDecoderTest, FilesOfAnyKindAndAnyDamageAreDecodedOrRefusedLikeByLibspng) {
  RandomBits bits(7);
  int good = 0, bad = 0;
  for (int i = 0; i < 6000 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    ++(ExpectLikeSpng(RandomPng(bits, 40)) ? good : bad);
  }
  EXPECT_GT(good, 2000);
  EXPECT_GT(bad, 1000);
}

// If all checksums are right, there is damage that libspng finds and our own code does not
// (core/image/png/README.md). So the test compares only files that libspng decodes.
TEST(PngDecoderTest, DamagedStreamsThatLibspngDecodesGiveTheSamePixels) {
  RandomBits bits(7);
  int good = 0;
  for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const PngKind kind = RandomKind(bits, 40);
    std::string deflated = Deflated(bits, RandomRows(bits, kind));
    FlipBit(bits, deflated);
    const std::string png = PngFile(kind, deflated, 1 << 20);
    if (DecodeBySpng(png).has_value()) good += ExpectLikeSpng(png);
  }
  EXPECT_GT(good, 10);
}

// These images are larger than the pieces in which files are read and rows are made.
TEST(PngDecoderTest, LargeImagesAreDecodedLikeByLibspngWithEveryTarget) {
  RandomBits bits(7);
  for (const auto& [colour_type, bit_depth] :
       std::vector<std::pair<int, int>>{{0, 8}, {2, 8}, {2, 16}, {3, 8}, {6, 8}}) {
    for (const int width : {500, 60000}) {
      const PngKind kind = {.width = width,
                            .height = 120000 / width,
                            .bit_depth = bit_depth,
                            .colour_type = colour_type};
      const std::string deflated = Deflated(bits, RandomRows(bits, kind));
      for (const size_t chunk_bytes : {8192, 1 << 22}) {
        const std::string png = PngFile(kind, deflated, chunk_bytes);
        ASSERT_TRUE(IsPlain(png, kind));
        for (const std::string& target : SupportedSimdTargets()) {
          SCOPED_TRACE(testing::Message() << target << ", colour type " << colour_type << ", width "
                                          << width << ", chunks of " << chunk_bytes);
          ASSERT_THAT(ForceSimdTarget(target), IsOk());
          EXPECT_TRUE(ExpectLikeSpng(png));
        }
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

}  // namespace
}  // namespace systole
