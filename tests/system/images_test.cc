// Folders of images through the real programs: served, inspected, indexed, verified, shown. A
// folder gives the same feed as the shards that `systole pack` makes of it.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/storage/local/file_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kImages = 48;
constexpr int kDamage = 1;

class ImagesTest : public testing::Test {
 protected:
  ImagesTest() {
    const Finished made = RunSystole(
        {"make-flowers", folder_ / "flowers", "--images", absl::StrCat(kImages), "--size", "48"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
  }

  std::string Glob() const { return folder_ / "flowers/*/*.jpg"; }
  std::string Dataset() const { return absl::StrCat("flowers=", Glob()); }

  // The paths of the images, by class and name.
  std::vector<std::string> Images() const {
    std::vector<std::string> paths;
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder_ / "flowers")) {
      if (file.path().extension() == ".jpg") paths.push_back(file.path().string());
    }
    // Sorts by class, because no class name begins with another.
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  // Packs the images, and writes the records again in the order of Images().
  void PackInOrder() const {
    const Finished packed =
        RunSystole({"pack", folder_ / "flowers", folder_ / "packed/flowers", "--shards", "1"});
    ASSERT_EQ(packed.exit_code, 0) << packed.err;
    const auto file = FileSource::Open(folder_ / "packed/flowers-train-00000-of-00001.tfrecord");
    ASSERT_THAT(file, IsOk());
    auto reader = RecordReader::Create(**file);
    ASSERT_THAT(reader, IsOk());
    std::vector<std::string> records;
    for (auto record = reader->Next(); record.ok() && record->has_value();
         record = reader->Next()) {
      records.emplace_back(**record);
    }
    ASSERT_EQ(records.size(), static_cast<size_t>(kImages));
    ShardBuilder shard;
    for (const std::string& path : Images()) {
      const std::string bytes = ReadWholeFile(path);
      const auto found = std::find_if(
          records.begin(), records.end(),
          [&bytes](const std::string& record) { return absl::StrContains(record, bytes); });
      ASSERT_TRUE(found != records.end()) << path;
      shard.Add(*found);
    }
    shard.WriteTo(folder_ / "ordered.tfrecord");
  }

  std::string Spec(const std::string& dataset, const std::string& extra = "") const {
    return folder_.Write(
        "spec.textproto",
        absl::StrCat(R"(global_batch: 8 num_cores: 2 epochs: 1 seed: 3 shuffle { mode: GLOBAL }
outputs { name: "image" feature: "image" dtype: FLOAT32 transforms { decode_jpeg {} }
          transforms { random_resized_crop { height: 24 width: 24 } } transforms { random_flip {} } }
outputs { name: "label" feature: "label" dtype: INT64 }
outputs { name: "size" feature: "size" dtype: INT32 shape: 3 }
outputs { name: "record" feature: "record_id" dtype: INT64 }
dataset: ")",
                     dataset, "\" ", extra));
  }

  Finished Feed(const std::string& server, const std::string& dataset,
                const std::string& extra = "") const {
    return RunSystole({"feed", "--server", server, "--digest", "--spec", Spec(dataset, extra)});
  }

  const TempFolder folder_;
};

TEST_F(ImagesTest, AServedFolderGivesTheBytesOfItsPackedShards) {
  ASSERT_NO_FATAL_FAILURE(PackInOrder());
  std::filesystem::create_directory(folder_ / "index");
  // The second server uses the index that the first one has written.
  for (const bool indexed : {false, true}) {
    SCOPED_TRACE(indexed);
    const auto server = ServerProcess::Start({"--dataset", Dataset(), "--dataset",
                                              absl::StrCat("packed=", folder_ / "ordered.tfrecord"),
                                              "--index-dir", folder_ / "index"});
    ASSERT_THAT(server, IsOk());
    const Finished images = Feed((*server)->address(), "flowers");
    const Finished packed = Feed((*server)->address(), "packed");
    EXPECT_EQ(images.exit_code, 0) << images.err;
    EXPECT_EQ(packed.exit_code, 0) << packed.err;
    EXPECT_EQ(Lines(images.out).size(), static_cast<size_t>(kImages / 8 * 2));
    EXPECT_EQ(SortedByStepAndCore(images.out), SortedByStepAndCore(packed.out));
    const Finished datasets = RunSystole({"datasets", "--server", (*server)->address()});
    EXPECT_THAT(datasets.out,
                HasSubstr(absl::StrCat("flowers: ", kImages, " records in 1 shards")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "flowers/images.idx"));
}

TEST_F(ImagesTest, InspectVerifyIndexAndLookReadImageFiles) {
  const Finished inspected = RunSystole({"inspect", Glob()});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(
      inspected.out,
      AllOf(HasSubstr(absl::StrCat(folder_ / "flowers", "  ", kImages, " records")),
            HasSubstr("class        bytes"), HasSubstr("label        int64"), HasSubstr("JPEG ")));
  const Finished record = RunSystole({"inspect", Glob(), "--record", "0"});
  EXPECT_EQ(record.exit_code, 0) << record.err;
  EXPECT_THAT(record.out, AllOf(HasSubstr("record 0, the file \"daisy/daisy_000000.jpg\", "),
                                HasSubstr("\"daisy\"")));
  const Finished verified = RunSystole({"verify", Glob()});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out,
              AllOf(HasSubstr(absl::StrCat("1 shards, ", kImages, " records")),
                    HasSubstr(absl::StrCat(kImages, " JPEGs decoded, 0 bad records"))));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "flowers/images.idx"));

  const Finished indexed = RunSystole({"index", Glob(), "--json"});
  EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
  EXPECT_THAT(indexed.out, AllOf(HasSubstr(absl::StrCat("\"records\":", kImages)),
                                 HasSubstr(folder_ / "flowers/images.idx")));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "flowers/images.idx"));

  const auto server = ServerProcess::Start({"--dataset", Dataset()});
  ASSERT_THAT(server, IsOk());
  const Finished look = RunSystole({"look", "--server", (*server)->address(), "--spec",
                                    Spec("flowers"), "--out", folder_ / "page.html"});
  EXPECT_EQ(look.exit_code, 0) << look.err;
  EXPECT_THAT(ReadWholeFile(folder_ / "page.html"), HasSubstr("<img"));
}

TEST_F(ImagesTest, AFolderIsRefusedWithTheGlobToUse) {
  for (const std::string pattern : {"flowers", "flowers/*"}) {
    const Finished refused = RunSystole({"inspect", folder_ / pattern});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("use " + Glob()));
  }
}

TEST_F(ImagesTest, ADamagedFileIsADamagedRecord) {
  const std::string victim = "rose/rose_000002.jpg";
  folder_.Write("flowers/" + victim, "text");
  const std::string broken = "tulip/tulip_000004.jpg";
  const std::string whole = ReadWholeFile(folder_ / ("flowers/" + broken));
  folder_.Write("flowers/" + broken, whole.substr(0, whole.size() - 30));

  const Finished verified = RunSystole({"verify", Glob()});
  EXPECT_EQ(verified.exit_code, kDamage);
  EXPECT_THAT(verified.out, AllOf(HasSubstr(absl::StrCat("the file \"", victim, "\": ")),
                                  HasSubstr(absl::StrCat("the file \"", broken, "\": ")),
                                  HasSubstr(", 2 bad records"), Not(HasSubstr("byte offset"))));
  EXPECT_EQ(RunSystole({"inspect", Glob()}).exit_code, kDamage);
  const Finished indexed = RunSystole({"index", Glob()});
  EXPECT_EQ(indexed.exit_code, kDamage);
  EXPECT_THAT(indexed.out,
              HasSubstr(absl::StrCat("the file \"", victim, "\": the file is neither")));

  const auto server = ServerProcess::Start({"--dataset", Dataset()});
  ASSERT_THAT(server, IsOk());
  EXPECT_THAT((*server)->process().err(), HasSubstr(victim));
  const Finished failed = Feed((*server)->address(), "flowers");
  EXPECT_EQ(failed.exit_code, kDamage);
  EXPECT_THAT(failed.err, AllOf(testing::AnyOf(HasSubstr(victim), HasSubstr(broken)),
                                HasSubstr("on_corrupt: MASK"), Not(HasSubstr(folder_.path()))));
  const Finished masked = Feed((*server)->address(), "flowers", "on_corrupt: MASK");
  EXPECT_EQ(masked.exit_code, 0) << masked.err;
  EXPECT_THAT(masked.err, HasSubstr("2 examples are masked"));
  EXPECT_THAT(RunSystole({"datasets", "--server", (*server)->address()}).out,
              AllOf(HasSubstr(victim), HasSubstr(broken)));
}

TEST_F(ImagesTest, AFileThatIsReplacedEndsTheFeedAndIsNamed) {
  const auto server = ServerProcess::Start({"--dataset", Dataset()});
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(Feed((*server)->address(), "flowers").exit_code, 0);
  folder_.Write("flowers/rose/rose_000002.jpg",
                ReadWholeFile(folder_ / "flowers/tulip/tulip_000004.jpg") + "x");
  for (const std::string extra : {"", "on_corrupt: MASK"}) {
    const Finished feed = Feed((*server)->address(), "flowers", extra);
    EXPECT_EQ(feed.exit_code, kDamage);
    EXPECT_THAT(feed.err, AllOf(HasSubstr("\"rose_000002.jpg\""), HasSubstr("since it was opened"),
                                Not(HasSubstr(folder_.path()))));
  }
  std::filesystem::remove(folder_ / "flowers/rose/rose_000002.jpg");
  const Finished removed = Feed((*server)->address(), "flowers");
  EXPECT_EQ(removed.exit_code, kDamage);
  EXPECT_THAT(removed.err, HasSubstr("\"rose_000002.jpg\" was removed since"));
}

}  // namespace
}  // namespace systole
