// The last bytes of an image decide whether the image counts as whole or as damaged. For every
// ending our decoder must decide as libjpeg does, even if our own code decodes the entropy-coded
// bytes.
#include <cstdint>
#include <string>
#include <vector>

#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/window/crop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/jpeg/jpeg_fixture.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr int kWidth = 45;
constexpr int kHeight = 37;

const std::vector<JpegKind>& Kinds() {
  static const std::vector<JpegKind>& kinds = *new std::vector<JpegKind>{
      {.name = "grey", .colour = JpegColour::kGrey},
      {.name = "420", .h = 2, .v = 2},
      {.name = "422", .h = 2},
      {.name = "444"},
      {.name = "440", .v = 2},
      {.name = "411", .h = 4},
      {.name = "420 restarts", .h = 2, .v = 2, .restart_interval = 1},
      {.name = "grey restarts", .colour = JpegColour::kGrey, .restart_interval = 4},
      {.name = "420 progressive", .h = 2, .v = 2, .progressive = true},
      {.name = "grey progressive", .colour = JpegColour::kGrey, .progressive = true},
      {.name = "444 progressive restarts", .progressive = true, .restart_interval = 3},
      {.name = "420 separate scans", .h = 2, .v = 2, .separate_scans = true},
  };
  return kinds;
}

std::string Fill(size_t count) { return std::string(count, '\xff'); }

// Possible endings: markers, stuffed bytes (0xff, then 0) and other bytes, some of them after or
// before fill bytes (0xff), and fill bytes alone.
std::vector<std::string> Endings() {
  const std::string stuffed("\xff\0", 2);
  const std::string end = "\xff\xd9";
  return {"",
          Fill(1),
          Fill(2),
          Fill(3),
          Fill(20000),
          end,
          Fill(1) + end,
          Fill(2) + end,
          Fill(20000) + end,
          stuffed,
          stuffed + end,
          Fill(1) + stuffed,
          Fill(1) + stuffed + end,
          Fill(3) + stuffed + Fill(2),
          Fill(9000) + stuffed + end,
          std::string(1, '\0'),
          std::string(1, '\0') + end,
          std::string(1, '\0') + Fill(2),
          std::string(3000, '\x2a') + end,
          std::string(3000, '\x2a') + Fill(2),
          "\xff\xd0",
          "\xff\xd0" + end,
          "\xff\xff\xd0" + end,
          "\xff\xd1\xff\xff",
          "\xff\xc4",
          "\xff\xfe"};
}

// Reads the rows of `crop` one by one, as a feed does. Bytes after the last row are not read.
absl::Status ReadRows(JpegDecoder& decoder, const std::string& jpeg, const CropRect& crop,
                      std::vector<uint8_t>& pixels) {
  pixels.clear();
  const absl::Status header = decoder.ReadHeader(jpeg).status();
  if (!header.ok()) return header;
  const absl::Status started = decoder.StartCrop(crop);
  if (!started.ok()) return started;
  for (int y = 0; y < crop.height; ++y) {
    const absl::StatusOr<const uint8_t*> row = decoder.NextRow();
    if (!row.ok()) return row.status();
    pixels.insert(pixels.end(), *row, *row + size_t{3} * crop.width);
  }
  return absl::OkStatus();
}

class JpegEndingsTest : public ::testing::Test {
 protected:
  // Reads the image in two ways: only the rows, and the rows with all bytes after them. If libjpeg
  // raises an error, both our decoders must refuse the image. If libjpeg only warns, only the
  // strict decoder must refuse the image. A decoder that accepts it must give libjpeg's pixels and
  // number of warnings.
  void ExpectLibjpegsVerdict(const std::string& jpeg) {
    const int channels = grey_ ? 1 : 3;
    JpegDecoder& strict = grey_ ? grey_strict_ : strict_;
    JpegDecoder& lenient = grey_ ? grey_lenient_ : lenient_;
    const CropRect whole = WholeImage(kHeight, kWidth);
    const BareOutcome rows = DecodeDamaged(jpeg, /*finish=*/false);
    const BareOutcome all = DecodeDamaged(jpeg, /*finish=*/true);
    refused_ += all.error || all.warnings > 0 ? 1 : 0;
    accepted_ += all.error || all.warnings > 0 ? 0 : 1;
    std::vector<uint8_t> pixels(size_t{1} * kHeight * kWidth * channels);
    for (JpegDecoder* decoder : {&strict, &lenient}) {
      const bool is_strict = decoder == &strict;
      // Decodes as `systole verify` does, and also reads the bytes after the rows.
      absl::Status status = decoder->ReadHeader(jpeg).status();
      if (status.ok()) status = decoder->Decode(whole, absl::MakeSpan(pixels));
      ASSERT_EQ(status.ok(), !all.error && (all.warnings == 0 || !is_strict)) << status;
      if (status.ok()) {
        ASSERT_EQ(decoder->warnings(), all.warnings);
        ASSERT_EQ(pixels, all.pixels);
      }
      // Decodes as a feed does, and does not read the bytes after the rows.
      status = decoder->ReadHeader(jpeg).status();
      if (status.ok()) status = decoder->StartCrop(whole);
      size_t at = 0;
      for (int y = 0; y < kHeight && status.ok(); ++y) {
        const absl::StatusOr<const uint8_t*> row = decoder->NextRow();
        status = row.status();
        if (row.ok()) std::copy(*row, *row + kWidth * channels, pixels.begin() + at);
        at += static_cast<size_t>(kWidth) * channels;
      }
      ASSERT_EQ(status.ok(), !rows.error && (rows.warnings == 0 || !is_strict)) << status;
      if (status.ok()) {
        ASSERT_EQ(decoder->warnings(), rows.warnings);
        ASSERT_EQ(pixels, rows.pixels);
      }
    }
  }

  static JpegDecoder Make(int channels, bool strict) {
    return *JpegDecoder::Create({.channels = channels, .fail_on_warning = strict});
  }

  JpegDecoder strict_ = Make(3, true);
  JpegDecoder lenient_ = Make(3, false);
  JpegDecoder grey_strict_ = Make(1, true);
  JpegDecoder grey_lenient_ = Make(1, false);
  bool grey_ = false;
  int refused_ = 0;
  int accepted_ = 0;
};

TEST_F(JpegEndingsTest, EveryEndingHasLibjpegsVerdict) {
  for (const JpegKind& kind : Kinds()) {
    grey_ = kind.colour == JpegColour::kGrey;
    for (const uint32_t seed : {1u, 2u}) {
      const std::string whole = MakeJpeg(kind, kWidth, kHeight, seed);
      for (size_t cut = 0; cut < 24; ++cut) {
        const std::string start = whole.substr(0, whole.size() - cut);
        for (const std::string& ending : Endings()) {
          SCOPED_TRACE(testing::Message() << kind.name << ", seed " << seed << ", without the last "
                                          << cut << " bytes, with " << ending.size() << " others: "
                                          << testing::PrintToString(ending.substr(0, 12)));
          ASSERT_NO_FATAL_FAILURE(ExpectLibjpegsVerdict(start + ending));
        }
      }
    }
  }
  EXPECT_GT(refused_, 5000);
  EXPECT_GT(accepted_, 500);
}

// Fill bytes (0xff) are usual before a marker, and change no pixel there. libjpeg also accepts fill
// bytes before a stuffed byte (0xff, then 0) without a warning, but then does not always decode the
// same pixels. So our decoder leaves images with such fill bytes to libjpeg.
TEST_F(JpegEndingsTest, FillBytesInTheScanAreAcceptedWithLibjpegsPixels) {
  for (const JpegKind& kind : Kinds()) {
    grey_ = kind.colour == JpegColour::kGrey;
    const std::string whole = MakeJpeg(kind, kWidth, kHeight, 3);
    const size_t scan = whole.find("\xff\xda");
    ASSERT_NE(scan, std::string::npos);
    for (size_t at = scan; (at = whole.find('\xff', at + 1)) != std::string::npos;) {
      for (const size_t count : {1, 2, 9000}) {
        SCOPED_TRACE(testing::Message() << kind.name << ": " << count << " before byte " << at);
        std::string filled = whole;
        filled.insert(at, Fill(count));
        ASSERT_NO_FATAL_FAILURE(ExpectLibjpegsVerdict(filled));
        EXPECT_EQ((grey_ ? grey_strict_ : strict_).by_library(),
                  whole[at + 1] == '\0' || kind.progressive || kind.separate_scans);
      }
    }
  }
  EXPECT_EQ(refused_, 0);
}

// A crop is decoded without reading all bytes of the image, so damage in unread bytes is not found.
// With our entropy decoder and with libjpeg's, the same damage must be found.
TEST_F(JpegEndingsTest, CropsHaveTheVerdictOfLibjpegsEntropyDecoder) {
  JpegDecoder library = *JpegDecoder::Create({.library_entropy_decoder = true});
  std::vector<uint8_t> ours, theirs;
  for (const JpegKind& kind : Kinds()) {
    const std::string whole = MakeJpeg(kind, kWidth, kHeight, 1);
    for (const size_t cut : {0, 1, 2, 3, 5, 40, 150}) {
      for (const std::string& ending : Endings()) {
        const std::string jpeg = whole.substr(0, whole.size() - cut) + ending;
        for (const CropRect& crop :
             {CropRect{0, 0, 16, 20}, CropRect{14, 20, 10, 25}, CropRect{30, 3, 7, 40}}) {
          const absl::Status status = ReadRows(strict_, jpeg, crop, ours);
          ASSERT_EQ(status, ReadRows(library, jpeg, crop, theirs))
              << kind.name << ", " << cut << " less, " << testing::PrintToString(ending);
          ASSERT_EQ(ours, theirs);
        }
      }
    }
  }
}

}  // namespace
}  // namespace systole
