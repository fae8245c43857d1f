#include "core/image/jpeg/jpeg_decoder.h"

#include <malloc.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/image/jpeg/jpeg_encoder.h"
#include "core/image/window/crop.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/jpeg/jpeg_fixture.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr JpegKind k420 = {.name = "420", .h = 2, .v = 2};

JpegDecoder MakeDecoder(const JpegDecoderOptions& options = {}) {
  absl::StatusOr<JpegDecoder> decoder = JpegDecoder::Create(options);
  EXPECT_THAT(decoder, IsOk());
  return *std::move(decoder);
}

// Reads the header and decodes the whole image.
absl::StatusOr<std::vector<uint8_t>> DecodeAll(JpegDecoder& decoder, absl::string_view jpeg,
                                               JpegScale scale = JpegScale::kFull) {
  const absl::StatusOr<ImageInfo> info = decoder.ReadHeader(jpeg);
  if (!info.ok()) return info.status();
  const CropRect whole =
      WholeImage(ScaledSide(info->height, scale), ScaledSide(info->width, scale));
  std::vector<uint8_t> pixels(size_t{3} * whole.width * whole.height);
  const absl::Status status = decoder.Decode(whole, absl::MakeSpan(pixels), scale);
  if (!status.ok()) return status;
  return pixels;
}

// Converts CMYK pixels to RGB by TensorFlow's formula and, for one channel, the RGB to grey by
// libjpeg's formula. Returns other pixels unchanged.
std::vector<uint8_t> Expected(const Decoded& decoded, int channels) {
  if (decoded.channels != 4) return decoded.pixels;
  std::vector<uint8_t> out;
  for (size_t i = 0; i < decoded.pixels.size(); i += 4) {
    const uint8_t* p = decoded.pixels.data() + i;
    int rgb[3];
    for (int c = 0; c < 3; ++c) {
      rgb[c] = decoded.adobe ? p[c] * p[3] / 255 : (255 - p[3]) * (255 - p[c]) / 255;
    }
    if (channels == 3) {
      for (int c : rgb) out.push_back(static_cast<uint8_t>(c));
    } else {
      out.push_back(
          static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) / 65536));
    }
  }
  return out;
}

// Draws a crop: with probability 1/4 a crop of at most 3 x 3 pixels, with probability 1/4 nearly
// the whole image, otherwise any crop.
CropRect RandomCrop(CounterRng& rng, int height, int width) {
  CropRect crop;
  switch (rng.UniformInt(0, 4)) {
    case 0:
      crop.height = 1 + static_cast<int>(rng.UniformInt(0, std::min(3, height)));
      crop.width = 1 + static_cast<int>(rng.UniformInt(0, std::min(3, width)));
      break;
    case 1:
      crop.height = height - static_cast<int>(rng.UniformInt(0, std::min(3, height)));
      crop.width = width - static_cast<int>(rng.UniformInt(0, std::min(3, width)));
      break;
    default:
      crop.height = 1 + static_cast<int>(rng.UniformInt(0, height));
      crop.width = 1 + static_cast<int>(rng.UniformInt(0, width));
  }
  crop.y = static_cast<int>(rng.UniformInt(0, height - crop.height + 1));
  crop.x = static_cast<int>(rng.UniformInt(0, width - crop.width + 1));
  return crop;
}

struct Size {
  int width;
  int height;
};

// Checks the claim on which core/image/jpeg relies: a decoded crop equals a cut of the whole image.
void ExpectCropsEqualCutsOfWhole(const JpegDecoderOptions& options, int crops_per_image,
                                 JpegScale scale = JpegScale::kFull) {
  JpegDecoder decoder = MakeDecoder(options);
  CounterRng rng(/*seed=*/3, 0, 0, 0);
  const OracleOptions oracle = {.grey = options.channels == 1,
                                .ifast = options.dct == JpegDct::kIfast,
                                .fancy_upsampling = options.fancy_upsampling,
                                .divisor = static_cast<int>(scale)};
  for (const JpegKind& kind : AllJpegKinds()) {
    for (const Size stored : {Size{131, 97}, Size{64, 48}, Size{17, 35}, Size{1, 1}}) {
      const std::string jpeg = MakeJpeg(kind, stored.width, stored.height, 11);
      const Decoded decoded = DecodeWhole(jpeg, oracle);
      const Size size = {ScaledSide(stored.width, scale), ScaledSide(stored.height, scale)};
      ASSERT_EQ(decoded.width, size.width);
      ASSERT_EQ(decoded.height, size.height);
      const std::vector<uint8_t> whole = Expected(decoded, options.channels);
      for (int i = 0; i < crops_per_image; ++i) {
        const CropRect crop = RandomCrop(rng, size.height, size.width);
        const absl::StatusOr<ImageInfo> info = decoder.ReadHeader(jpeg);
        ASSERT_THAT(info, IsOk()) << kind.name;
        ASSERT_EQ(info->width, stored.width);
        ASSERT_EQ(info->height, stored.height);
        std::vector<uint8_t> out(size_t{1} * crop.height * crop.width * options.channels);
        ASSERT_THAT(decoder.Decode(crop, absl::MakeSpan(out), scale), IsOk()) << kind.name;
        ASSERT_EQ(out,
                  Cut(whole, size.width, options.channels, crop.y, crop.x, crop.height, crop.width))
            << kind.name << " " << size.width << "x" << size.height << ", a side of "
            << oracle.divisor << " as 1: crop y " << crop.y << " x " << crop.x << " " << crop.height
            << "x" << crop.width;
        ASSERT_EQ(decoder.warnings(), 0);
        // libjpeg entropy-decodes only these kinds. It would also decode another image if our own
        // decoder predicted wrongly which blocks libjpeg asks for.
        ASSERT_EQ(decoder.by_library(), kind.progressive || kind.separate_scans || kind.arithmetic)
            << kind.name;
      }
    }
  }
}

TEST(JpegDecoderTest, CropEqualsCutOfWholeImage) { ExpectCropsEqualCutsOfWhole({}, 60); }

TEST(JpegDecoderTest, CropEqualsCutOfWholeImageInGrey) {
  ExpectCropsEqualCutsOfWhole({.channels = 1}, 20);
}

TEST(JpegDecoderTest, CropEqualsCutOfWholeImageWithFastDct) {
  ExpectCropsEqualCutsOfWhole({.dct = JpegDct::kIfast}, 20);
}

TEST(JpegDecoderTest, CropEqualsCutOfWholeImageWithPlainUpsampling) {
  ExpectCropsEqualCutsOfWhole({.fancy_upsampling = false}, 20);
}

TEST(JpegDecoderTest, CropEqualsCutOfWholeImageAtEveryScale) {
  for (const JpegScale scale : {JpegScale::kHalf, JpegScale::kQuarter, JpegScale::kEighth}) {
    ExpectCropsEqualCutsOfWhole({}, 60, scale);
    ExpectCropsEqualCutsOfWhole({.channels = 1}, 20, scale);
    ExpectCropsEqualCutsOfWhole({.dct = JpegDct::kIfast}, 20, scale);
    ExpectCropsEqualCutsOfWhole({.fancy_upsampling = false}, 20, scale);
  }
}

// libjpeg has separate code for crops whose first row is in the middle of a block or of a pair of
// rows.
TEST(JpegDecoderTest, ACropFromAnyFirstRowEqualsTheCutOfTheWholeImage) {
  for (const bool fancy : {true, false}) {
    JpegDecoder decoder = MakeDecoder({.fancy_upsampling = fancy});
    for (const JpegKind& kind : AllJpegKinds()) {
      const std::string jpeg = MakeJpeg(kind, 131, 60, 11);
      const Decoded decoded = DecodeWhole(jpeg, {.fancy_upsampling = fancy});
      const std::vector<uint8_t> whole = Expected(decoded, 3);
      for (int y = 0; y < 57; ++y) {
        const CropRect crop = {y, y * 5 % 90, 3, 41};
        std::vector<uint8_t> out(3 * 41 * 3);
        ASSERT_THAT(decoder.ReadHeader(jpeg), IsOk());
        ASSERT_THAT(decoder.Decode(crop, absl::MakeSpan(out)), IsOk());
        ASSERT_EQ(out, Cut(whole, 131, 3, crop.y, crop.x, 3, 41)) << kind.name << " row " << y;
      }
    }
  }
}

// When libjpeg 2.1 skips rows, it writes through a pointer to the colour converter. Plain 4:2:0
// upsampling makes no converter. So a libjpeg decoder that is used again would write into the freed
// converter of the previous image. Pixels would be wrong only if coefficients of the next image lie
// in that memory, but valgrind always finds the stray access.
TEST(JpegDecoderTest, PlainUpsamplingDoesNotWriteIntoThePreviousImage) {
  JpegDecoder decoder = MakeDecoder({.fancy_upsampling = false});
  for (int side = 16; side < 64; side += 3) {
    const std::string full_colour = MakeJpeg({.name = ""}, 40, 40, side);
    const std::string jpeg =
        MakeJpeg({.name = "", .h = 2, .v = 2, .progressive = true}, side, 64, side);
    const Decoded whole = DecodeWhole(jpeg, {.fancy_upsampling = false});
    ASSERT_THAT(DecodeAll(decoder, full_colour), IsOk());
    ASSERT_THAT(decoder.ReadHeader(jpeg), IsOk());
    std::vector<uint8_t> out(size_t{3} * side * 63);
    ASSERT_THAT(decoder.Decode({1, 0, 63, side}, absl::MakeSpan(out)), IsOk());
    ASSERT_EQ(out, Cut(whole.pixels, side, 3, 1, 0, 63, side)) << side;
  }
}

TEST(JpegDecoderTest, DctAndUpsamplingOptionsChangePixels) {
  const std::string jpeg = MakeJpeg(k420, 64, 64, 1);
  JpegDecoder plain = MakeDecoder();
  JpegDecoder fast = MakeDecoder({.dct = JpegDct::kIfast});
  JpegDecoder blocky = MakeDecoder({.fancy_upsampling = false});
  const auto pixels = DecodeAll(plain, jpeg);
  ASSERT_THAT(pixels, IsOk());
  EXPECT_NE(*pixels, *DecodeAll(fast, jpeg));
  EXPECT_NE(*pixels, *DecodeAll(blocky, jpeg));
}

TEST(JpegDecoderTest, HeaderTellsSizeAndComponents) {
  JpegDecoder decoder = MakeDecoder();
  const std::string grey = MakeJpeg({.name = "", .colour = JpegColour::kGrey}, 30, 20, 1);
  auto info = decoder.ReadHeader(grey);
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->width, 30);
  EXPECT_EQ(info->height, 20);
  EXPECT_EQ(info->components, 1);
  const std::string cmyk = MakeJpeg({.name = "", .colour = JpegColour::kCmyk}, 30, 20, 1);
  EXPECT_EQ(decoder.ReadHeader(cmyk)->components, 4);
  EXPECT_EQ(decoder.ReadHeader(MakeJpeg(k420, 30, 20, 1))->components, 3);
}

TEST(JpegDecoderTest, GreyIsReplicatedToRgb) {
  JpegDecoder decoder = MakeDecoder();
  const std::string jpeg = MakeJpeg({.name = "", .colour = JpegColour::kGrey}, 21, 9, 5);
  const auto rgb = DecodeAll(decoder, jpeg);
  ASSERT_THAT(rgb, IsOk());
  const Decoded grey = DecodeWhole(jpeg, {.grey = true});
  for (size_t i = 0; i < grey.pixels.size(); ++i) {
    for (int c = 0; c < 3; ++c) ASSERT_EQ((*rgb)[i * 3 + c], grey.pixels[i]);
  }
}

TEST(JpegDecoderTest, RowsMayBeLeftUnreadAndTheDecoderReused) {
  JpegDecoder decoder = MakeDecoder();
  const std::string jpeg = MakeJpeg(k420, 80, 60, 2);
  const auto first = DecodeAll(decoder, jpeg);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(decoder.ReadHeader(jpeg), IsOk());
  ASSERT_THAT(decoder.StartCrop({10, 20, 40, 30}), IsOk());
  const auto row = decoder.NextRow();
  ASSERT_THAT(row, IsOk());
  EXPECT_EQ(std::vector<uint8_t>(*row, *row + 90), Cut(*first, 80, 3, 10, 20, 1, 30));
  EXPECT_EQ(*DecodeAll(decoder, jpeg), *first);
  // The decoder can also be used again after an error.
  EXPECT_THAT(DecodeAll(decoder, jpeg.substr(0, jpeg.size() / 2)),
              StatusIs(kDataLoss, HasSubstr("")));
  EXPECT_EQ(*DecodeAll(decoder, jpeg), *first);
  JpegDecoder moved = std::move(decoder);
  EXPECT_EQ(*DecodeAll(moved, jpeg), *first);
}

TEST(JpegDecoderTest, RowsComeInAnyNumberAtATime) {
  JpegDecoder decoder = MakeDecoder();
  const std::string jpeg = MakeJpeg(k420, 80, 60, 2);
  const auto whole = DecodeAll(decoder, jpeg);
  ASSERT_THAT(whole, IsOk());
  for (const int max_rows : {1, 3, 100}) {
    ASSERT_THAT(decoder.ReadHeader(jpeg), IsOk());
    ASSERT_THAT(decoder.StartCrop({10, 20, 40, 30}), IsOk());
    std::vector<uint8_t> crop;
    while (crop.size() < 40 * 90) {
      const absl::StatusOr<DecodedRows> rows = decoder.NextRows(max_rows);
      ASSERT_THAT(rows, IsOk());
      ASSERT_GE(rows->count, 1);
      ASSERT_LE(rows->count, max_rows);
      for (int i = 0; i < rows->count; ++i) {
        const uint8_t* row = rows->data + i * rows->stride_bytes;
        crop.insert(crop.end(), row, row + 90);
      }
    }
    EXPECT_EQ(crop, Cut(*whole, 80, 3, 10, 20, 40, 30));
    EXPECT_THAT(decoder.NextRows(max_rows),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no row")));
  }
}

// The result of decoding a crop: the pixels, the final status and the number of warnings.
struct Outcome {
  std::vector<uint8_t> pixels;
  absl::Status status;
  int64_t warnings = 0;

  bool operator==(const Outcome&) const = default;
};

// Decodes a crop. If `beside` is given, its image and `jpeg` are first decoded together, until
// is_ahead() is true for one of the two decoders.
Outcome DecodeCrop(JpegDecoder& decoder, absl::string_view jpeg, const CropRect& crop,
                   JpegDecoder* beside = nullptr) {
  Outcome outcome;
  outcome.status = decoder.ReadHeader(jpeg).status();
  if (outcome.status.ok()) outcome.status = decoder.StartCrop(crop);
  if (beside != nullptr && !decoder.is_ahead() && !beside->is_ahead()) {
    JpegDecoder::DecodeAhead(decoder, *beside);
  }
  for (int y = 0; y < crop.height && outcome.status.ok(); ++y) {
    const absl::StatusOr<const uint8_t*> row = decoder.NextRow();
    outcome.status = row.status();
    if (row.ok()) outcome.pixels.insert(outcome.pixels.end(), *row, *row + crop.width * 3);
  }
  outcome.warnings = decoder.warnings();
  return outcome;
}

constexpr char kHuffmanTables[] = "\xff\xc4";
constexpr char kQuantizationTables[] = "\xff\xdb";

std::string WithoutSegment(std::string jpeg, size_t at) {
  const int length = static_cast<uint8_t>(jpeg[at + 2]) * 256 + static_cast<uint8_t>(jpeg[at + 3]);
  return jpeg.erase(at, 2 + length);
}

std::string WithoutSegments(std::string jpeg, const char* marker) {
  for (size_t at; (at = jpeg.find(marker)) != std::string::npos;) jpeg = WithoutSegment(jpeg, at);
  return jpeg;
}

// Returns copies of `jpeg`. Each copy lacks one table segment, or all table segments of one kind.
std::vector<std::string> WithoutTables(const std::string& jpeg) {
  std::vector<std::string> all;
  for (const char* marker : {kHuffmanTables, kQuantizationTables}) {
    all.push_back(WithoutSegments(jpeg, marker));
    for (size_t at = jpeg.find(marker); at != std::string::npos; at = jpeg.find(marker, at + 2)) {
      all.push_back(WithoutSegment(jpeg, at));
    }
  }
  return all;
}

TEST(JpegDecoderTest, ImagesWithoutTablesDoNotGetThoseOfAnEarlierImage) {
  const CropRect crop = {5, 3, 30, 40};
  for (const bool library : {false, true}) {
    const JpegDecoderOptions options = {.library_entropy_decoder = library};
    for (const JpegKind& kind : AllJpegKinds()) {
      const std::string whole = MakeJpeg(kind, 48, 40, 3);
      const std::string coarse =
          *EncodeJpeg(TestPixels(48, 40, 3, 1), 48, 40, 3, {.quality = 5, .progressive = true});
      for (const std::string& jpeg : WithoutTables(whole)) {
        JpegDecoder fresh = MakeDecoder(options);
        const Outcome alone = DecodeCrop(fresh, jpeg, crop);
        JpegDecoder decoder = MakeDecoder(options);
        for (const std::string& past : {whole, coarse, coarse.substr(0, coarse.size() / 2)}) {
          DecodeAll(decoder, past).status().IgnoreError();
          EXPECT_EQ(DecodeCrop(decoder, jpeg, crop), alone) << kind.name << ": " << alone.status;
        }
      }
    }
  }
}

TEST(JpegDecoderTest, MissingHuffmanTablesAreTheStandardOnes) {
  const std::string jpeg = MakeJpeg(k420, 48, 40, 3);  // Has the standard Huffman tables.
  JpegDecoder decoder = MakeDecoder();
  const auto pixels = DecodeAll(decoder, jpeg);
  ASSERT_THAT(pixels, IsOk());
  const auto optimized = EncodeJpeg(*pixels, 48, 40, 3, {.progressive = true});
  ASSERT_THAT(optimized, IsOk());
  EXPECT_THAT(DecodeAll(decoder, *optimized), IsOk());
  EXPECT_THAT(DecodeAll(decoder, WithoutSegments(jpeg, kHuffmanTables)), IsOkAndHolds(*pixels));
}

TEST(JpegDecoderTest, MissingQuantizationOrProgressiveHuffmanTablesAreDataLoss) {
  JpegDecoder decoder = MakeDecoder();
  const std::string jpeg = MakeJpeg(k420, 48, 40, 3);
  const std::string progressive = MakeJpeg({.name = "", .progressive = true}, 48, 40, 3);
  ASSERT_THAT(DecodeAll(decoder, jpeg), IsOk());
  ASSERT_THAT(DecodeAll(decoder, progressive), IsOk());
  EXPECT_THAT(DecodeAll(decoder, WithoutSegments(jpeg, kQuantizationTables)),
              StatusIs(kDataLoss, HasSubstr("Quantization table 0x00 was not defined")));
  EXPECT_THAT(DecodeAll(decoder, WithoutSegments(progressive, kHuffmanTables)),
              StatusIs(kDataLoss, HasSubstr("Huffman table 0x00 was not defined")));
}

// mallinfo2 does not count what AddressSanitizer allocates. In a build with AddressSanitizer,
// LeakSanitizer would find a leak.
TEST(JpegDecoderTest, ImagesLeaveNoMemoryBehind) {
  JpegDecoder decoder = MakeDecoder();
  const std::string jpeg = MakeJpeg(k420, 8, 8, 3);
  const std::string without_codes = WithoutSegments(jpeg, kHuffmanTables);
  const std::string damaged = WithoutSegments(jpeg, kQuantizationTables);
  const auto decode = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_THAT(DecodeAll(decoder, jpeg), IsOk());
      ASSERT_THAT(DecodeAll(decoder, without_codes), IsOk());
      ASSERT_FALSE(DecodeAll(decoder, damaged).ok());
    }
  };
  decode(10);
  const size_t before = mallinfo2().uordblks;
  decode(5000);
  EXPECT_LT(mallinfo2().uordblks, before + 50'000);
}

// Error paths.

TEST(JpegDecoderTest, OtherFormatsAreNamed) {
  JpegDecoder decoder = MakeDecoder();
  const auto read = [&decoder](absl::string_view bytes) {
    return decoder.ReadHeader(bytes).status();
  };
  EXPECT_THAT(read("\x89PNG\r\n\x1a\nxxxx"), StatusIs(kDataLoss, HasSubstr("PNG")));
  EXPECT_THAT(read("GIF89axxxxxx"), StatusIs(kDataLoss, HasSubstr("GIF")));
  EXPECT_THAT(read("BMxxxxxx"), StatusIs(kDataLoss, HasSubstr("BMP")));
  EXPECT_THAT(read("RIFFxxxxWEBPxx"), StatusIs(kDataLoss, HasSubstr("WebP")));
  EXPECT_THAT(read("RIFFxxxxWAVExx"), StatusIs(kDataLoss, HasSubstr("none of PNG")));
  EXPECT_THAT(read("hello world"),
              StatusIs(kDataLoss, AllOf(HasSubstr("11 bytes"), HasSubstr("not a JPEG"))));
  EXPECT_THAT(read(""), StatusIs(kDataLoss, HasSubstr("empty")));
  EXPECT_THAT(read("\xff\xd8"), StatusIs(kDataLoss, HasSubstr("2 bytes")));
  EXPECT_THAT(read("\xff\xd8\xff"), StatusIs(kDataLoss, HasSubstr("JPEG of 3 bytes")));
}

TEST(JpegDecoderTest, EveryTruncationIsDataLoss) {
  for (const JpegKind& kind : {k420, JpegKind{.name = "", .progressive = true}}) {
    const std::string jpeg = MakeJpeg(kind, 48, 40, 3);
    JpegDecoder decoder = MakeDecoder();
    ASSERT_THAT(DecodeAll(decoder, jpeg), IsOk());
    for (size_t size = 0; size < jpeg.size(); size += size < 700 ? 1 : 7) {
      ASSERT_THAT(DecodeAll(decoder, jpeg.substr(0, size)), StatusIs(kDataLoss, HasSubstr("")))
          << size << " of " << jpeg.size();
    }
  }
}

TEST(JpegDecoderTest, TheErrorOfATruncatedImageHasItsSizeAndLibjpegsReason) {
  const std::string jpeg = MakeJpeg(k420, 48, 40, 3);
  JpegDecoder decoder = MakeDecoder();
  EXPECT_THAT(DecodeAll(decoder, jpeg.substr(0, jpeg.size() - 200)),
              StatusIs(kDataLoss, AllOf(HasSubstr("48x40"), HasSubstr("Premature end"))));
}

TEST(JpegDecoderTest, DamageIsDataLossUnlessWarningsAreAccepted) {
  std::string jpeg = MakeJpeg({.name = "", .h = 2, .v = 2, .restart_interval = 2}, 64, 64, 3);
  const size_t restart = jpeg.find("\xff\xd3");
  ASSERT_NE(restart, std::string::npos);
  jpeg[restart + 1] = '\xd7';  // Another restart marker than the one that must come here.
  JpegDecoder strict = MakeDecoder();
  EXPECT_THAT(DecodeAll(strict, jpeg), StatusIs(kDataLoss, HasSubstr("Corrupt JPEG data")));
  JpegDecoder lenient = MakeDecoder({.fail_on_warning = false});
  EXPECT_THAT(DecodeAll(lenient, jpeg), IsOk());
  EXPECT_GT(lenient.warnings(), 0);
  EXPECT_THAT(DecodeAll(lenient, "GIF8"), StatusIs(kDataLoss, HasSubstr("GIF")));
  EXPECT_EQ(lenient.warnings(), 0);
}

TEST(JpegDecoderTest, TruncatedTailIsFilledWhenWarningsAreAccepted) {
  const std::string jpeg = MakeJpeg(k420, 64, 64, 3);
  JpegDecoder lenient = MakeDecoder({.fail_on_warning = false});
  const auto whole = DecodeAll(lenient, jpeg);
  ASSERT_THAT(whole, IsOk());
  EXPECT_EQ(lenient.warnings(), 0);
  const auto cut = DecodeAll(lenient, jpeg.substr(0, jpeg.size() * 3 / 4));
  ASSERT_THAT(cut, IsOk());
  EXPECT_GT(lenient.warnings(), 0);
  EXPECT_TRUE(std::equal(cut->begin(), cut->begin() + 64 * 3 * 16, whole->begin()));
  EXPECT_NE(*cut, *whole);
}

TEST(JpegDecoderTest, PaddingBetweenMarkersIsHarmless) {
  const std::string jpeg = MakeJpeg(k420, 32, 32, 3);
  const size_t tables = jpeg.find("\xff\xdb");
  ASSERT_NE(tables, std::string::npos);
  const std::string padded = jpeg.substr(0, tables) + std::string(3, '\0') + jpeg.substr(tables);
  JpegDecoder decoder = MakeDecoder();
  EXPECT_THAT(DecodeAll(decoder, padded), IsOkAndHolds(*DecodeAll(decoder, jpeg)));
}

// Returns `jpeg` with another size in its header.
std::string WithSize(std::string jpeg, int width, int height, const char* frame_marker) {
  const size_t frame = jpeg.find(frame_marker);
  EXPECT_NE(frame, std::string::npos);
  jpeg[frame + 5] = static_cast<char>(height >> 8);
  jpeg[frame + 6] = static_cast<char>(height & 255);
  jpeg[frame + 7] = static_cast<char>(width >> 8);
  jpeg[frame + 8] = static_cast<char>(width & 255);
  return jpeg;
}

TEST(JpegDecoderTest, HostileDimensionsAreRefusedByTheHeader) {
  JpegDecoder decoder = MakeDecoder();
  for (const auto& [kind, marker] :
       {std::pair{k420, "\xff\xc0"},
        std::pair{JpegKind{.name = "", .progressive = true}, "\xff\xc2"}}) {
    const std::string bomb = WithSize(MakeJpeg(kind, 16, 16, 3), 65500, 65500, marker);
    EXPECT_THAT(decoder.ReadHeader(bomb).status(),
                StatusIs(kExhausted, AllOf(HasSubstr("65500x65500"), HasSubstr("33554432"),
                                           HasSubstr("make the image smaller"))));
    EXPECT_THAT(decoder.StartCrop({0, 0, 1, 1}),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no JPEG header")));
  }
}

// The header claims 25 million pixels, which is within the limit, but the data are those of 256
// pixels. Decoding must end at the first missing byte, and not make 25 million pixels.
TEST(JpegDecoderTest, ALargeImageWithLittleDataFailsAtItsFirstRow) {
  const std::string jpeg = WithSize(MakeJpeg(k420, 16, 16, 3), 5000, 5000, "\xff\xc0");
  JpegDecoder decoder = MakeDecoder();
  ASSERT_THAT(decoder.ReadHeader(jpeg), IsOk());
  ASSERT_THAT(decoder.StartCrop({0, 0, 5000, 5000}), IsOk());
  EXPECT_THAT(decoder.NextRow(), StatusIs(kDataLoss, HasSubstr("")));
}

TEST(JpegDecoderTest, LimitOfPixelsIsInclusive) {
  const std::string jpeg = MakeJpeg(k420, 40, 30, 3);
  EXPECT_THAT(MakeDecoder({.max_pixels = 1200}).ReadHeader(jpeg), IsOk());
  EXPECT_THAT(MakeDecoder({.max_pixels = 1199}).ReadHeader(jpeg),
              StatusIs(kExhausted, HasSubstr("1199")));
}

TEST(JpegDecoderTest, ScansOfAProgressiveImageAreLimited) {
  const std::string jpeg = MakeJpeg({.name = "", .progressive = true}, 40, 30, 3);  // 10 scans.
  JpegDecoder decoder = MakeDecoder({.max_scans = 5});
  EXPECT_THAT(DecodeAll(decoder, jpeg), StatusIs(kExhausted, HasSubstr("max_scans")));
  JpegDecoder enough = MakeDecoder({.max_scans = 10});
  EXPECT_THAT(DecodeAll(enough, jpeg), IsOk());
}

// The image's coefficients take 6 MiB. mallinfo2 does not count what AddressSanitizer allocates, so
// with AddressSanitizer the upper limits below always hold.
TEST(JpegDecoderTest, AnImageOfSeveralScansHoldsLittleMemoryBeforeAndAfterItsRows) {
  const std::string jpeg = MakeJpeg({.name = "", .progressive = true}, 1024, 1024, 3);
  const auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  JpegDecoder decoder = MakeDecoder();
  ASSERT_THAT(decoder.ReadHeader(jpeg), IsOk());
  const size_t before = used();
  ASSERT_THAT(decoder.StartCrop(WholeImage(1024, 1024)), IsOk());
  EXPECT_TRUE(decoder.is_ahead());  // DecodeAhead() cannot decode an image of several scans.
  EXPECT_LT(used() - before, size_t{1} << 20);
  ASSERT_THAT(decoder.NextRow(), IsOk());
  const size_t during = used() - before;
  EXPECT_TRUE(kSanitized || during >= size_t{6} << 20) << during;
  decoder.EndImage();
  EXPECT_LT(used() - before, size_t{1} << 20);
}

TEST(JpegDecoderTest, LackOfMemoryIsUnavailableAndNotDataLoss) {
  const std::string jpeg = MakeJpeg({.name = "", .progressive = true}, 64, 256, 3);
  JpegDecoder decoder = MakeDecoder();
  ASSERT_EQ(setenv("JPEGMEM", "1", /*overwrite=*/1), 0);  // The unit is 1000 bytes.
  EXPECT_THAT(DecodeAll(decoder, jpeg),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("JPEGMEM")));
  unsetenv("JPEGMEM");
  EXPECT_THAT(DecodeAll(decoder, jpeg), IsOk());
}

TEST(JpegDecoderTest, TwoComponentsAreRefused) {
  std::string jpeg = MakeJpeg({.name = "", .colour = JpegColour::kGrey}, 16, 16, 3);
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg[frame + 3] = 14;  // The length in bytes of a frame header of two components.
  jpeg[frame + 9] = 2;
  jpeg.insert(frame + 13, std::string("\x02\x11\x00", 3));
  JpegDecoder decoder = MakeDecoder();
  EXPECT_THAT(decoder.ReadHeader(jpeg).status(), StatusIs(kDataLoss, HasSubstr("2 components")));
}

TEST(JpegDecoderTest, InvalidCropsBuffersAndCallOrdersAreRefused) {
  JpegDecoder decoder = MakeDecoder();
  constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(decoder.StartCrop({0, 0, 1, 1}), StatusIs(kPrecondition, HasSubstr("header")));
  EXPECT_THAT(decoder.NextRow(), StatusIs(kPrecondition, HasSubstr("no row")));
  const std::string jpeg = MakeJpeg(k420, 40, 30, 3);
  ASSERT_THAT(decoder.ReadHeader(jpeg), IsOk());
  for (const CropRect& crop :
       {CropRect{0, 0, 0, 5}, CropRect{-1, 0, 5, 5}, CropRect{0, 36, 5, 5}, CropRect{26, 0, 5, 5},
        CropRect{0, 0, 31, 5}, CropRect{0, 0, 5, 41}, CropRect{2147483647, 2147483647, 5, 5}}) {
    EXPECT_THAT(decoder.StartCrop(crop), StatusIs(kInvalid, HasSubstr("30x40")));
  }
  std::vector<uint8_t> out(74);
  EXPECT_THAT(decoder.Decode({0, 0, 5, 5}, absl::MakeSpan(out)),
              StatusIs(kInvalid, HasSubstr("74 bytes, want 75")));
  out.resize(75);
  // After the refused calls the image can still be decoded.
  EXPECT_THAT(decoder.Decode({0, 0, 5, 5}, absl::MakeSpan(out)), IsOk());
  EXPECT_THAT(decoder.Decode({0, 0, 5, 5}, absl::MakeSpan(out)),
              StatusIs(kPrecondition, HasSubstr("header")));
  EXPECT_THAT(decoder.NextRow(), StatusIs(kPrecondition, HasSubstr("no row")));
}

TEST(JpegDecoderTest, BadOptionsAreNamed) {
  EXPECT_THAT(JpegDecoder::Create({.channels = 4}).status(),
              StatusIs(kInvalid, HasSubstr("channels is 4")));
  EXPECT_THAT(JpegDecoder::Create({.max_pixels = 0}).status(),
              StatusIs(kInvalid, HasSubstr("max_pixels is 0")));
  EXPECT_THAT(JpegDecoder::Create({.max_scans = 0}).status(),
              StatusIs(kInvalid, HasSubstr("max_scans is 0")));
}

TEST(JpegDecoderTest, OwnEntropyDecoderAgreesWithLibjpegsOnDamagedImages) {
  for (const bool strict : {true, false}) {
    JpegDecoder own = MakeDecoder({.fail_on_warning = strict});
    JpegDecoder other = MakeDecoder();
    JpegDecoder library = MakeDecoder({.fail_on_warning = strict, .library_entropy_decoder = true});
    int damaged = 0;
    for (const JpegKind& kind : AllJpegKinds()) {
      const std::string whole = MakeJpeg(kind, 83, 71, /*seed=*/5);
      for (int i = 0; i < 120; ++i) {
        CounterRng rng(/*seed=*/6, /*epoch=*/0, i, /*purpose=*/0);
        std::string jpeg = whole;
        const size_t at = static_cast<size_t>(rng.UniformInt(2, static_cast<int64_t>(jpeg.size())));
        if (i % 4 == 0) jpeg.resize(at);
        if (i % 4 == 1) jpeg[at] = static_cast<char>(rng.NextU32());
        if (i % 4 == 2) jpeg.insert(at, static_cast<size_t>(rng.UniformInt(1, 9)), '\xff');
        if (i % 4 == 3) jpeg.erase(at, static_cast<size_t>(rng.UniformInt(1, 99)));
        const int y = static_cast<int>(rng.UniformInt(0, 71));
        const int x = static_cast<int>(rng.UniformInt(0, 83));
        const CropRect crop = {y, x, static_cast<int>(rng.UniformInt(1, 72 - y)),
                               static_cast<int>(rng.UniformInt(1, 84 - x))};
        const bool beside = i / 4 % 2 == 1;
        if (beside) {
          ASSERT_THAT(other.ReadHeader(whole), IsOk());
          ASSERT_THAT(other.StartCrop(WholeImage(71, 83)), IsOk());
        }
        const Outcome mine = DecodeCrop(own, jpeg, crop, beside ? &other : nullptr);
        const Outcome theirs = DecodeCrop(library, jpeg, crop);
        ASSERT_EQ(mine.status, theirs.status) << kind.name << " " << i;
        ASSERT_EQ(mine.pixels, theirs.pixels) << kind.name << " " << i;
        ASSERT_EQ(mine.warnings, theirs.warnings) << kind.name << " " << i;
        if (!theirs.status.ok() || theirs.warnings > 0) ++damaged;
        ASSERT_TRUE(library.by_library());
      }
    }
    EXPECT_GT(damaged, 300);
  }
}

// Decodes images of random kinds, always two together, until is_ahead() is true for one of them.
// The rows of this image are then taken, and a new image is decoded together with the rest of the
// other image.
TEST(JpegDecoderTest, CropsDecodedTogetherEqualCropsAlone) {
  JpegDecoder alone = MakeDecoder();
  JpegDecoder decoders[2] = {MakeDecoder(), MakeDecoder()};
  struct Crop {
    std::string jpeg;
    CropRect crop;
    std::string name;
  };
  std::vector<Crop> crops;
  CounterRng rng(/*seed=*/8, 0, 0, 0);
  for (int i = 0; i < 300; ++i) {
    const JpegKind& kind = AllJpegKinds()[static_cast<size_t>(
        rng.UniformInt(0, static_cast<int64_t>(AllJpegKinds().size())))];
    const int height = static_cast<int>(rng.UniformInt(1, 150));
    const int width = static_cast<int>(rng.UniformInt(1, 150));
    crops.push_back({MakeJpeg(kind, width, height, static_cast<uint32_t>(i)),
                     RandomCrop(rng, height, width), kind.name});
  }
  size_t next = 0;
  const Crop* crop_of[2] = {};
  const auto start = [&](int i) {
    crop_of[i] = &crops[next++];
    ASSERT_THAT(decoders[i].ReadHeader(crop_of[i]->jpeg), IsOk());
    ASSERT_THAT(decoders[i].StartCrop(crop_of[i]->crop), IsOk());
  };
  start(0);
  start(1);
  int together = 0;
  while (next < crops.size()) {
    if (!decoders[0].is_ahead() && !decoders[1].is_ahead()) {
      JpegDecoder::DecodeAhead(decoders[0], decoders[1]);
      ++together;
    }
    const int done = decoders[0].is_ahead() ? 0 : 1;
    ASSERT_TRUE(decoders[done].is_ahead());
    const CropRect& crop = crop_of[done]->crop;
    std::vector<uint8_t> pixels;
    for (int y = 0; y < crop.height; ++y) {
      const absl::StatusOr<const uint8_t*> row = decoders[done].NextRow();
      ASSERT_THAT(row, IsOk());
      pixels.insert(pixels.end(), *row, *row + crop.width * 3);
    }
    ASSERT_EQ(pixels, DecodeCrop(alone, crop_of[done]->jpeg, crop).pixels) << crop_of[done]->name;
    ASSERT_EQ(decoders[done].by_library(), alone.by_library()) << crop_of[done]->name;
    start(done);
  }
  EXPECT_GT(together, 100);
}

// The images are so large that their coefficients fill the decoder's memory before the image ends.
// DecodeAhead() then makes rows of pixels from these coefficients. At half the size the rows of a
// whole image take more than kMaxKeptBytes.
TEST(JpegDecoderTest, ScaledCropsDecodedTogetherEqualCropsAlone) {
  struct Outcome {
    std::vector<uint8_t> pixels;
    absl::Status status;
  };
  const auto read = [](JpegDecoder& decoder, const CropRect& crop, absl::Status status) {
    Outcome outcome = {.status = std::move(status)};
    for (int y = 0; outcome.status.ok() && y < crop.height;) {
      const absl::StatusOr<DecodedRows> rows = decoder.NextRows(crop.height - y);
      outcome.status = rows.status();
      for (int i = 0; rows.ok() && i < rows->count; ++i, ++y) {
        const uint8_t* const row = rows->data + static_cast<size_t>(i) * rows->stride_bytes;
        outcome.pixels.insert(outcome.pixels.end(), row, row + size_t{3} * crop.width);
      }
    }
    return outcome;
  };
  JpegDecoder a = MakeDecoder();
  JpegDecoder b = MakeDecoder();
  int together = 0;
  const std::vector<JpegKind> kinds = {
      {.name = "444"},
      k420,
      {.name = "440", .v = 2},
      {.name = "410", .h = 4, .v = 2},
      {.name = "restarts", .h = 2, .v = 2, .restart_interval = 11}};
  for (const JpegKind& kind : kinds) {
    SCOPED_TRACE(kind.name);
    const std::string jpeg = MakeJpeg(kind, 1500, 1203, 5);
    std::string damaged = jpeg;
    damaged[jpeg.size() * 2 / 3] ^= 0x40;
    for (const JpegScale scale : {JpegScale::kHalf, JpegScale::kQuarter, JpegScale::kEighth}) {
      const int divisor = static_cast<int>(scale);
      const CropRect crops[2] = {WholeImage(ScaledSide(1203, scale), ScaledSide(1500, scale)),
                                 {.y = 300 / divisor,
                                  .x = 100 / divisor,
                                  .height = 800 / divisor,
                                  .width = 1200 / divisor}};
      const std::string* const images[2] = {&jpeg, &damaged};
      JpegDecoder* const decoders[2] = {&a, &b};
      Outcome alone[2];
      for (int i = 0; i < 2; ++i) {
        ASSERT_THAT(a.ReadHeader(*images[i]), IsOk());
        const absl::Status started = a.StartCrop(crops[i], scale);
        alone[i] = read(a, crops[i], started);
      }
      absl::Status started[2];
      for (int i = 0; i < 2; ++i) {
        ASSERT_THAT(decoders[i]->ReadHeader(*images[i]), IsOk());
        started[i] = decoders[i]->StartCrop(crops[i], scale);
      }
      while (!a.is_ahead() && !b.is_ahead()) {
        JpegDecoder::DecodeAhead(a, b);
        ++together;
      }
      for (int i = 0; i < 2; ++i) {
        const Outcome outcome = read(*decoders[i], crops[i], started[i]);
        EXPECT_EQ(outcome.status, alone[i].status) << "image " << i << " at 1 / " << divisor;
        EXPECT_TRUE(outcome.pixels == alone[i].pixels) << "image " << i << " at 1 / " << divisor;
      }
    }
  }
  EXPECT_GT(together, 40);
}

TEST(JpegDecoderTest, BytesAfterTheLastRowAreCheckedAsByLibjpeg) {
  JpegDecoder own = MakeDecoder();
  JpegDecoder library = MakeDecoder({.library_entropy_decoder = true});
  const std::string whole = MakeJpeg(k420, 48, 32, /*seed=*/9);
  const std::string without_end = whole.substr(0, whole.size() - 2);
  for (const std::string& jpeg :
       {whole, without_end, without_end + std::string("\x00\xff\xd9", 3),
        without_end + std::string(40, 'x') + "\xff\xd9", whole + "more", without_end + "\xff",
        without_end + "\xff\xff\xd9", without_end + "\xff\xd1\xff\xd9"}) {
    for (const JpegScale scale : {JpegScale::kFull, JpegScale::kEighth}) {
      EXPECT_EQ(DecodeAll(own, jpeg, scale).status(), DecodeAll(library, jpeg, scale).status());
      EXPECT_EQ(own.warnings(), library.warnings());
    }
  }
}

// The test overwrites the image's quantization factors with 255. The samples then get so large that
// libjpeg's C code and its vector code give different pixels. Only libjpeg decides which code runs.
TEST(JpegDecoderTest, OutOfRangeValuesAtEighthScaleAreLeftToLibjpeg) {
  JpegDecoder decoder = MakeDecoder();
  std::string jpeg = MakeJpeg(k420, 300, 200, /*seed=*/9);
  ASSERT_THAT(DecodeAll(decoder, jpeg, JpegScale::kEighth), IsOk());
  EXPECT_FALSE(decoder.by_library());
  // After its marker a table has a length (2 bytes), a number (1 byte) and 64 factors.
  for (size_t table = jpeg.find("\xff\xdb"); table != std::string::npos;
       table = jpeg.find("\xff\xdb", table + 1)) {
    jpeg.replace(table + 5, 64, 64, '\xff');
  }
  const auto pixels = DecodeAll(decoder, jpeg, JpegScale::kEighth);
  ASSERT_THAT(pixels, IsOk());
  EXPECT_TRUE(decoder.by_library());
  EXPECT_EQ(*pixels, DecodeWhole(jpeg, {.divisor = 8}).pixels);
}

// The image ends within a comment segment. The memory after the image has bytes that look like the
// rest of this comment.
TEST(JpegDecoderTest, BytesBehindTheImageAreNotRead) {
  const std::string whole = MakeJpeg(k420, 48, 32, /*seed=*/9);
  const std::string jpeg = whole.substr(0, whole.size() - 2) + std::string("\xff\xfe\x00\x20", 4);
  const std::string memory = jpeg + std::string(30, 'x') + "\xff\xd9";
  JpegDecoder own = MakeDecoder();
  JpegDecoder library = MakeDecoder({.library_entropy_decoder = true});
  std::vector<uint8_t> ours(48 * 32 * 3), theirs(ours);
  const auto decode = [&](JpegDecoder& decoder, std::vector<uint8_t>& pixels) {
    const absl::Status header =
        decoder.ReadHeader(absl::string_view(memory).substr(0, jpeg.size())).status();
    return header.ok() ? decoder.Decode(WholeImage(32, 48), absl::MakeSpan(pixels)) : header;
  };
  EXPECT_THAT(decode(own, ours), StatusIs(kDataLoss, HasSubstr("Premature end of JPEG file")));
  EXPECT_THAT(decode(library, theirs),
              StatusIs(kDataLoss, HasSubstr("Premature end of JPEG file")));
  EXPECT_EQ(own.warnings(), library.warnings());
}

TEST(JpegDecoderTest, ABitFlipGivesPixelsDataLossOrResourceExhausted) {
  const std::string jpeg = MakeJpeg(k420, 40, 30, 3);
  JpegDecoder decoder = MakeDecoder({.max_pixels = 1 << 16});
  int failed = 0;
  for (size_t i = 0; i < jpeg.size(); ++i) {
    std::string damaged = jpeg;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    const auto pixels = DecodeAll(decoder, damaged);
    if (pixels.ok()) continue;
    ++failed;
    ASSERT_TRUE(pixels.status().code() == kDataLoss || pixels.status().code() == kExhausted)
        << pixels.status();
  }
  EXPECT_GT(failed, 50);
}

}  // namespace
}  // namespace systole
