#include "client/cli/shards/packer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/example/example_parser.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/image_folder.h"
#include "tests/core/image/png/png_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

// The fields of one packed record.
struct Packed {
  std::string image;
  std::string class_name;
  int64_t label = -1;
  std::vector<int64_t> size;
};

Packed TakeApart(const std::string& payload) {
  const absl::StatusOr<ExampleView> example = ExampleView::Parse(payload);
  SYSTOLE_CHECK(example.ok());
  Packed packed;
  packed.image = std::string(*example->Find("image").BytesAt(0));
  packed.class_name = std::string(*example->Find("class").BytesAt(0));
  packed.size.resize(example->Find("size").count());
  SYSTOLE_CHECK(example->Find("size").CopyInt64s(absl::MakeSpan(packed.size)).ok());
  SYSTOLE_CHECK(example->Find("label").CopyInt64s(absl::MakeSpan(&packed.label, 1)).ok());
  return packed;
}

std::vector<Packed> ReadAll(const PackReport& report) {
  std::vector<Packed> all;
  for (const ShardCount& shard : report.shards) {
    for (const std::string& payload : ReadPayloads(shard.path)) all.push_back(TakeApart(payload));
  }
  return all;
}

TEST(PackerTest, RecordsHoldTheFilesAsTheyAre) {
  const TempFolder images, out;
  FillImageFolder(images, {"rose", "daisy"}, 6);
  const absl::StatusOr<PackReport> report =
      PackQuietly(images.path(), out / "sub/flowers", {.plan = {.shards = 3, .validation = 0.5}});
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->classes, ElementsAre("daisy", "rose"));
  EXPECT_EQ(report->train_images, 6);
  EXPECT_EQ(report->validation_images, 6);
  ASSERT_THAT(report->shards, SizeIs(6));
  EXPECT_EQ(report->shards[0].path, out / "sub/flowers-train-00000-of-00003.tfrecord");
  EXPECT_EQ(report->shards[5].path, out / "sub/flowers-validation-00002-of-00003.tfrecord");
  EXPECT_EQ(report->shards[0].records, 2);
  EXPECT_EQ(report->shards[0].bytes, std::filesystem::file_size(report->shards[0].path));

  std::map<std::string, int> seen;
  for (const Packed& packed : ReadAll(*report)) {
    EXPECT_EQ(packed.label, packed.class_name == "daisy" ? 0 : 1);
    EXPECT_THAT(packed.size, ElementsAre(30, 40, 3));
    ++seen[packed.class_name + packed.image];
  }
  EXPECT_THAT(seen, SizeIs(12));
  for (int k = 0; k < 6; ++k) {
    EXPECT_EQ(seen["daisy" + TestJpeg(40, 30, 3, k)], 1);
    EXPECT_EQ(seen["rose" + TestJpeg(40, 30, 3, k)], 1);
  }
}

TEST(PackerTest, BytesDependOnFilesAndOptionsAlone) {
  const TempFolder images, out;
  FillImageFolder(images, {"a", "b", "c"}, 9);
  const auto digests = [&](const std::string& prefix, int threads, uint64_t seed) {
    PackOptions options = {.plan = {.shards = 4, .validation = 0.2, .seed = seed},
                           .resize_short = 20,
                           .threads = threads};
    const absl::StatusOr<PackReport> report = PackQuietly(images.path(), out / prefix, options);
    SYSTOLE_CHECK(report.ok());
    std::vector<uint64_t> digests;
    for (const ShardCount& shard : report->shards) {
      digests.push_back(Xxh3(ReadWholeFile(shard.path)));
    }
    return digests;
  };
  const std::vector<uint64_t> once = digests("first", /*threads=*/1, /*seed=*/3);
  EXPECT_EQ(digests("second", /*threads=*/4, /*seed=*/3), once);
  EXPECT_EQ(digests("first", /*threads=*/2, /*seed=*/3), once);  // Replaces the old shards.
  EXPECT_NE(digests("third", /*threads=*/1, /*seed=*/4), once);
}

TEST(PackerTest, ResizeShrinksAndLeavesSmallImagesAlone) {
  const TempFolder images, out;
  std::filesystem::create_directory(images / "a");
  const std::string large = TestJpeg(120, 90, 3, 1);
  const std::string small = TestJpeg(40, 30, 3, 1);
  images.Write("a/large.jpg", large);
  images.Write("a/small.jpg", small);
  const absl::StatusOr<PackReport> report =
      PackQuietly(images.path(), out / "p", {.plan = {.shards = 1}, .resize_short = 30});
  ASSERT_THAT(report, IsOk());
  std::vector<Packed> all = ReadAll(*report);
  std::sort(all.begin(), all.end(), [&](const Packed& a, const Packed& b) {
    return (a.image == small) > (b.image == small);
  });
  EXPECT_EQ(all[0].image, small);
  EXPECT_NE(all[1].image, large);
  EXPECT_THAT(all[1].size, ElementsAre(30, 40, 3));
  absl::StatusOr<JpegDecoder> decoder = JpegDecoder::Create();
  const absl::StatusOr<ImageInfo> info = decoder->ReadHeader(all[1].image);
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->width, 40);
  EXPECT_EQ(info->height, 30);
}

// The RGB pixels of a JPEG of 40 x 30 pixels.
std::vector<uint8_t> PixelsOf(const std::string& jpeg) {
  absl::StatusOr<JpegDecoder> decoder = JpegDecoder::Create();
  SYSTOLE_CHECK(decoder.ok() && decoder->ReadHeader(jpeg).ok());
  std::vector<uint8_t> pixels(size_t{30} * 40 * 3);
  SYSTOLE_CHECK(decoder->Decode(WholeImage(30, 40), absl::MakeSpan(pixels)).ok());
  return pixels;
}

TEST(PackerTest, QualityEncodesEveryImageAgainInRgb) {
  const TempFolder images, out;
  FillImageFolder(images, {"a"}, 3);
  const std::string grey = TestJpeg(40, 30, 1, 9);
  images.Write("a/3.jpg", grey);
  images.Write("a/4.png", PngOf(std::string(30 * 40 * 3, 'c'), 40, 30, 3));
  std::vector<std::vector<uint8_t>> pixels;
  for (int k = 0; k < 3; ++k) pixels.push_back(PixelsOf(TestJpeg(40, 30, 3, k)));
  pixels.push_back(PixelsOf(grey));
  pixels.emplace_back(30 * 40 * 3, 'c');
  for (const int quality : {10, 95}) {
    SCOPED_TRACE(quality);
    std::vector<std::string> want;
    for (const std::vector<uint8_t>& image : pixels) {
      want.push_back(EncodeJpeg(image, 40, 30, 3, {.quality = quality}).value());
    }
    const absl::StatusOr<PackReport> report =
        PackQuietly(images.path(), out / absl::StrCat("p", quality),
                    {.plan = {.shards = 1}, .quality = quality});
    ASSERT_THAT(report, IsOk());
    std::vector<std::string> packed;
    for (const Packed& record : ReadAll(*report)) {
      packed.push_back(record.image);
      EXPECT_THAT(record.size, ElementsAre(30, 40, 3));
    }
    EXPECT_THAT(packed, UnorderedElementsAreArray(want));
  }
}

TEST(PackerTest, RawStoresPixelsAndGreyBecomesRgb) {
  const TempFolder images, out;
  std::filesystem::create_directory(images / "a");
  images.Write("a/grey.jpg", TestJpeg(40, 30, 1, 1));
  const absl::StatusOr<PackReport> kept =
      PackQuietly(images.path(), out / "kept", {.plan = {.shards = 1}});
  ASSERT_THAT(kept, IsOk());
  EXPECT_THAT(ReadAll(*kept)[0].size, ElementsAre(30, 40, 1));
  const absl::StatusOr<PackReport> raw =
      PackQuietly(images.path(), out / "raw", {.plan = {.shards = 1}, .raw = true});
  ASSERT_THAT(raw, IsOk());
  const Packed packed = ReadAll(*raw)[0];
  EXPECT_THAT(packed.size, ElementsAre(30, 40, 3));
  ASSERT_THAT(packed.image, SizeIs(30 * 40 * 3));
  const std::vector<uint8_t> pixels = PixelsOf(TestJpeg(40, 30, 1, 1));
  EXPECT_EQ(packed.image, std::string(pixels.begin(), pixels.end()));
}

TEST(PackerTest, PngsAreStoredAsTheyAreUnlessTheyAreMadeSmallerOrRaw) {
  const TempFolder images, out;
  std::filesystem::create_directories(images / "a");
  const std::string grey = PngOf(std::string(40 * 30, 'g'), 40, 30, 1);
  const std::string coloured = PngOf(std::string(3 * 80 * 60, 'c'), 80, 60, 3);
  images.Write("a/0.png", grey);
  images.Write("a/1.png", coloured);
  const auto pack = [&](const std::string& name, PackOptions options) {
    options.plan.shards = 1;
    const absl::StatusOr<PackReport> report = PackQuietly(images.path(), out / name, options);
    EXPECT_THAT(report, IsOk());
    std::vector<Packed> all = ReadAll(*report);
    std::sort(all.begin(), all.end(),
              [](const Packed& a, const Packed& b) { return a.size[2] < b.size[2]; });
    return all;
  };
  const std::vector<Packed> kept = pack("kept", {});
  EXPECT_EQ(kept[0].image, grey);
  EXPECT_THAT(kept[0].size, ElementsAre(30, 40, 1));
  EXPECT_EQ(kept[1].image, coloured);
  EXPECT_THAT(kept[1].size, ElementsAre(60, 80, 3));
  const std::vector<Packed> small = pack("small", {.resize_short = 30});
  EXPECT_EQ(small[0].image, grey);
  EXPECT_TRUE(JpegDecoder::Create()->ReadHeader(small[1].image).ok());
  EXPECT_THAT(small[1].size, ElementsAre(30, 40, 3));
  for (const Packed& raw : pack("raw", {.raw = true})) {
    EXPECT_EQ(raw.image.size(), static_cast<size_t>(raw.size[0] * raw.size[1] * 3));
  }
  images.Write("a/2.png", coloured.substr(0, coloured.size() - 20));
  EXPECT_THAT(PackQuietly(images.path(), out / "cut", {.plan = {.shards = 1}}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a/2.png")));
}

TEST(PackerTest, MemoryStoreGetsTheSameFilesAsDiskOrNoneIfInterrupted) {
  const TempFolder images, out;
  FillImageFolder(images, {"a", "b"}, 5);
  const PackOptions options = {.plan = {.shards = 2, .validation = 0.2},
                               .compression = Compression::kZstd};
  const std::string folder = "mem://packer_test/";
  const absl::StatusOr<PackReport> here = PackQuietly(images.path(), out / "p", options);
  const absl::StatusOr<PackReport> there = PackQuietly(images.path(), folder + "p", options);
  ASSERT_THAT(here, IsOk());
  ASSERT_THAT(there, IsOk());
  EXPECT_EQ(there->labels_path, folder + "labels.txt");
  for (const std::string& name : out.List()) {
    EXPECT_THAT(GetStored(folder + name, 1 << 20), IsOkAndHolds(ReadWholeFile(out / name)));
  }
  EXPECT_THAT(StoreOf(folder).value()->ListFolder(folder), IsOkAndHolds(SizeIs(out.List().size())));
  for (const char* pass : {"checking", "packing"}) {
    const std::string fresh = absl::StrCat("mem://packer_test_", pass, "/");
    EXPECT_THAT(PackAndStop(images.path(), fresh + "p", pass, 3),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("interrupted")));
    EXPECT_THAT(StoreOf(fresh).value()->ListFolder(fresh), IsOkAndHolds(IsEmpty()));
  }
}

TEST(PackerTest, BrokenFileIsAnErrorThatNamesItAndWritesNothing) {
  const TempFolder images, out;
  FillImageFolder(images, {"a", "b"}, 3);
  const std::string jpeg = TestJpeg(40, 30, 3, 1);
  images.Write("b/cut.jpg", jpeg.substr(0, jpeg.size() / 2));
  EXPECT_THAT(
      PackQuietly(images.path(), out / "p", {.plan = {.shards = 2}}),
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr("1 of 7"), HasSubstr("b/cut.jpg"), HasSubstr("--skip-bad"))));
  EXPECT_THAT(out.List(), IsEmpty());
}

TEST(PackerTest, SkipBadLeavesFilesOutAndListsThem) {
  const TempFolder images, out;
  FillImageFolder(images, {"a", "b"}, 3);
  images.Write("a/notes.txt", "no picture");
  images.Write("b/empty.jpg", "");
  const absl::StatusOr<PackReport> report = PackQuietly(
      images.path(), out / "p", {.plan = {.shards = 2}, .skip_bad = true, .threads = 2});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->train_images, 6);
  ASSERT_THAT(report->skipped, SizeIs(2));
  EXPECT_EQ(report->skipped[0].path, images / "a/notes.txt");
  EXPECT_EQ(report->skipped[1].path, images / "b/empty.jpg");
  EXPECT_NE(report->skipped[1].cause, "");
}

TEST(PackerTest, NothingButBadFilesIsAnErrorEvenWithSkipBad) {
  const TempFolder images, out;
  FillImageFolder(images, {"a"}, 0);
  images.Write("a/notes.txt", "no picture");
  EXPECT_THAT(PackQuietly(images.path(), out / "p", {.plan = {.shards = 1}, .skip_bad = true}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("1 of 1")));
}

TEST(PackerTest, PackingOverShardsOfAnotherCountIsRefused) {
  const TempFolder images, out;
  FillImageFolder(images, {"a"}, 4);
  ASSERT_THAT(PackQuietly(images.path(), out / "p", {.plan = {.shards = 4}}), IsOk());
  EXPECT_THAT(PackQuietly(images.path(), out / "p", {.plan = {.shards = 2}}),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("-of-00004.tfrecord")));
  EXPECT_THAT(PackQuietly(images.path(), out / "other", {.plan = {.shards = 2}}), IsOk());
}

TEST(PackerTest, CountsEachFileOnceInEachPass) {
  const TempFolder images, out;
  FillImageFolder(images, {"a"}, 4);
  std::vector<std::string> passes;
  std::vector<int64_t> totals, done;
  ASSERT_THAT(Pack(images.path(), out / "p", {.plan = {.shards = 1}},
                   {.begins =
                        [&](absl::string_view pass, int64_t files) {
                          passes.emplace_back(pass);
                          totals.push_back(files);
                          done.push_back(0);
                        },
                    .done =
                        [&](int64_t files) {
                          done.back() += files;
                          return true;
                        }}),
              IsOk());
  EXPECT_THAT(passes, ElementsAre("checking", "packing"));
  EXPECT_THAT(totals, ElementsAre(4, 4));
  EXPECT_THAT(done, ElementsAre(4, 4));
}

TEST(PackerTest, AnInterruptedRunLeavesNoFiles) {
  for (const char* pass : {"checking", "packing"}) {
    const TempFolder images, out;
    FillImageFolder(images, {"a"}, 12);
    EXPECT_THAT(PackAndStop(images.path(), out / "p", pass, 8),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("interrupted")));
    EXPECT_THAT(out.List(), IsEmpty()) << pass;
  }
}

TEST(PackerTest, RemovesTemporaryFilesOfAKilledRunWithTheSamePrefix) {
  const TempFolder images, out;
  FillImageFolder(images, {"a"}, 2);
  // No process has the number in these names.
  out.Write(".p-train-00000-of-00001.tfrecord.2147483646.0.tmp", "half a shard");
  out.Write(".other-train-00000-of-00001.tfrecord.2147483646.0.tmp", "of another set");
  ASSERT_THAT(PackQuietly(images.path(), out / "p", {.plan = {.shards = 1}}), IsOk());
  EXPECT_THAT(out.List(),
              ElementsAre(".other-train-00000-of-00001.tfrecord.2147483646.0.tmp", "labels.txt",
                          "p-train-00000-of-00001.tfrecord", "p.manifest"));
}

TEST(PackerTest, LabelsFileHasOneClassNamePerLineInLabelOrder) {
  const TempFolder images, out;
  FillImageFolder(images, {"tulip", "daisy", "rose"}, 1);
  const absl::StatusOr<PackReport> report =
      PackQuietly(images.path(), out / "new/p", {.plan = {.shards = 1}});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->labels_path, out / "new/labels.txt");
  EXPECT_EQ(ReadWholeFile(out / "new/labels.txt"), "daisy\nrose\ntulip\n");
  for (const Packed& packed : ReadAll(*report)) {
    EXPECT_EQ(packed.class_name, report->classes[packed.label]);
  }
}

TEST(PackerTest, TheManifestListsRecordsAndBytesOfEachShard) {
  const TempFolder images, out;
  FillImageFolder(images, {"a"}, 5);
  const PackOptions options = {.plan = {.shards = 2, .validation = 0.2}};
  const absl::StatusOr<PackReport> report = PackQuietly(images.path(), out / "p", options);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->manifest_path, out / "p.manifest");
  const absl::StatusOr<std::vector<ListedShard>> listed =
      ParseManifest(ReadWholeFile(out / "p.manifest"), "p.manifest");
  ASSERT_THAT(listed, IsOk());
  ASSERT_THAT(*listed, SizeIs(report->shards.size()));
  for (size_t i = 0; i < listed->size(); ++i) {
    EXPECT_EQ(out / (*listed)[i].name, report->shards[i].path);
    EXPECT_EQ((*listed)[i].records, report->shards[i].records);
    EXPECT_EQ((*listed)[i].bytes,
              static_cast<int64_t>(std::filesystem::file_size(report->shards[i].path)));
  }
  EXPECT_THAT(CompareWithManifests({out / "p-*"}, report->shards), IsOkAndHolds(IsEmpty()));
}

TEST(PackerTest, LabelsOfAnotherDataSetAreNotReplaced) {
  const TempFolder images, others, out;
  FillImageFolder(images, {"a", "b"}, 1);
  FillImageFolder(others, {"x"}, 1);
  ASSERT_THAT(PackQuietly(images.path(), out / "p", {.plan = {.shards = 1}}), IsOk());
  EXPECT_THAT(PackQuietly(images.path(), out / "q", {.plan = {.shards = 1}}), IsOk());
  EXPECT_THAT(
      PackQuietly(others.path(), out / "x", {.plan = {.shards = 1}}),
      StatusIs(absl::StatusCode::kAlreadyExists,
               AllOf(HasSubstr("labels.txt names other classes"), HasSubstr("another folder"))));
  EXPECT_EQ(ReadWholeFile(out / "labels.txt"), "a\nb\n");
}

TEST(PackerTest, AClassNameWithALineBreakIsRefused) {
  const TempFolder images, out;
  FillImageFolder(images, {"a\nb"}, 1);
  EXPECT_THAT(PackQuietly(images.path(), out / "p", {.plan = {.shards = 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a\\nb has a line break")));
}

TEST(PackerTest, OptionsOutOfRangeAreRefused) {
  const TempFolder images, out;
  FillImageFolder(images, {"a"}, 1);
  const struct {
    PackOptions options;
    std::string message;
  } cases[] = {
      {{.plan = {.shards = 1}, .resize_short = 0}, "--resize-short is 0"},
      {{.plan = {.shards = 1}, .resize_short = 16385}, "--resize-short is 16385"},
      {{.plan = {.shards = 1}, .quality = 0}, "--quality is 0"},
      {{.plan = {.shards = 1}, .quality = 101}, "--quality is 101"},
      {{.plan = {.shards = 1}, .quality = 90, .raw = true}, "--raw"},
      {{.plan = {.shards = 2}}, "only 1 train images"},
      {{.plan = {.shards = 1}, .threads = 0}, "thread"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(PackQuietly(images.path(), out / "p", c.options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

}  // namespace
}  // namespace systole
