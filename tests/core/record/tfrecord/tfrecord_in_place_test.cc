// Tests records that are read in place, in the mapped file. Payloads and errors must be the same as
// if the records were copied. If the file is cut or rewritten during a read, or if its storage
// fails, records get errors, and the process goes on.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/record/shard_formats.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/must_open.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

// Makes four records of 10,000 bytes each, so that each has pages of its own.
ShardBuilder FourRecords() {
  ShardBuilder builder;
  for (const char c : {'a', 'b', 'c', 'd'}) builder.Add(std::string(10'000, c));
  return builder;
}

// Reads `records`. Returns a text for each call of the callback: "PLACE:" with the payload's first
// byte or the error. `ended` gets the result of ReadRecords(). If `ended` is null, this result must
// be OK.
std::vector<std::string> Calls(const RecordSource& shard, const std::vector<int64_t>& records,
                               RecordBytes bytes, absl::Status* ended = nullptr) {
  std::vector<std::string> calls;
  AlignedBuffer scratch;
  const absl::Status status = shard.ReadRecords(
      records, bytes, /*max_read_bytes=*/1 << 20, scratch,
      [&](size_t place, absl::StatusOr<absl::string_view> payload) {
        calls.push_back(absl::StrCat(
            place, ":",
            payload.ok() ? std::string(payload->substr(0, 1)) : payload.status().ToString()));
        return absl::OkStatus();
      });
  if (ended != nullptr) {
    *ended = status;
  } else {
    EXPECT_THAT(status, IsOk());
  }
  return calls;
}

TEST(ReadInPlaceTest, InPlaceReadsCopyNothingAndCopiedReadsFillTheBuffer) {
  const TempFolder folder;
  FourRecords().WriteTo(folder / "a.tfrecord");
  const std::unique_ptr<RecordSource> shard = MustOpen(folder / "a.tfrecord");
  for (const RecordBytes bytes : {RecordBytes::kInPlace, RecordBytes::kCopied}) {
    EXPECT_THAT(Calls(*shard, {2, 0, 0, 3}, bytes), ElementsAre("0:c", "1:a", "2:a", "3:d"));
  }
  AlignedBuffer scratch;
  const auto ignore = [](size_t, absl::StatusOr<absl::string_view>) { return absl::OkStatus(); };
  EXPECT_THAT(shard->ReadRecords({1}, RecordBytes::kInPlace, 0, scratch, ignore), IsOk());
  EXPECT_EQ(scratch.size(), 0);  // Nothing was copied.
  EXPECT_THAT(shard->ReadRecords({1}, RecordBytes::kCopied, 0, scratch, ignore), IsOk());
  EXPECT_GT(scratch.size(), 10'000);
}

TEST(ReadInPlaceTest, PrefetchDoesNotChangeTheRecordsRead) {
  const TempFolder folder;
  FourRecords().WriteTo(folder / "a.tfrecord");
  const std::unique_ptr<RecordSource> file = MustOpen(folder / "a.tfrecord");
  const absl::StatusOr<TfRecordShard> copy =
      TfRecordShard::Create(std::make_unique<MemorySource>(ReadWholeFile(folder / "a.tfrecord")));
  ASSERT_THAT(copy, IsOk());
  for (const RecordSource* shard :
       {static_cast<const RecordSource*>(file.get()), static_cast<const RecordSource*>(&*copy)}) {
    for (int i = 0; i < 2; ++i) {  // The first read maps the file.
      for (const int64_t record : {0, 1, 2, 3}) shard->Prefetch(record);
      EXPECT_THAT(Calls(*shard, {3, 1}, RecordBytes::kInPlace), ElementsAre("0:d", "1:b"));
    }
  }
}

TEST(ReadInPlaceTest, InPlaceReadsReportDamageAndLimitsLikeCopiedReads) {
  const TempFolder folder;
  const std::string path = folder / "a.tfrecord";
  FourRecords().Add(std::string(20'000, 'e')).WriteTo(path);
  const std::unique_ptr<RecordSource> before = MustOpen(path);  // Writes an index without damage.
  std::string bytes = ReadWholeFile(path);
  bytes = WithFlippedBit(std::move(bytes), 8 * (1 * 10'016 + 3));      // In record b's length.
  bytes = WithFlippedBit(std::move(bytes), 8 * (2 * 10'016 + 5'000));  // In record c's payload.
  const std::filesystem::file_time_type written = std::filesystem::last_write_time(path);
  folder.Write("a.tfrecord", bytes);
  std::filesystem::last_write_time(path, written);
  const std::unique_ptr<RecordSource> shard = MustOpen(path, {.max_record_bytes = 15'000});
  const std::vector<std::string> calls = Calls(*shard, {0, 1, 2, 3, 4}, RecordBytes::kInPlace);
  EXPECT_THAT(calls,
              ElementsAre("0:a", AllOf(HasSubstr("DATA_LOSS"), HasSubstr("byte offset 10016")),
                          AllOf(HasSubstr("DATA_LOSS"), HasSubstr("CRC of the payload")), "3:d",
                          AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("limit is 15000"))));
  EXPECT_EQ(calls, Calls(*shard, {0, 1, 2, 3, 4}, RecordBytes::kCopied));
  AlignedBuffer scratch;
  EXPECT_THAT(shard->ReadRecords(
                  {5}, RecordBytes::kInPlace, 0, scratch,
                  [](size_t, absl::StatusOr<absl::string_view>) { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no record 5")));
}

TEST(ReadInPlaceTest, AnErrorOfTheCallbackEndsTheRead) {
  const TempFolder folder;
  FourRecords().WriteTo(folder / "a.tfrecord");
  const std::unique_ptr<RecordSource> shard = MustOpen(folder / "a.tfrecord");
  AlignedBuffer scratch;
  int calls = 0;
  EXPECT_THAT(shard->ReadRecords({0, 1, 2}, RecordBytes::kInPlace, 0, scratch,
                                 [&](size_t place, absl::StatusOr<absl::string_view>) {
                                   ++calls;
                                   return place == 1 ? absl::CancelledError("enough")
                                                     : absl::OkStatus();
                                 }),
              StatusIs(absl::StatusCode::kCancelled, "enough"));
  EXPECT_EQ(calls, 2);
}

TEST(ReadInPlaceTest, ShardCutBeforeARecordIsReadIsFailedPrecondition) {
  const TempFolder folder;
  const std::string path = folder / "a.tfrecord";
  FourRecords().WriteTo(path);
  const std::unique_ptr<RecordSource> shard = MustOpen(path);
  EXPECT_THAT(Calls(*shard, {3}, RecordBytes::kInPlace), ElementsAre("0:d"));
  std::filesystem::resize_file(path, 10'016);
  const auto resized = AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("was resized from 40064"));
  // The first call reads the mapping behind the file's new end. This read fails, and the mapping is
  // marked as failed, so the second call does not use the mapping. Both calls end at record 2,
  // because each further record would get the same error.
  for (int i = 0; i < 2; ++i) {
    absl::Status ended;
    EXPECT_THAT(Calls(*shard, {0, 2, 3}, RecordBytes::kInPlace, &ended),
                ElementsAre("0:a", AllOf(HasSubstr("1:"), resized)));
    EXPECT_THAT(ended, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was resized")));
  }
}

// Reads records 0, 1 and 2. For record 1, the callback cuts the file to 0 bytes, reads the payload,
// which is now zeros, calls `and_then` and returns `said`. `called` gets the place of each call.
absl::Status ReadWhileCut(const RecordSource& shard, const std::string& path,
                          const std::function<void()>& and_then, std::vector<size_t>& called,
                          const absl::Status& said = absl::OkStatus()) {
  AlignedBuffer scratch;
  return shard.ReadRecords({0, 1, 2}, RecordBytes::kInPlace, 0, scratch,
                           [&](size_t place, absl::StatusOr<absl::string_view> payload) {
                             called.push_back(place);
                             if (place == 1) {
                               std::filesystem::resize_file(path, 0);
                               EXPECT_EQ(std::string(*payload), std::string(10'000, '\0'));
                               and_then();
                               return said;
                             }
                             return absl::OkStatus();
                           });
}

TEST(ReadInPlaceTest, ShardCutDuringTheCallbackIsFailedPrecondition) {
  const TempFolder folder;
  const std::string path = folder / "a.tfrecord";
  FourRecords().WriteTo(path);
  const std::unique_ptr<RecordSource> shard = MustOpen(path);
  std::vector<size_t> called;
  EXPECT_THAT(
      ReadWhileCut(
          *shard, path, [] {}, called),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was resized from 40064 to 0")));
  EXPECT_THAT(called, ElementsAre(0, 1));
}

// The callback cuts the file and puts it back. So the read sees what a device that fails for a
// moment would cause: some bytes cannot be read, but the file is unchanged.
TEST(ReadInPlaceTest, AStorageFailureDuringTheCallbackIsUnavailableAndCanBeRetried) {
  const TempFolder folder;
  const std::string path = folder / "a.tfrecord";
  FourRecords().WriteTo(path);
  const std::string bytes = ReadWholeFile(path);
  const std::filesystem::file_time_type written = std::filesystem::last_write_time(path);
  const std::unique_ptr<RecordSource> shard = MustOpen(path);
  std::vector<size_t> called;
  const auto put_back = [&] {
    folder.Write("a.tfrecord", bytes);  // The inode stays.
    std::filesystem::last_write_time(path, written);
  };
  EXPECT_THAT(ReadWhileCut(*shard, path, put_back, called),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("shard \"a.tfrecord\", record 1 at byte offset 10016"),
                             HasSubstr("storage"), HasSubstr("try again"))));
  EXPECT_THAT(called, ElementsAre(0, 1));
  EXPECT_THAT(Calls(*shard, {0, 1, 2}, RecordBytes::kInPlace), ElementsAre("0:a", "1:b", "2:c"));
}

// A callback that ends the read may have got zeros in place of the bytes that could not be read. So
// the error of the storage must be reported in place of the callback's own error.
TEST(ReadInPlaceTest, AStorageFailureIsReportedEvenIfTheCallbackEndsTheRead) {
  const TempFolder folder;
  const std::string path = folder / "a.tfrecord";
  FourRecords().WriteTo(path);
  const std::string bytes = ReadWholeFile(path);
  const std::filesystem::file_time_type written = std::filesystem::last_write_time(path);
  const std::unique_ptr<RecordSource> shard = MustOpen(path);
  std::vector<size_t> called;
  const auto put_back = [&] {
    folder.Write("a.tfrecord", bytes);
    std::filesystem::last_write_time(path, written);
  };
  EXPECT_THAT(ReadWhileCut(*shard, path, put_back, called, absl::CancelledError("enough")),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("record 1 at byte offset 10016")));
  EXPECT_THAT(called, ElementsAre(0, 1));
}

// Expects the payload of one of FourRecords(). While it is read, some of its bytes may turn into
// those that the writer of the next test puts there, and into zeros where the file is cut.
void ExpectOneRecord(absl::string_view payload) {
  EXPECT_EQ(payload.size(), 10'000u);
  const std::string copy(payload);  // Does not change any more.
  std::set<char> letters(copy.begin(), copy.end());
  letters.erase('\x7f');
  letters.erase('\0');
  EXPECT_LE(letters.size(), 1u);
  EXPECT_THAT(letters, Each(AllOf(Ge('a'), Le('d'))));
}

TEST(ReadInPlaceTest, AShardRewrittenDuringReadsGivesWholeRecordsOrExpectedErrors) {
  const TempFolder folder;
  const std::string path = folder / "a.tfrecord";
  FourRecords().WriteTo(path);
  const std::string good = ReadWholeFile(path);
  const std::string other(good.size(), '\x7f');
  MustOpen(path);  // Writes the index.
  const struct timespec times[2] = {{.tv_sec = 1'000'000'000}, {.tv_sec = 1'000'000'000}};
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    const int fd = ::open(path.c_str(), O_RDWR);
    for (uint64_t i = 0; !stop; ++i) {
      const uint64_t at = i * 7919 % good.size();
      const std::string& bytes = i % 2 == 0 ? other : good;
      EXPECT_GE(::pwrite(fd, bytes.data() + at, std::min<uint64_t>(5'000, good.size() - at),
                         static_cast<off_t>(at)),
                0);
      EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(at)), 0);
      EXPECT_EQ(::pwrite(fd, good.data(), good.size(), 0), static_cast<ssize_t>(good.size()));
      ::futimens(fd, times);  // Keeps the index valid.
    }
    ::close(fd);
  });
  AlignedBuffer scratch;
  for (int round = 0; round < 300; ++round) {
    absl::StatusOr<std::unique_ptr<RecordSource>> shard = OpenShard(path);
    if (!shard.ok()) continue;
    std::vector<int64_t> records(static_cast<size_t>((*shard)->num_records()));
    for (size_t i = 0; i < records.size(); ++i) records[i] = static_cast<int64_t>(i);
    const absl::Status read =
        (*shard)->ReadRecords(records, RecordBytes::kInPlace, 1 << 20, scratch,
                              [&](size_t, absl::StatusOr<absl::string_view> payload) {
                                if (!payload.ok()) {
                                  EXPECT_TRUE(absl::IsDataLoss(payload.status()) ||
                                              absl::IsFailedPrecondition(payload.status()))
                                      << payload.status();
                                  return absl::OkStatus();
                                }
                                ExpectOneRecord(*payload);
                                return absl::OkStatus();
                              });
    EXPECT_TRUE(read.ok() || absl::IsUnavailable(read) || absl::IsFailedPrecondition(read)) << read;
  }
  stop = true;
  writer.join();
  const auto after = OpenShard(path, {.index_use = IndexUse::kRebuild});
  ASSERT_THAT(after, IsOk());
  EXPECT_THAT(Calls(**after, {0, 1, 2, 3}, RecordBytes::kInPlace),
              ElementsAre("0:a", "1:b", "2:c", "3:d"));
}

}  // namespace
}  // namespace systole
