#include "client/shard_set/shard_set_writer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/compression/compression.h"
#include "core/dataset/dataset.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/shard_formats.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/store_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::unique_ptr<ShardSetWriter> MustCreate(const std::string& prefix,
                                           const ShardSetOptions& options) {
  absl::StatusOr<std::unique_ptr<ShardSetWriter>> writer = ShardSetWriter::Create(prefix, options);
  EXPECT_THAT(writer, IsOk());
  return *std::move(writer);
}

// No two records are the same. Neighbours have different lengths.
std::string RecordOf(int64_t i) { return absl::StrCat("record ", i, std::string(i % 97, 'x')); }

void AddRecords(ShardSetWriter& writer, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    while (!writer.WaitForRoom(absl::FromChrono(kLongestWait))) {
    }
    ASSERT_THAT(writer.Add(RecordOf(i)), IsOk());
  }
}

std::vector<std::string> RecordsIn(const std::string& path) {
  std::vector<std::string> records;
  const auto shard = OpenShard(path, {.index_use = IndexUse::kIgnore});
  EXPECT_THAT(shard, IsOk());
  AlignedBuffer scratch;
  for (int64_t i = 0; i < (*shard)->num_records(); ++i) {
    records.emplace_back(*(*shard)->ReadRecord(i, scratch));
  }
  return records;
}

// The bytes of each file in the folder, by name.
std::map<std::string, std::string> FilesIn(const TempFolder& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& name : folder.List()) files[name] = ReadWholeFile(folder / name);
  return files;
}

TEST(ShardSetWriterTest, DealsRecordsOutToTheShardsInTurn) {
  const TempFolder out;
  const auto writer = MustCreate(out / "sub/a", {.shards = 3, .threads = 2});
  AddRecords(*writer, 8);
  EXPECT_EQ(writer->records(), 8);
  const absl::StatusOr<WrittenSet> written = writer->Finish();
  ASSERT_THAT(written, IsOk());
  ASSERT_THAT(written->shards, SizeIs(3));
  EXPECT_EQ(written->shards[1].path, out / "sub/a-00001-of-00003.tfrecord");
  EXPECT_EQ(written->shards[1].records, 3);
  EXPECT_EQ(written->shards[1].bytes, ReadWholeFile(written->shards[1].path).size());
  EXPECT_EQ(written->manifest_path, out / "sub/a.manifest");
  EXPECT_THAT(RecordsIn(written->shards[0].path),
              ElementsAre(RecordOf(0), RecordOf(3), RecordOf(6)));
  EXPECT_THAT(RecordsIn(written->shards[2].path), ElementsAre(RecordOf(2), RecordOf(5)));
}

TEST(ShardSetWriterTest, ThreadsChangeNoByte) {
  std::vector<std::map<std::string, std::string>> made;
  for (const Compression compression : {Compression::kNone, Compression::kZstd}) {
    for (const int threads : {1, 2, 9}) {
      const TempFolder out;
      const auto writer =
          MustCreate(out / "a", {.shards = 5, .compression = compression, .threads = threads});
      AddRecords(*writer, 30'000);  // More than one chunk for each thread.
      ASSERT_THAT(writer->Finish(), IsOk());
      made.push_back(FilesIn(out));
      ASSERT_THAT(made.back(), SizeIs(6));
    }
  }
  EXPECT_EQ(made[0], made[1]);
  EXPECT_EQ(made[0], made[2]);
  EXPECT_EQ(made[3], made[4]);
  EXPECT_EQ(made[3], made[5]);
  EXPECT_NE(made[0], made[3]);
}

TEST(ShardSetWriterTest, OpeningASetWithAMissingShardFailsAndNamesTheShard) {
  const TempFolder out;
  const auto writer = MustCreate(out / "a", {.shards = 2});
  AddRecords(*writer, 4);
  ASSERT_THAT(writer->Finish(), IsOk());
  std::filesystem::remove(out / "a-00001-of-00002.tfrecord");
  EXPECT_THAT(Dataset::Open("a", {out / "a-*.tfrecord"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("a-00001-of-00002")));
}

TEST(ShardSetWriterTest, WithoutFinishNoShardAppearsAndNothingIsReplaced) {
  const TempFolder out;
  const auto before = out.Write("a.manifest", "of an earlier set");
  auto writer = MustCreate(out / "a", {.shards = 2});
  AddRecords(*writer, 20'000);
  for (const std::string& name : out.List()) {
    EXPECT_THAT(name, Not(testing::EndsWith(".tfrecord")));
  }
  writer.reset();
  EXPECT_THAT(out.List(), ElementsAre("a.manifest"));
  EXPECT_EQ(ReadWholeFile(before), "of an earlier set");
}

TEST(ShardSetWriterTest, ReplacesASetWithAsManyShardsAndRefusesADifferentNumber) {
  const TempFolder out;
  for (int run = 0; run < 2; ++run) {
    const auto writer = MustCreate(out / "a", {.shards = 2});
    AddRecords(*writer, 4 + run);
    ASSERT_THAT(writer->Finish(), IsOk());
  }
  EXPECT_THAT(RecordsIn(out / "a-00000-of-00002.tfrecord"), SizeIs(3));
  EXPECT_THAT(ShardSetWriter::Create(out / "a", {.shards = 3}),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("-of-00002.tfrecord is left")));
  // "a-b" is another prefix.
  EXPECT_THAT(ShardSetWriter::Create(out / "a-b", {.shards = 3}), IsOk());
}

TEST(ShardSetWriterTest, WantsARecordForEachShard) {
  const TempFolder out;
  const auto writer = MustCreate(out / "a", {.shards = 3});
  AddRecords(*writer, 2);
  EXPECT_THAT(writer->Finish(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 examples for 3 shards")));
  EXPECT_THAT(out.List(), IsEmpty());
}

TEST(ShardSetWriterTest, RefusesNumbersOutOfRange) {
  const TempFolder out;
  for (const int64_t shards : {int64_t{0}, int64_t{-1}, int64_t{100'000}}) {
    EXPECT_THAT(ShardSetWriter::Create(out / "a", {.shards = shards}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("99999")));
  }
  EXPECT_THAT(ShardSetWriter::Create(out / "a", {.threads = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("threads is 0")));
  EXPECT_THAT(ShardSetWriter::Create("https://a.example/x", {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, _));
}

TEST(ShardSetWriterTest, AShardThatCannotBeWrittenIsAnErrorOfAddAndFinish) {
  const TempFolder out;
  // There is a folder that has the name of the shard.
  std::filesystem::create_directories(out / "a-00000-of-00001.tfrecord");
  const auto writer = MustCreate(out / "a", {});
  absl::Status added;
  while (added.ok()) {
    writer->WaitForRoom(absl::ZeroDuration());
    added = writer->Add(std::string(1 << 20, 'x'));
  }
  EXPECT_THAT(added, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a-00000")));
  EXPECT_TRUE(writer->WaitForRoom(absl::InfiniteDuration()));
  EXPECT_EQ(writer->Finish().status(), added);
}

TEST(ShardSetWriterTest, AnInterruptedFinishLeavesNothing) {
  const TempFolder out;
  const auto writer = MustCreate(out / "a", {.shards = 2});
  AddRecords(*writer, 10);
  InterruptFlag unwanted;
  unwanted.Raise();
  const InterruptScope scope(unwanted);
  EXPECT_THAT(writer->Finish(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("no shard of this run is left")));
  EXPECT_THAT(out.List(), IsEmpty());
}

StubBucket& Bucket() { return SignedBucketOfProcess(); }

std::vector<std::string> NamesIn(const std::string& folder) {
  const auto there = StoreOf(folder).value()->ListFolder(folder);
  std::vector<std::string> names;
  if (absl::IsNotFound(there.status())) return names;
  EXPECT_THAT(there, IsOk());
  for (const std::string& path : *there) names.emplace_back(BaseName(path));
  std::sort(names.begin(), names.end());
  return names;
}

TEST(ShardSetWriterTest, WritesTheSameRecordsToABucketAsToAFolder) {
  const TempFolder here;
  const auto local = MustCreate(here / "a", {.shards = 2, .compression = Compression::kGzip});
  AddRecords(*local, 100);
  ASSERT_THAT(local->Finish(), IsOk());
  const auto far = MustCreate(Bucket().Name("set/a"),
                              {.shards = 2, .compression = Compression::kGzip, .threads = 2});
  AddRecords(*far, 100);
  const absl::StatusOr<WrittenSet> written = far->Finish();
  ASSERT_THAT(written, IsOk());
  EXPECT_THAT(NamesIn(Bucket().Name("set/")),
              ElementsAre("a-00000-of-00002.tfrecord", "a-00001-of-00002.tfrecord", "a.manifest"));
  for (const ShardCount& shard : written->shards) {
    EXPECT_EQ(RecordsIn(shard.path), RecordsIn(here / std::string(BaseName(shard.path))));
  }
}

TEST(ShardSetWriterTest, IfABucketRefusesAShardNoShardOfTheSetIsLeft) {
  Bucket().SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method != "PUT" || !absl::StrContains(request.target, "r-00001")) {
      return std::nullopt;
    }
    return Bodiless(request, RefuseInXml(403, "AccessDenied"));
  });
  const auto writer = MustCreate(Bucket().Name("refused/r"), {.shards = 2});
  AddRecords(*writer, 10);
  EXPECT_THAT(writer->Finish(), StatusIs(absl::StatusCode::kPermissionDenied,
                                         AllOf(HasSubstr("r-00001"), Not(HasSubstr("SECRET")))));
  Bucket().SetFault(nullptr);
  EXPECT_THAT(NamesIn(Bucket().Name("refused/")), IsEmpty());
}

TEST(ShardSetWriterTest, MoreThanOneHundredShardsInABucketAreRefused) {
  EXPECT_THAT(ShardSetWriter::Create(Bucket().Name("many/m"), {.shards = 101}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 100 in a bucket")));
}

}  // namespace
}  // namespace systole
