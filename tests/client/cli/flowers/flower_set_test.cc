#include "client/cli/flowers/flower_set.h"

#include <filesystem>
#include <string>
#include <vector>

#include "core/image/jpeg/jpeg_decoder.h"
#include "core/status/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool Ignore(int64_t) { return true; }

// Decodes the whole picture. An error if the JPEG is damaged or not whole.
absl::Status DecodeWhole(const std::string& jpeg) {
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create());
  SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, decoder.ReadHeader(jpeg));
  std::vector<uint8_t> pixels(size_t{3} * info.width * info.height);
  return decoder.Decode(WholeImage(info.height, info.width), absl::MakeSpan(pixels));
}

TEST(FlowerSetTest, WritesTheAskedNumberOverFiveFolders) {
  const TempFolder folder;
  const absl::StatusOr<FlowerSet> set =
      MakeFlowerSet(folder / "new/set", {.images = 7, .seed = 3, .threads = 2}, Ignore);
  ASSERT_THAT(set, IsOk());
  EXPECT_EQ(set->images, 7);
  EXPECT_THAT(set->images_of_kind, ElementsAre(2, 2, 1, 1, 1));
  uint64_t bytes = 0;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "new/set")) {
    if (!entry.is_regular_file()) continue;
    bytes += entry.file_size();
    files.push_back(entry.path().lexically_relative(folder / "new/set").string());
  }
  EXPECT_EQ(set->bytes, bytes);
  EXPECT_THAT(files, testing::UnorderedElementsAre(
                         "daisy/daisy_000000.jpg", "daisy/daisy_000005.jpg",
                         "dandelion/dandelion_000001.jpg", "dandelion/dandelion_000006.jpg",
                         "rose/rose_000002.jpg", "sunflower/sunflower_000003.jpg",
                         "tulip/tulip_000004.jpg"));
}

TEST(FlowerSetTest, FilesAreWholeJpegsAndDependOnSeedAndNumberAlone) {
  const TempFolder folder;
  ASSERT_THAT(MakeFlowerSet(folder.path(), {.images = 3, .seed = 3, .threads = 3}, Ignore), IsOk());
  const std::string rose = ReadWholeFile(folder / "rose/rose_000002.jpg");
  EXPECT_THAT(MakeFlowerJpeg(3, 2), IsOkAndHolds(rose));
  EXPECT_THAT(DecodeWhole(rose), IsOk());
}

TEST(FlowerSetTest, ReportsProgressOncePerImage) {
  const TempFolder folder;
  int64_t done = 0;
  ASSERT_THAT(MakeFlowerSet(folder.path(), {.images = 2, .seed = 3, .threads = 1},
                            [&](int64_t more) {
                              done += more;
                              return true;
                            }),
              IsOk());
  EXPECT_EQ(done, 2);
}

TEST(FlowerSetTest, DrawingAgainReplacesAndASmallerSetIsRefused) {
  const TempFolder folder;
  ASSERT_THAT(MakeFlowerSet(folder.path(), {.images = 6, .seed = 3}, Ignore), IsOk());
  EXPECT_THAT(MakeFlowerSet(folder.path(), {.images = 6, .seed = 4}, Ignore), IsOk());
  EXPECT_THAT(MakeFlowerJpeg(4, 5), IsOkAndHolds(ReadWholeFile(folder / "daisy/daisy_000005.jpg")));
  EXPECT_THAT(MakeFlowerSet(folder.path(), {.images = 5, .seed = 4}, Ignore),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr("daisy_000005.jpg"), HasSubstr("new or empty"))));
}

TEST(FlowerSetTest, AnInterruptedRunStopsSoonAndLeavesOnlyWholeJpegs) {
  const TempFolder folder;
  int64_t done = 0;
  EXPECT_THAT(MakeFlowerSet(folder.path(), {.images = 1000, .seed = 3, .threads = 2},
                            [&](int64_t) { return false; }),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("interrupted")));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(entry.path().extension(), ".jpg");
    EXPECT_THAT(DecodeWhole(ReadWholeFile(entry.path().string())), IsOk()) << entry.path();
    ++done;
  }
  EXPECT_GE(done, 1);
  EXPECT_LE(done, 4);
}

TEST(FlowerSetTest, RemovesWhatAKilledRunLeft) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "daisy");
  folder.Write("daisy/.daisy_000000.jpg.2147483646.0.tmp", "half");  // No process has this number.
  ASSERT_THAT(MakeFlowerSet(folder.path(), {.images = 1, .seed = 3}, Ignore), IsOk());
  EXPECT_FALSE(std::filesystem::exists(folder / "daisy/.daisy_000000.jpg.2147483646.0.tmp"));
}

// With texture, JPEGs have the size of the photographs that benchmarks read (bench/photographs.h),
// so they cost as much to decode.
TEST(FlowerSetTest, TextureMakesJpegsOfPhotographicCost) {
  constexpr int kCount = 24;
  size_t smooth = 0, photo = 0;
  for (int64_t number = 0; number < kCount; ++number) {
    smooth += MakeFlowerJpeg(1, number, {.long_side = 500})->size();
    photo += MakeFlowerJpeg(1, number, {.long_side = 500, .photo_texture = true})->size();
  }
  EXPECT_GE(photo / kCount, 75'000u);
  EXPECT_LE(photo / kCount, 110'000u);
  EXPECT_LT(smooth / kCount, photo / kCount * 2 / 3);
}

TEST(FlowerSetTest, RefusesNumbersOutOfRange) {
  const TempFolder folder;
  for (const int64_t images : {int64_t{0}, int64_t{-1}, int64_t{1'000'001}}) {
    EXPECT_THAT(MakeFlowerSet(folder.path(), {.images = images}, Ignore),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--images")));
  }
}

TEST(FlowerSetTest, FolderThatCannotBeMadeIsNamed) {
  const TempFolder folder;
  folder.Write("file", "x");
  EXPECT_THAT(MakeFlowerSet(folder / "file", {.images = 1}, Ignore),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("file/daisy")));
}

}  // namespace
}  // namespace systole
