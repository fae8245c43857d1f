#include "client/cli/shards/indexer.h"

#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/dataset/folder_index.h"
#include "core/http/http_headers.h"
#include "core/interrupt/interrupt.h"
#include "core/storage/stores/list_shards.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/images/image_files.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

StubBucket& Bucket() { return UnsignedBucketOfProcess(); }

std::string NameOf(int shard) { return absl::StrFormat("shard-%02d", shard); }

// Shard i has i + 1 records, and more bytes than are read to find its format.
std::string ShardOf(int i) {
  ShardBuilder builder;
  for (int record = 0; record <= i; ++record) builder.Add(std::string(600 + record * 7 + i, 'x'));
  return builder.Build();
}

// The shards of the running test in the bucket.
std::vector<std::string> PutShards(int count) {
  const std::string folder =
      absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "/");
  for (int i = 0; i < count; ++i) Bucket().Put(folder + NameOf(i), ShardOf(i));
  absl::StatusOr<std::vector<std::string>> paths = ListShards({Bucket().Name(folder + "*")});
  EXPECT_THAT(paths, IsOk());
  return *paths;
}

void Ignore(int64_t) {}

std::map<std::string, std::string> FilesIn(const TempFolder& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& name : folder.List()) files[name] = ReadWholeFile(folder / name);
  return files;
}

// Runs `work`, and returns the last two digits of the names of the shards that were scanned
// meanwhile. A request for the first byte (whose answer gives size and version) or for the first
// 512 bytes is no scan.
template <typename Work>
std::set<std::string> ScannedIn(const Work& work) {
  const size_t before = Bucket().server().requests().size();
  work();
  std::set<std::string> scanned;
  const std::vector<StubRequest> all = Bucket().server().requests();
  for (size_t i = before; i < all.size(); ++i) {
    const absl::string_view range = FindHeader(all[i].headers, "range");
    if (range == "bytes=0-0" || range == "bytes=0-511") continue;
    scanned.insert(all[i].target.substr(all[i].target.size() - 2));
  }
  return scanned;
}

// How many images were fetched from request number `first` on.
int ImagesReadSince(size_t first) {
  int images = 0;
  const std::vector<StubRequest> all = Bucket().server().requests();
  for (size_t i = first; i < all.size(); ++i) {
    images +=
        absl::EndsWith(all[i].target, ".jpg") && FindHeader(all[i].headers, "range") != "bytes=0-0";
  }
  return images;
}

TEST(IndexerTest, AnyNumberOfThreadsWritesTheSameFilesAndReturnsTheSame) {
  const std::vector<std::string> paths = PutShards(20);
  const TempFolder serial;
  const auto one = IndexShards(paths, {.index_dir = serial.path(), .threads = 1}, Ignore);
  ASSERT_THAT(one, IsOk());
  for (const int threads : {2, 7, 32}) {
    const TempFolder parallel;
    std::atomic<int64_t> done = 0;
    const auto many = IndexShards(paths, {.index_dir = parallel.path(), .threads = threads},
                                  [&done](int64_t files) { done.fetch_add(files); });
    ASSERT_THAT(many, IsOk());
    EXPECT_EQ(FilesIn(parallel), FilesIn(serial));
    EXPECT_EQ(done.load(), 20);
    ASSERT_EQ(many->size(), 20u);
    for (size_t i = 0; i < many->size(); ++i) {
      EXPECT_EQ((*many)[i].path, paths[i]);
      EXPECT_EQ((*many)[i].records, static_cast<int64_t>(i) + 1);
      EXPECT_EQ((*many)[i].bytes, (*one)[i].bytes);
      EXPECT_EQ((*many)[i].note, "");
    }
  }
}

TEST(IndexerTest, AnotherRunReadsOnlyTheShardsWithoutAValidIndex) {
  const std::vector<std::string> paths = PutShards(12);
  const TempFolder indexes;
  const IndexerOptions options = {.index_dir = indexes.path(), .threads = 4};
  // The first run ends at shard 5, and has finished at least the shards before shard 5.
  Bucket().SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!absl::EndsWith(request.target, NameOf(5))) return std::nullopt;
    return RefuseInXml(403, "AccessDenied");
  });
  EXPECT_THAT(IndexShards(paths, options, Ignore),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(NameOf(5))));
  Bucket().SetFault(nullptr);
  const std::map<std::string, std::string> kept = FilesIn(indexes);
  EXPECT_GE(kept.size(), 2u * 5);  // The index and its hash.

  std::set<std::string> without_index;
  for (int i = 0; i < 12; ++i) {
    bool has_index = false;
    for (const auto& [name, bytes] : kept) {
      has_index |= absl::StartsWith(name, NameOf(i)) && absl::EndsWith(name, ".hash");
    }
    EXPECT_TRUE(has_index || i >= 5) << i;
    if (!has_index) without_index.insert(NameOf(i).substr(NameOf(i).size() - 2));
  }
  EXPECT_EQ(ScannedIn([&] { EXPECT_THAT(IndexShards(paths, options, Ignore), IsOk()); }),
            without_index);
  const TempFolder fresh;
  ASSERT_THAT(IndexShards(paths, {.index_dir = fresh.path(), .threads = 1}, Ignore), IsOk());
  EXPECT_EQ(FilesIn(indexes), FilesIn(fresh));

  const IndexerOptions rebuilding = {.index_dir = indexes.path(), .rebuild = true, .threads = 4};
  EXPECT_THAT(ScannedIn([&] { EXPECT_THAT(IndexShards(paths, rebuilding, Ignore), IsOk()); }),
              SizeIs(12));
}

TEST(IndexerTest, AShardThatChangedIsIndexedAnew) {
  const TempFolder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 3; ++i) paths.push_back(folder.Write(NameOf(i), ShardOf(i)));
  ASSERT_THAT(IndexShards(paths, {.threads = 2}, Ignore), IsOk());
  folder.Write(NameOf(1), ShardOf(8));
  const auto again = IndexShards(paths, {.threads = 2}, Ignore);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ((*again)[0].records, 1);
  EXPECT_EQ((*again)[1].records, 9);
  EXPECT_EQ((*again)[2].records, 3);
}

TEST(IndexerTest, AnInterruptedRunKeepsWhatIsDoneAndSaysHowMuch) {
  const std::vector<std::string> paths = PutShards(30);
  const TempFolder indexes;
  const IndexerOptions options = {.index_dir = indexes.path(), .threads = 2};
  InterruptFlag unwanted;
  {
    const InterruptScope scope(unwanted);
    std::atomic<int64_t> done = 0;
    EXPECT_THAT(IndexShards(paths, options,
                            [&](int64_t files) {
                              if (done.fetch_add(files) + files == 10) unwanted.Raise();
                            }),
                StatusIs(absl::StatusCode::kCancelled,
                         AllOf(HasSubstr("interrupted: 1"), HasSubstr(" of 30 shards"))));
  }
  size_t with_index = 0;
  for (const std::string& name : indexes.List()) with_index += absl::EndsWith(name, ".hash");
  EXPECT_GE(with_index, 10u);
  EXPECT_LE(with_index, 12u);
  EXPECT_THAT(ScannedIn([&] { EXPECT_THAT(IndexShards(paths, options, Ignore), IsOk()); }),
              SizeIs(30 - with_index));
}

TEST(IndexerTest, TheFolderOfABucketGetsAnIndexOfItsShardsToo) {
  constexpr int kShards = 20;
  PutShards(kShards);
  const std::string folder = "TheFolderOfABucketGetsAnIndexOfItsShardsToo/";
  const absl::StatusOr<ShardList> list = ListShardStates({Bucket().Name(folder + "*")});
  ASSERT_THAT(list, IsOk());
  std::vector<std::string> paths;
  for (const ListedFile& file : list->shards) paths.push_back(file.name);
  const auto indexed = IndexShards(paths, {.threads = 2}, Ignore);
  ASSERT_THAT(indexed, IsOk());
  ASSERT_THAT(IndexFolders(*list, *indexed, ""), IsOk());
  const absl::StatusOr<std::vector<FolderIndexLine>> lines =
      ParseFolderIndex(Bucket().Get(folder + "shards.manifest.idx").value_or(""));
  ASSERT_THAT(lines, IsOk());
  ASSERT_THAT(*lines, SizeIs(kShards));
  for (int i = 0; i < kShards; ++i) {
    EXPECT_EQ((*lines)[i].name, NameOf(i));
    EXPECT_EQ((*lines)[i].facts.records, i + 1);
    EXPECT_EQ((*lines)[i].facts.bytes, ShardOf(i).size());
    EXPECT_EQ((*lines)[i].facts.payload.least, 600 + i);
    EXPECT_EQ((*lines)[i].facts.identity, list->shards[i].state.identity);
  }
  Bucket().SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method != "PUT") return std::nullopt;
    return RefuseInXml(403, "AccessDenied");
  });
  Bucket().Remove(folder + "shards.manifest.idx");
  const absl::StatusOr<ShardList> without = ListShardStates({Bucket().Name(folder + "*")});
  EXPECT_THAT(IndexFolders(*without, *indexed, ""),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("shards.manifest.idx")));
  Bucket().SetFault(nullptr);
}

// How many requests, from number `first` on, were for the first byte of an object whose name ends
// with `ending`. Such a request asks for the object's state.
int AsksForStatesSince(size_t first, absl::string_view ending) {
  int asks = 0;
  const std::vector<StubRequest> all = Bucket().server().requests();
  for (size_t i = first; i < all.size(); ++i) {
    asks +=
        absl::EndsWith(all[i].target, ending) && FindHeader(all[i].headers, "range") == "bytes=0-0";
  }
  return asks;
}

TEST(IndexerTest, ShardAndImageStatesFromTheListingAreNotRequestedAgain) {
  const std::string folder =
      absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "/");
  for (int i = 0; i < 6; ++i) {
    Bucket().Put(absl::StrCat(folder, "shards/", i, ".tfrecord"), ShardOf(i + 1));
    Bucket().Put(absl::StrCat(folder, "images/a/", i, ".jpg"), Jpeg(i));
  }
  for (const std::string ending : {".tfrecord", ".jpg"}) {
    const std::string pattern =
        Bucket().Name(folder + (ending == ".jpg" ? "images/*/*.jpg" : "shards/*.tfrecord"));
    const absl::StatusOr<ShardList> list = ListShardStates({pattern});
    ASSERT_THAT(list, IsOk());
    const absl::StatusOr<std::vector<std::string>> paths = ListShards({pattern});
    ASSERT_THAT(paths, IsOk());
    const auto asks = [&](const ShardList* listed) {
      const size_t before = Bucket().server().requests().size();
      EXPECT_THAT(IndexShards(*paths, {.threads = 2, .list = listed}, Ignore), IsOk());
      return AsksForStatesSince(before, ending);
    };
    EXPECT_EQ(asks(&*list), 0) << ending;  // Makes the indexes.
    EXPECT_EQ(asks(&*list), 0) << ending;  // Looks at them.
  }
}

TEST(IndexerTest, AShardThatWasReplacedAfterItWasListedIsIndexedAsItIsNow) {
  const std::vector<std::string> paths = PutShards(2);
  const std::string folder =
      absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "/");
  const absl::StatusOr<ShardList> list = ListShardStates({Bucket().Name(folder + "*")});
  ASSERT_THAT(list, IsOk());
  ASSERT_NE(list->StateOf(paths[1]), nullptr);
  Bucket().Put(folder + NameOf(1), ShardOf(7));
  const auto indexed = IndexShards(paths, {.threads = 1, .list = &*list}, Ignore);
  ASSERT_THAT(indexed, IsOk());
  EXPECT_EQ((*indexed)[1].records, 8);
}

// The finished part is written into the bucket although the run is interrupted.
TEST(IndexerTest, IndexingOfBucketImagesResumesAfterAnInterruption) {
  const std::string root =
      absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "/");
  for (int i = 0; i < 6; ++i) Bucket().Put(absl::StrCat(root, "a/", i, ".jpg"), Jpeg(i));
  const auto paths = ListShards({Bucket().Name(root + "*/*.jpg")});
  ASSERT_THAT(paths, IsOk());
  InterruptFlag unwanted;
  {
    const InterruptScope scope(unwanted);
    int64_t done = 0;
    EXPECT_THAT(IndexShards(*paths, {.threads = 1},
                            [&](int64_t files) {
                              done += files;
                              if (done == 4) unwanted.Raise();
                            }),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("index them again to go on")));
  }
  ASSERT_TRUE(Bucket().Get(root + "images.idx").has_value());
  EXPECT_THAT(*Bucket().Get(root + "images.idx"), HasSubstr("systole-images-1 4 "));

  const auto index = [&](bool rebuild) {
    const size_t before = Bucket().server().requests().size();
    const auto indexed = IndexShards(*paths, {.rebuild = rebuild, .threads = 1}, Ignore);
    EXPECT_THAT(indexed, IsOk());
    EXPECT_TRUE(indexed.ok() && indexed->front().records == 6);
    return ImagesReadSince(before);
  };
  EXPECT_EQ(index(false), 2);
  EXPECT_EQ(index(false), 0);
  EXPECT_EQ(index(true), 6);
  EXPECT_THAT(*Bucket().Get(root + "images.idx"), HasSubstr("systole-images-1 6 "));
}

TEST(IndexerTest, AnIndexOrHashThatCannotBeWrittenIsAnError) {
  const TempFolder folder;
  const std::string shard = folder.Write("a", ShardOf(3));
  EXPECT_THAT(IndexShards({shard}, {.index_dir = folder / "none"}, Ignore),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("not kept")));
  EXPECT_THAT(folder.List(), ElementsAre("a"));
  ASSERT_THAT(IndexShards({shard}, {}, Ignore), IsOk());
  // A directory of this name cannot be replaced by a file.
  std::filesystem::remove(folder / "a.idx.hash");
  std::filesystem::create_directory(folder / "a.idx.hash");
  EXPECT_THAT(IndexShards({shard}, {.rebuild = true}, Ignore),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("hash not kept")));
}

// An index that another program wrote has no hash file. The index is checked, and gets a hash file.
TEST(IndexerTest, AMissingHashIsWrittenAndADamagedIndexIsRebuilt) {
  const TempFolder folder;
  const std::string shard = folder.Write("a", ShardOf(3));
  ASSERT_THAT(IndexShards({shard}, {}, Ignore), IsOk());
  const std::map<std::string, std::string> files = FilesIn(folder);
  std::filesystem::remove(folder / "a.idx.hash");
  ASSERT_THAT(IndexShards({shard}, {}, Ignore), IsOk());
  EXPECT_EQ(FilesIn(folder), files);
  folder.Write("a.idx", "no index");
  const auto again = IndexShards({shard}, {}, Ignore);
  ASSERT_THAT(again, IsOk());
  EXPECT_THAT((*again)[0].note, HasSubstr("not used"));
  EXPECT_EQ(FilesIn(folder), files);
}

}  // namespace
}  // namespace systole
