#include "bench/corpora.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bench/photographs.h"
#include "core/dataset/dataset.h"
#include "core/example/example_parser.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/source/index_path.h"
#include "core/record/tfrecord/index_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole::bench {
namespace {

namespace fs = std::filesystem;

class CorporaTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("SYSTOLE_BENCH", "smoke", 1);
    setenv("SYSTOLE_BENCH_CORPORA", root_.path().c_str(), 1);
  }

  const TempFolder root_;
};

TEST_F(CorporaTest, PhotographsAreAWholeDataSet) {
  const std::vector<std::string> paths = PhotographShards();
  for (const std::string& path : paths) EXPECT_TRUE(fs::exists(IndexPath(path, ""))) << path;
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Open("photographs", paths);
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ((*dataset)->num_records(), 128);  // The number in a smoke run.

  // Shard s holds the photographs s, s + 8, s + 16 and so on, so record 1 of shard 0 is the ninth
  // photograph.
  AlignedBuffer scratch;
  const absl::StatusOr<absl::string_view> record = (*dataset)->ReadRecord(1, scratch);
  ASSERT_THAT(record, IsOk());
  const absl::StatusOr<ExampleView> example = ExampleView::Parse(*record);
  ASSERT_THAT(example, IsOk());
  EXPECT_THAT(example->Find("image").BytesAt(0), IsOkAndHolds(MakePhotograph(8)));
}

TEST_F(CorporaTest, SmallRecordsAreAWholeDataSet) {
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("small", SmallRecordShards());
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ((*dataset)->num_records(), 4000);  // The number in a smoke run.
}

TEST_F(CorporaTest, EveryCorpusHasItsNameAndRecordsOfItsKind) {
  struct Case {
    std::string name;
    int64_t records;  // The number in a smoke run.
    std::string feature;
  };
  for (const auto& [name, records, feature] :
       {Case{"pngs", 128, "image"}, Case{"tiny-images", 500, "image"},
        Case{"tokens", 2000, "tokens"}, Case{"tables", 4000, "row"}, Case{"blobs", 128, "blob"}}) {
    SCOPED_TRACE(name);
    const std::vector<std::string> shards = ShardsNamed(name);
    ASSERT_FALSE(shards.empty());
    EXPECT_THAT(shards[0], testing::HasSubstr("/" + name + "-"));
    const absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Open(name, shards);
    ASSERT_THAT(dataset, IsOk());
    EXPECT_EQ((*dataset)->num_records(), records);
    AlignedBuffer scratch;
    const absl::StatusOr<absl::string_view> record = (*dataset)->ReadRecord(0, scratch);
    ASSERT_THAT(record, IsOk());
    EXPECT_THAT(*record, testing::HasSubstr(feature));
    EXPECT_THAT(*record, testing::HasSubstr("label"));
  }
  EXPECT_THAT(ShardsNamed("nonsense"), testing::IsEmpty());
}

TEST_F(CorporaTest, ACorpusIsMadeOnce) {
  const std::vector<std::string> paths = SmallRecordShards();
  std::ofstream(paths[0]) << "changed";
  EXPECT_EQ(SmallRecordShards(), paths);
  EXPECT_EQ(fs::file_size(paths[0]), 7u);
}

TEST_F(CorporaTest, ACorpusLeftIncompleteByAKilledRunIsRebuilt) {
  const std::vector<std::string> paths = SmallRecordShards();
  const fs::path folder = fs::path(paths[0]).parent_path();
  // If a run is killed while it makes the corpus, it leaves a folder of this name.
  fs::rename(folder, folder.string() + ".making");
  fs::remove(folder.string() + ".making/" + fs::path(paths[0]).filename().string());
  EXPECT_EQ(SmallRecordShards(), paths);
  for (const std::string& path : paths) EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_FALSE(fs::exists(folder.string() + ".making"));
}

TEST_F(CorporaTest, AFolderThatCannotBeMadeIsNamed) {
  setenv("SYSTOLE_BENCH_CORPORA", (root_.Write("file", "no folder") + "/corpora").c_str(), 1);
  EXPECT_EXIT(SmallRecordShards(), testing::ExitedWithCode(2),
              "'small-records' cannot be made: .*/file/corpora");
}

}  // namespace
}  // namespace systole::bench
