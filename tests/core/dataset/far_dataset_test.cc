// Opens datasets whose shards are in a bucket: what a start asks of the server, and in what order.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/dataset/dataset.h"
#include "core/example/example_builder.h"
#include "core/record/each_shard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

StubBucket& Bucket() { return UnsignedBucketOfProcess(); }

// The folder of the running test.
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

// The reads of each object since the last call, without those of its first byte. These say how the
// object is, and are repeated after a second.
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

TEST(FarDatasetTest, AStartWithIndexesReadsEachShardsBeginningOnceAndListsTwice) {
  constexpr int kShards = 300;
  PutShards(kShards);
  const TempFolder indexes;
  const absl::StatusOr<std::shared_ptr<Dataset>> first = Open(indexes);
  ASSERT_THAT(first, IsOk());
  ReadsOfObjects();
  const int lists_before = Bucket().lists();
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset = Open(indexes);
  ASSERT_THAT(dataset, IsOk());
  EXPECT_EQ(Bucket().lists() - lists_before, 2);  // For the pattern, and for manifests.
  const std::map<std::string, int> reads = ReadsOfObjects();
  EXPECT_EQ(reads.size(), static_cast<size_t>(kShards));
  int all = 0;
  for (const auto& [target, count] : reads) all += count;
  // The beginning of each, which says its format, and some records, whose features are described.
  EXPECT_LE(all, kShards + 64);
  // The shards are in order, whichever was opened first.
  ASSERT_EQ((*dataset)->num_records(), kShards);
  for (int i = 0; i < kShards; ++i) {
    EXPECT_EQ((*dataset)->shards()[i]->path(), Bucket().Name(KeyOf(i)));
  }
  EXPECT_EQ((*dataset)->fingerprint(), (*first)->fingerprint());
}

// No request for a shard is answered before there is one for each of kShardsOpenedAtOnce shards.
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
