// Opens datasets whose shards are in a bucket. Tests which requests this needs, what the indexes
// save at a later opening, and the errors.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/checksum/xxh3.h"
#include "core/concurrency/mutex.h"
#include "core/dataset/dataset.h"
#include "core/dataset/folder_index.h"
#include "core/example/example_builder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/each_shard.h"
#include "core/record/source/client_reason.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

StubBucket& Bucket() { return UnsignedBucketOfProcess(); }

// The folder of the running test in the bucket.
std::string Folder() {
  return absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "/");
}

std::string KeyOf(int shard) { return absl::StrFormat("%sshard-%05d.tfrecord", Folder(), shard); }

// Shard i has one record, with the label i.
void PutShards(int count) {
  for (int i = 0; i < count; ++i) {
    Bucket().Put(KeyOf(i),
                 ShardBuilder().Add(ExampleBuilder().AddInt64s("label", {i}).Serialize()).Build());
  }
}

absl::StatusOr<std::shared_ptr<Dataset>> Open(const TempFolder& indexes) {
  return Dataset::Open("far", {Bucket().Name(Folder() + "shard-*")}, {.index_dir = indexes.path()});
}

// The number of reads of each object since the last call. A read of the first byte alone does not
// count: it finds out the object's size and version, and may be repeated after a second.
std::map<std::string, int> ReadsOfObjects() {
  static size_t seen = 0;
  std::map<std::string, int> reads;
  const std::vector<StubRequest> requests = Bucket().server().requests();
  for (; seen < requests.size(); ++seen) {
    const std::string& target = requests[seen].target;
    const bool is_look = FindHeader(requests[seen].headers, "range") == "bytes=0-0";
    if (!is_look && !absl::StrContains(target, "list-type=2")) ++reads[target];
  }
  return reads;
}

// Numbers of requests since the last call. `reads` counts only reads of more than an object's first
// byte.
struct Asked {
  int lists = 0;
  int reads = 0;
  std::map<std::string, int> reads_of;
};
Asked AskedSince() {
  static int lists = 0;
  Asked asked = {.lists = Bucket().lists() - lists, .reads_of = ReadsOfObjects()};
  lists = Bucket().lists();
  for (const auto& [target, count] : asked.reads_of) asked.reads += count;
  return asked;
}

// Opens all shards of the running test, and expects that there are `count` of them.
std::shared_ptr<Dataset> OpenAll(const TempFolder& indexes, int count) {
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset = Open(indexes);
  EXPECT_THAT(dataset, IsOk());
  if (!dataset.ok()) return nullptr;
  EXPECT_EQ((*dataset)->num_records(), count);
  return *dataset;
}

// At most this many reads of records find out the features.
constexpr int kFewReads = 64;

// The paths of the indexes of folders. `indexes` also has indexes of single shards.
std::vector<std::string> FolderIndexes(const TempFolder& indexes) {
  std::vector<std::string> paths;
  for (const std::string& name : indexes.List()) {
    if (absl::StartsWith(name, "shards.manifest-")) paths.push_back(indexes / name);
  }
  return paths;
}

void RemoveFolderIndexes(const TempFolder& indexes) {
  for (const std::string& path : FolderIndexes(indexes)) EXPECT_THAT(RemoveStored(path), IsOk());
}

TEST(FarDatasetTest, AStartWithIndexesListsTheFolderOnceAndReadsEachShardsBeginningOnce) {
  constexpr int kShards = 300;
  PutShards(kShards);
  const TempFolder indexes;
  const std::shared_ptr<Dataset> first = OpenAll(indexes, kShards);
  EXPECT_EQ(first->note(), "");
  RemoveFolderIndexes(indexes);
  AskedSince();
  const std::shared_ptr<Dataset> dataset = OpenAll(indexes, kShards);
  const Asked asked = AskedSince();
  EXPECT_EQ(asked.lists, 1);  // For the pattern and for the search for manifests.
  EXPECT_EQ(asked.reads_of.size(), static_cast<size_t>(kShards));
  // The beginning of each shard is read for the shard's format. A few records are read for their
  // features.
  EXPECT_LE(asked.reads, kShards + kFewReads);
  // The shards are in the order of their names, not in the order in which they were opened.
  for (int i = 0; i < kShards; ++i)
    EXPECT_EQ(dataset->shards()[i]->path(), Bucket().Name(KeyOf(i)));
  EXPECT_EQ(dataset->fingerprint(), first->fingerprint());
}

TEST(FarDatasetTest, AStartWithAFolderIndexOnlyListsTheFolderAndReadsFewRecords) {
  constexpr int kShards = kSanitized ? 1100 : 2500;
  PutShards(kShards);
  const TempFolder indexes;
  const std::shared_ptr<Dataset> first = OpenAll(indexes, kShards);
  AskedSince();
  const int all_before = Bucket().reads();
  const std::shared_ptr<Dataset> dataset = OpenAll(indexes, kShards);
  const Asked asked = AskedSince();
  const int pages = (kShards + 999) / 1000;  // A page has 1,000 names.
  EXPECT_GE(asked.lists, pages);
  EXPECT_LE(asked.lists, 2 * pages + 1);
  EXPECT_LE(Bucket().reads() - all_before, kFewReads);
  EXPECT_EQ(dataset->fingerprint(), first->fingerprint());
  EXPECT_EQ(dataset->min_payload_bytes(), first->min_payload_bytes());
  EXPECT_EQ(dataset->max_payload_bytes(), first->max_payload_bytes());
  EXPECT_EQ(dataset->mean_record_bytes(), first->mean_record_bytes());
  EXPECT_EQ(dataset->far_bytes(), first->far_bytes());
  EXPECT_EQ(dataset->features().size(), first->features().size());
  AlignedBuffer scratch;
  AlignedBuffer other;
  for (const int64_t record : {0, 1034, kShards - 1}) {
    EXPECT_EQ(dataset->ReadRecord(record, scratch).value(),
              first->ReadRecord(record, other).value());
    EXPECT_EQ(dataset->Where(record), first->Where(record));
  }
}

TEST(FarDatasetTest, OnlyShardsThatDifferFromTheFolderIndexAreOpenedAgain) {
  constexpr int kShards = 40;
  PutShards(kShards + 1);
  Bucket().Remove(KeyOf(kShards));
  const TempFolder indexes;
  const uint64_t fingerprint = OpenAll(indexes, kShards)->fingerprint();
  // Replaces the object by a new version with the same bytes.
  Bucket().Put(KeyOf(7), *Bucket().Get(KeyOf(7)));
  AskedSince();
  EXPECT_EQ(OpenAll(indexes, kShards)->fingerprint(), fingerprint);
  Asked asked = AskedSince();
  EXPECT_LE(asked.reads, kFewReads);
  // The object is read twice: its beginning for the format, and the whole object for a new index.
  EXPECT_GE(asked.reads_of[absl::StrCat("/", kStubBucket, "/", KeyOf(7))], 2);
  // The index of the folder was written again, and now has the object's new version.
  OpenAll(indexes, kShards);
  asked = AskedSince();
  EXPECT_EQ(asked.reads_of.count(absl::StrCat("/", kStubBucket, "/", KeyOf(7))), 0u);

  Bucket().Put(KeyOf(kShards), *Bucket().Get(KeyOf(7)));
  OpenAll(indexes, kShards + 1);
  EXPECT_GE(AskedSince().reads_of[absl::StrCat("/", kStubBucket, "/", KeyOf(kShards))], 2);
  Bucket().Remove(KeyOf(kShards));
  EXPECT_EQ(OpenAll(indexes, kShards)->fingerprint(), fingerprint);
}

TEST(FarDatasetTest, AnInvalidFolderIndexIsRebuiltWithANote) {
  constexpr int kShards = 20;
  PutShards(kShards);
  const TempFolder indexes;
  const uint64_t fingerprint = OpenAll(indexes, kShards)->fingerprint();
  const std::string path = FolderIndexes(indexes).front();
  const std::string text = *GetStored(path, 1 << 20);
  const std::string body = text.substr(text.find('\n') + 1);
  const auto with_head = [&body](const std::string& version, const std::string& count) {
    return absl::StrCat("systole-shards-", version, " ", count, " ",
                        absl::Hex(Xxh3(body), absl::kZeroPad16), "\n", body);
  };
  ASSERT_EQ(with_head("1", absl::StrCat(kShards)), text);
  for (const std::string& other :
       {text.substr(0, text.size() / 2), std::string("no index"), std::string(),
        with_head("2", absl::StrCat(kShards)), with_head("1", "18446744073709551615"),
        with_head("1", "19"), std::string(100 << 10, 'x')}) {
    ASSERT_THAT(PutStored(path, other), IsOk());
    const std::shared_ptr<Dataset> dataset = OpenAll(indexes, kShards);
    EXPECT_EQ(dataset->fingerprint(), fingerprint);
    EXPECT_THAT(dataset->note(), HasSubstr("not used: ")) << other.substr(0, 40);
    EXPECT_EQ(*GetStored(path, 1 << 20), text);
    EXPECT_EQ(OpenAll(indexes, kShards)->note(), "");
  }
}

TEST(FarDatasetTest, AWrongRecordCountInTheFolderIndexIsNoticedWhenTheShardIsRead) {
  constexpr int kShards = 20;
  PutShards(kShards);
  const TempFolder indexes;
  OpenAll(indexes, kShards);
  const std::string path = FolderIndexes(indexes).front();
  absl::StatusOr<std::vector<FolderIndexLine>> lines = ParseFolderIndex(*GetStored(path, 1 << 20));
  ASSERT_THAT(lines, IsOk());
  lines->at(13).facts.records = 3;
  ASSERT_THAT(PutStored(path, FolderIndexText(*lines)), IsOk());
  const std::shared_ptr<Dataset> dataset = OpenAll(indexes, kShards + 2);
  AlignedBuffer scratch;
  EXPECT_THAT(dataset->ReadRecord(12, scratch), IsOk());
  EXPECT_THAT(dataset->ReadRecord(14, scratch),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("shard-00013.tfrecord\" differs from the index"),
                             HasSubstr("1 records"), HasSubstr("3 whole ones"),
                             HasSubstr("systole index --rebuild"))));
}

TEST(FarDatasetTest, ADamagedShardIsOpenedAtEachStart) {
  constexpr int kShards = 20;
  PutShards(kShards);
  std::string bytes = *Bucket().Get(KeyOf(5));
  bytes[0] ^= 1;
  Bucket().Put(KeyOf(5), bytes + *Bucket().Get(KeyOf(6)));
  const TempFolder indexes;
  for (int round = 0; round < 2; ++round) {
    AskedSince();
    const std::shared_ptr<Dataset> dataset = OpenAll(indexes, kShards + 1);
    EXPECT_EQ(dataset->num_damaged_records(), 1);
    EXPECT_EQ(dataset->DamagedRecords(10).size(), 1u);
    EXPECT_GE(AskedSince().reads_of[absl::StrCat("/", kStubBucket, "/", KeyOf(5))], 1);
  }
}

TEST(FarDatasetTest, InABucketTheFolderIndexIsWrittenOnlyIfThatIsAllowed) {
  constexpr int kShards = 20;
  PutShards(kShards);
  const std::string key = Folder() + "shards.manifest.idx";
  const auto open = [](bool write_index) {
    return *Dataset::Open("far", {Bucket().Name(Folder() + "shard-*")},
                          {.write_index = write_index});
  };
  const std::shared_ptr<Dataset> first = open(true);
  EXPECT_EQ(first->note(), "");
  ASSERT_TRUE(Bucket().Get(key).has_value());
  AskedSince();
  EXPECT_EQ(open(false)->fingerprint(), first->fingerprint());
  const Asked asked = AskedSince();
  EXPECT_EQ(asked.lists, 1);
  EXPECT_EQ(asked.reads_of.count(absl::StrCat("/", kStubBucket, "/", KeyOf(9))), 0u);
  Bucket().Remove(key);
  EXPECT_THAT(open(false)->note(),
              AllOf(HasSubstr("shards.manifest.idx"), HasSubstr("write-index")));
  EXPECT_FALSE(Bucket().Get(key).has_value());
}

TEST(FarDatasetTest, TheFolderIndexKeepsLinesOfShardsThatOtherGlobsMatch) {
  constexpr int kShards = 40;
  PutShards(kShards);
  const TempFolder indexes;
  const auto open = [&indexes](const std::string& glob) {
    return Dataset::Open("far", {Bucket().Name(Folder() + glob)}, {.index_dir = indexes.path()});
  };
  ASSERT_THAT(open("shard-000[01]*"), IsOk());
  ASSERT_THAT(open("shard-000[23]*"), IsOk());
  AskedSince();
  OpenAll(indexes, kShards);
  EXPECT_EQ(AskedSince().reads_of.count(absl::StrCat("/", kStubBucket, "/", KeyOf(9))), 0u);
  const std::string path = FolderIndexes(indexes).front();
  for (int i = 0; i < 5; ++i) Bucket().Remove(KeyOf(i));
  ASSERT_THAT(open("shard-000[23]*"), IsOk());
  // The index has lost the lines of the files that were removed.
  EXPECT_EQ(ParseFolderIndex(*GetStored(path, 1 << 20))->size(), kShards - 5u);
}

std::string PutImage(StubObjects& objects, const std::string& target, int key) {
  const std::vector<uint8_t> pixels(12 * 8 * 3, static_cast<uint8_t>(key));
  return objects.Put(target, *EncodeJpeg(pixels, 12, 8, 3, {.quality = 90}));
}

auto HidesServer(StubObjects& objects) {
  return AllOf(Not(HasSubstr("127.0.0.1")), Not(HasSubstr(absl::StrCat(objects.server().port()))));
}

TEST(FarDatasetTest, OpenErrorsOfImagesAtAServersRootDoNotNameTheServer) {
  StubObjects objects;
  const std::vector<std::string> names = {PutImage(objects, "/a/1.jpg", 10),
                                          PutImage(objects, "/b/1.jpg", 20)};
  objects.Put("/labels.txt", "a\n");
  const TempFolder indexes;
  const absl::Status no_label =
      Dataset::Open("photos", names, {.index_dir = indexes.path()}).status();
  EXPECT_THAT(no_label, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no line for it")));
  EXPECT_THAT(ReasonForClients(no_label), AllOf(HasSubstr("\"/\""), HidesServer(objects)));

  const absl::Status two_roots =
      Dataset::Open("photos", {names[0], PutImage(objects, "/x/b/1.jpg", 30)}).status();
  EXPECT_THAT(ReasonForClients(two_roots),
              AllOf(HasSubstr("\"/a/1.jpg\" and \"x/b/1.jpg\" lie in"), HidesServer(objects)));
}

TEST(FarDatasetTest, ReadErrorsOfImagesAtAServersRootDoNotNameTheServer) {
  StubObjects objects;
  const std::vector<std::string> names = {PutImage(objects, "/a/1.jpg", 10),
                                          PutImage(objects, "/b/1.jpg", 20)};
  const TempFolder indexes;
  const auto dataset = Dataset::Open("photos", names, {.index_dir = indexes.path()});
  ASSERT_THAT(dataset, IsOk());
  const RecordSource& shard = *(*dataset)->shards()[0];
  EXPECT_EQ(shard.base_name(), "/");
  objects.SetFault([](const StubRequest&) -> std::optional<StubAnswer> {
    return StubAnswer{.bytes = Head(403, {{"content-length", "0"}})};
  });
  AlignedBuffer scratch;
  for (const int64_t record : {0, 7}) {
    const absl::Status error = shard.ReadRecord(record, scratch).status();
    EXPECT_FALSE(error.ok());
    EXPECT_THAT(std::string(error.message()), HidesServer(objects));
  }
  EXPECT_THAT((*dataset)->Where(0), HidesServer(objects));
}

// The bucket answers no request for a shard before it has got kShardsOpenedAtOnce of them. So all
// these shards must be opened at the same time.
TEST(FarDatasetTest, ManyShardsAreOpenedAtATime) {
  PutShards(kShardsOpenedAtOnce);
  Mutex mu;
  CondVar changed;
  int waiting = 0;
  bool all_came = true;
  Bucket().SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (absl::StrContains(request.target, "list-type=2")) return std::nullopt;
    MutexLock lock(mu);
    ++waiting;
    changed.SignalAll();
    while (waiting < kShardsOpenedAtOnce && all_came) {
      all_came = changed.WaitFor(mu, absl::FromChrono(kLongestWait));
    }
    return std::nullopt;
  });
  const TempFolder indexes;
  EXPECT_THAT(Open(indexes), IsOk());
  Bucket().SetFault(nullptr);
  MutexLock lock(mu);
  EXPECT_TRUE(all_came);
}

TEST(FarDatasetTest, TheErrorIsThatOfTheFirstShardThatCannotBeOpened) {
  PutShards(40);
  Bucket().SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    for (const int shard : {11, 12, 30}) {
      if (absl::StrContains(request.target, absl::StrFormat("shard-%05d", shard))) {
        return RefuseInXml(403, "AccessDenied");
      }
    }
    return std::nullopt;
  });
  const TempFolder indexes;
  for (int round = 0; round < 3; ++round) {
    EXPECT_THAT(Open(indexes), StatusIs(absl::StatusCode::kPermissionDenied,
                                        AllOf(HasSubstr("shard-00011.tfrecord"),
                                              Not(HasSubstr("shard-00012.tfrecord")))));
  }
  Bucket().SetFault(nullptr);
  EXPECT_THAT(Open(indexes), IsOk());
}

TEST(FarDatasetTest, AShardThatIsReplacedAfterTheStartIsNoticed) {
  PutShards(3);
  const TempFolder indexes;
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset = Open(indexes);
  ASSERT_THAT(dataset, IsOk());
  PutShards(3);
  AlignedBuffer scratch;
  EXPECT_THAT((*dataset)->ReadRecord(1, scratch),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("\"shard-00001.tfrecord\" was replaced")));
}

}  // namespace
}  // namespace systole
