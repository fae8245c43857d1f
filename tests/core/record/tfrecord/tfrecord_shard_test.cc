#include "core/record/tfrecord/tfrecord_shard.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/record/shard_formats.h"
#include "core/record/tfrecord/index_file.h"
#include "core/record/tfrecord/scan_shard.h"
#include "core/storage/memory_source.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/must_open.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/error_source.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A shard, and the ErrorSource that the shard owns and reads.
struct Faulty {
  ErrorSource* source;
  TfRecordShard shard;
};
Faulty MakeFaulty(const std::string& bytes, const ShardOptions& options = {}) {
  auto source = std::make_unique<ErrorSource>(bytes, "dir/f.tfrecord");
  ErrorSource* const raw = source.get();
  absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(std::move(source), options);
  EXPECT_THAT(shard, IsOk());
  raw->ResetCounts();
  return {.source = raw, .shard = *std::move(shard)};
}

TEST(TfRecordShardTest, ReadsRecordsOfAFileInAnyOrderIntoOneBuffer) {
  const TempFolder folder;
  const std::string large(100'000, 'x');
  ShardBuilder().Add("abc").Add("").Add(large).Add("defg").WriteTo(folder / "a.tfrecord");
  const std::unique_ptr<RecordSource> shard = MustOpen(folder / "a.tfrecord");
  EXPECT_EQ(shard->num_records(), 4);
  EXPECT_EQ(shard->size_bytes(), 16 * 4 + 100'007u);
  EXPECT_EQ(shard->base_name(), "a.tfrecord");
  EXPECT_EQ(shard->path(), folder / "a.tfrecord");
  EXPECT_EQ(shard->note(), "");
  AlignedBuffer scratch;
  EXPECT_THAT(shard->ReadRecord(3, scratch), IsOkAndHolds(Eq("defg")));
  EXPECT_THAT(shard->ReadRecord(0, scratch), IsOkAndHolds(Eq("abc")));
  EXPECT_THAT(shard->ReadRecord(2, scratch), IsOkAndHolds(Eq(large)));
  EXPECT_THAT(shard->ReadRecord(1, scratch), IsOkAndHolds(Eq("")));
  EXPECT_THAT(folder.List(), ElementsAre("a.tfrecord", "a.tfrecord.idx", "a.tfrecord.idx.hash"));
}

TEST(TfRecordShardTest, EmptyFileIsAShardWithoutRecords) {
  const TempFolder folder;
  const std::unique_ptr<RecordSource> shard = MustOpen(folder.Write("a.tfrecord", ""));
  EXPECT_EQ(shard->num_records(), 0);
  AlignedBuffer scratch;
  EXPECT_THAT(shard->ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 0 records, so there is no record 0")));
}

TEST(TfRecordShardTest, ARecordNumberOutOfRangeIsInvalid) {
  const TfRecordShard shard = MakeFaulty(ShardBuilder().Add("abc").Build()).shard;
  AlignedBuffer scratch;
  for (const int64_t record : {int64_t{-1}, int64_t{1}, std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::min()}) {
    const auto no_record = StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("has 1 records, so there is no record"));
    EXPECT_THAT(shard.ReadRecord(record, scratch), no_record);
    EXPECT_THAT(shard.ReadRecords(
                    {record}, RecordBytes::kCopied, 100, scratch,
                    [](size_t, absl::StatusOr<absl::string_view>) { return absl::OkStatus(); }),
                no_record);
  }
}

TEST(TfRecordShardTest, MissingFileIsNotFoundAndBadOptionsAreInvalid) {
  const TempFolder folder;
  EXPECT_THAT(OpenShard(folder / "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder / "none")));
  const auto invalid =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_record_bytes is -1"));
  EXPECT_THAT(OpenShard(folder / "none", {.max_record_bytes = -1}), invalid);
  EXPECT_THAT(TfRecordShard::Create(std::make_unique<MemorySource>(""), {.max_record_bytes = -1}),
              invalid);
}

TEST(TfRecordShardTest, OneRecordIsOneRead) {
  const Faulty faulty = MakeFaulty(ShardBuilder().Add("abc").Add("defg").Build());
  AlignedBuffer scratch;
  EXPECT_THAT(faulty.shard.ReadRecord(1, scratch), IsOkAndHolds(Eq("defg")));
  EXPECT_EQ(faulty.source->num_reads(), 1);
  EXPECT_EQ(faulty.source->bytes_read(), 20u);
}

TEST(TfRecordShardTest, PayloadOverTheLimitIsResourceExhaustedAndNotRead) {
  const Faulty faulty = MakeFaulty(ShardBuilder().Add("12345678").Add("123456789").Add("x").Build(),
                                   {.max_record_bytes = 8});
  AlignedBuffer scratch;
  EXPECT_THAT(faulty.shard.ReadRecord(0, scratch), IsOkAndHolds(Eq("12345678")));
  EXPECT_THAT(faulty.shard.ReadRecord(1, scratch),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("shard \"f.tfrecord\", record 1 at byte offset 24"),
                             HasSubstr("has 9 bytes"), HasSubstr("limit is 8"))));
  EXPECT_EQ(faulty.source->bytes_read(), 24 + 12u);  // Of record 1, only the header.
  EXPECT_THAT(faulty.shard.ReadRecord(2, scratch), IsOkAndHolds(Eq("x")));
}

TEST(TfRecordShardTest, DamageLargerThanTheLimitIsDataLossNotALargeRecord) {
  const TfRecordShard noise = MakeFaulty(std::string(1000, 'x'), {.max_record_bytes = 8}).shard;
  AlignedBuffer scratch;
  EXPECT_THAT(noise.ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("CRC of the length field")));
  const TfRecordShard cut =
      MakeFaulty(ShardBuilder().AddHeader(2000).AddRaw(std::string(99, 'x')).Build(),
                 {.max_record_bytes = 8})
          .shard;
  EXPECT_THAT(cut.ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("announces 2000 bytes")));
  EXPECT_EQ(scratch.size(), 0);
}

TEST(TfRecordShardTest, WrongBoundariesInATrustedIndexAreDataLossAtARead) {
  // The index has the shard's two records as one record. The hash file confirms the index, so the
  // shard is opened with it.
  const TempFolder folder;
  ShardBuilder().Add("abc").Add("defg").WriteTo(folder / "a.tfrecord");
  folder.Write("a.tfrecord.idx", "0 39\n");
  const absl::StatusOr<StoredState> state = StatStored(folder / "a.tfrecord");
  ASSERT_THAT(state, IsOk());
  folder.Write("a.tfrecord.idx.hash", HashFileText(state->identity, RecordIndex({39}), 1));
  const std::unique_ptr<RecordSource> shard = MustOpen(folder / "a.tfrecord");
  AlignedBuffer scratch;
  EXPECT_THAT(shard->ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("announces 3 bytes of payload, but the index says 23"),
                             HasSubstr("delete the index"))));
}

TEST(TfRecordShardTest, AForeignIndexWithWrongBoundariesIsMadeAnew) {
  const TempFolder folder;
  ShardBuilder().Add("abc").Add("defg").WriteTo(folder / "a.tfrecord");
  folder.Write("a.tfrecord.idx", "0 39\n");
  const std::unique_ptr<RecordSource> shard = MustOpen(folder / "a.tfrecord");
  EXPECT_EQ(shard->num_records(), 2);
  EXPECT_THAT(shard->note(), HasSubstr("1 of its records have damaged framing"));
}

TEST(TfRecordShardTest, ContentHashIsTheSameFromAScanFromFilesAndInMemory) {
  const TempFolder folder;
  const ShardBuilder builder = ShardBuilder().Add("abc").AddRaw("damage").Add("defg").Add("hi");
  builder.WriteTo(folder / "a.tfrecord");
  const uint64_t scanned = MustOpen(folder / "a.tfrecord")->content_hash();
  const uint64_t from_files = MustOpen(folder / "a.tfrecord")->content_hash();
  std::filesystem::remove(folder / "a.tfrecord.idx.hash");
  const uint64_t from_index = MustOpen(folder / "a.tfrecord")->content_hash();
  absl::StatusOr<TfRecordShard> memory =
      TfRecordShard::Create(std::make_unique<MemorySource>(builder.Build()));
  ASSERT_THAT(memory, IsOk());
  EXPECT_EQ(from_files, scanned);
  EXPECT_EQ(from_index, scanned);
  EXPECT_EQ(memory->content_hash(), scanned);
}

TEST(TfRecordShardTest, DamageIsFoundAgainThroughTheIndexFile) {
  const TempFolder folder;
  ShardBuilder().Add("abc").AddRaw("damage").Add("defg").Add("hi").WriteTo(folder / "a.tfrecord");
  MustOpen(folder / "a.tfrecord");
  const std::unique_ptr<RecordSource> shard =
      MustOpen(folder / "a.tfrecord");  // From the index file.
  EXPECT_EQ(shard->num_damaged(), 1);
  AlignedBuffer scratch;
  EXPECT_EQ(shard->num_records(), 4);
  EXPECT_THAT(shard->ReadRecord(0, scratch), IsOkAndHolds(Eq("abc")));
  EXPECT_THAT(shard->ReadRecord(1, scratch),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("\"a.tfrecord\", record 1 at byte offset 19"),
                             Not(HasSubstr(folder.path())))));
  EXPECT_THAT(shard->ReadRecord(2, scratch), IsOkAndHolds(Eq("defg")));
}

TEST(TfRecordShardTest, ReplacedFileStillGivesTheOldBytesAndIsNoticed) {
  const TempFolder folder;
  ShardBuilder().Add("abc").WriteTo(folder / "a.tfrecord");
  const std::unique_ptr<RecordSource> shard = MustOpen(folder / "a.tfrecord");
  EXPECT_THAT(shard->CheckUnchanged(), IsOk());
  ShardBuilder().Add("xyz").WriteTo(folder / "new");
  std::filesystem::rename(folder / "new", folder / "a.tfrecord");
  AlignedBuffer scratch;
  EXPECT_THAT(shard->ReadRecord(0, scratch), IsOkAndHolds(Eq("abc")));
  EXPECT_THAT(shard->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("a.tfrecord"), HasSubstr("was replaced"))));
}

TEST(TfRecordShardTest, BytesThatFailBecauseTheFileChangedAreFailedPreconditionNotDamage) {
  const TempFolder folder;
  ShardBuilder().Add("abc").Add("defg").WriteTo(folder / "a.tfrecord");
  const std::unique_ptr<RecordSource> shard = MustOpen(folder / "a.tfrecord");
  AlignedBuffer scratch;
  std::filesystem::resize_file(folder / "a.tfrecord", 25);
  EXPECT_THAT(shard->ReadRecord(1, scratch),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was resized")));
  EXPECT_THAT(shard->ReadRecord(0, scratch), IsOkAndHolds(Eq("abc")));
}

TEST(TfRecordShardTest, ShortReadOfASourceThatDidNotChangeIsDataLoss) {
  const Faulty faulty = MakeFaulty(ShardBuilder().Add("abc").Add("defg").Build());
  faulty.source->CutAt(25);
  AlignedBuffer scratch;
  EXPECT_THAT(faulty.shard.ReadRecord(1, scratch),
              StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("record 1 at byte offset 19"),
                                                          HasSubstr("after 6 of the 20 bytes"))));
}

TEST(TfRecordShardTest, ErrorOfTheSourceIsPassedOnAndConcernsItsRecordOnly) {
  const Faulty faulty = MakeFaulty(ShardBuilder().Add("abc").Add("defg").Build());
  faulty.source->FailAt(25, absl::UnavailableError("store is away"));
  AlignedBuffer scratch;
  EXPECT_THAT(faulty.shard.ReadRecord(1, scratch),
              StatusIs(absl::StatusCode::kUnavailable, "store is away"));
  EXPECT_THAT(faulty.shard.ReadRecord(0, scratch), IsOkAndHolds(Eq("abc")));
}

TEST(TfRecordShardTest, SourceErrorsWithACodeOfRecordErrorsBecomeUnavailable) {
  for (const auto& error :
       {absl::ResourceExhaustedError("no buffer space"), absl::DataLossError("no buffer space")}) {
    const Faulty faulty = MakeFaulty(ShardBuilder().Add("abc").Add("defg").Build());
    const auto unavailable = StatusIs(absl::StatusCode::kUnavailable,
                                      AllOf(HasSubstr("no buffer space"), HasSubstr("try again")));
    AlignedBuffer scratch;
    faulty.source->FailAt(25, error);
    EXPECT_THAT(faulty.shard.ReadRecord(1, scratch), unavailable);
    faulty.source->FailAt(25, absl::OkStatus());
    faulty.source->CutAt(25);
    faulty.source->SetChanged(error);  // The check for a change fails, too.
    EXPECT_THAT(faulty.shard.ReadRecord(1, scratch), unavailable);
    EXPECT_THAT(faulty.shard.CheckUnchanged(), unavailable);
  }
  // The code is also kUnavailable if the source fails at the header of a record that is too large.
  const Faulty faulty = MakeFaulty(ShardBuilder().Add("abc").Build(), {.max_record_bytes = 1});
  faulty.source->FailAt(0, absl::ResourceExhaustedError("no buffer space"));
  AlignedBuffer scratch;
  EXPECT_THAT(faulty.shard.ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no buffer space")));
}

// The calls of ReadRecords' callback, as "place:payload" or "place:!code".
std::vector<std::string> ReadAll(const RecordSource& shard, const std::vector<int64_t>& records,
                                 int64_t max_read_bytes) {
  std::vector<std::string> calls;
  AlignedBuffer scratch;
  EXPECT_THAT(
      shard.ReadRecords(records, RecordBytes::kCopied, max_read_bytes, scratch,
                        [&](size_t place, absl::StatusOr<absl::string_view> payload) {
                          calls.push_back(absl::StrCat(
                              place, ":",
                              payload.ok() ? std::string(*payload)
                                           : absl::StrCat("!", absl::StatusCodeToString(
                                                                   payload.status().code()))));
                          return absl::OkStatus();
                        }),
      IsOk());
  return calls;
}

TEST(ReadRecordsTest, NeighboursShareAReadWithinTheBound) {
  const Faulty faulty =
      MakeFaulty(ShardBuilder().Add("a").Add("b").Add("c").Add("d").Build());  // Each is 17 bytes.
  EXPECT_THAT(ReadAll(faulty.shard, {0, 1, 2, 3}, 1000), ElementsAre("0:a", "1:b", "2:c", "3:d"));
  EXPECT_EQ(faulty.source->num_reads(), 1);
  faulty.source->ResetCounts();
  EXPECT_THAT(ReadAll(faulty.shard, {0, 1, 2, 3}, 34), ElementsAre("0:a", "1:b", "2:c", "3:d"));
  EXPECT_EQ(faulty.source->num_reads(), 2);
  faulty.source->ResetCounts();
  EXPECT_THAT(ReadAll(faulty.shard, {0, 1, 2, 3}, 0), ElementsAre("0:a", "1:b", "2:c", "3:d"));
  EXPECT_EQ(faulty.source->num_reads(), 4);
}

TEST(ReadRecordsTest, BytesBetweenRequestedRecordsAreNotRead) {
  const Faulty faulty =
      MakeFaulty(ShardBuilder().Add("a").Add(std::string(500, 'b')).Add("c").Build());
  EXPECT_THAT(ReadAll(faulty.shard, {0, 2}, 1000), ElementsAre("0:a", "1:c"));
  EXPECT_EQ(faulty.source->bytes_read(), 2 * 17u);
}

TEST(ReadRecordsTest, RecordsComeInTheRequestedOrderWithRepetitions) {
  const TfRecordShard shard = MakeFaulty(ShardBuilder().Add("a").Add("b").Add("c").Build()).shard;
  EXPECT_THAT(ReadAll(shard, {2, 0, 1, 1, 0}, 1000),
              ElementsAre("0:c", "1:a", "2:b", "3:b", "4:a"));
  EXPECT_THAT(ReadAll(shard, {}, 1000), IsEmpty());
}

TEST(ReadRecordsTest, DamagedAndTooLargeRecordsDoNotAffectTheirNeighbours) {
  const std::string bytes =
      ShardBuilder().Add("a").Add("b").Add("c").Add("too long").Add("e").Build();
  const TfRecordShard shard =
      MakeFaulty(WithFlippedBit(bytes, 8 * 29), {.max_record_bytes = 4}).shard;
  EXPECT_THAT(ReadAll(shard, {0, 1, 2, 3, 4}, 1000),
              ElementsAre("0:a", "1:!DATA_LOSS", "2:c", "3:!RESOURCE_EXHAUSTED", "4:e"));
}

TEST(ReadRecordsTest, AFailedSharedReadCostsOnlyTheRecordThatCannotBeRead) {
  const std::pair<absl::Status, const char*> kErrors[] = {
      {absl::ErrnoToStatus(EIO, "bad sector"), "1:!UNKNOWN"},
      {absl::ErrnoToStatus(ENODATA, "bad sector"), "1:!UNAVAILABLE"},
      {absl::ErrnoToStatus(ENOMEM, "no memory"), "1:!UNAVAILABLE"},
      {absl::DataLossError("another range came"), "1:!UNAVAILABLE"},
  };
  for (const auto& [error, call] : kErrors) {
    const Faulty faulty = MakeFaulty(ShardBuilder().Add("a").Add("b").Add("c").Build());
    faulty.source->FailAt(20, error);
    EXPECT_THAT(ReadAll(faulty.shard, {0, 1, 2}, 1000), ElementsAre("0:a", call, "2:c")) << error;
  }
}

// If the storage cannot be reached, each read may take minutes of retries.
TEST(ReadRecordsTest, AnOutageEndsReadRecordsAfterOneRead) {
  for (const absl::Status& outage :
       {absl::UnavailableError("away"), absl::DeadlineExceededError("away"),
        absl::FailedPreconditionError("replaced"), absl::PermissionDeniedError("run out"),
        absl::CancelledError("not wanted")}) {
    for (const int64_t max_read_bytes : {0, 1000}) {
      for (const std::vector<int64_t>& records :
           {std::vector<int64_t>{0, 1, 2}, std::vector<int64_t>{2, 0, 1}}) {
        const Faulty faulty = MakeFaulty(ShardBuilder().Add("a").Add("b").Add("c").Build());
        faulty.source->FailAll(outage);
        std::vector<size_t> places;
        AlignedBuffer scratch;
        EXPECT_EQ(faulty.shard.ReadRecords(
                      records, RecordBytes::kCopied, max_read_bytes, scratch,
                      [&](size_t place, const absl::StatusOr<absl::string_view>& payload) {
                        places.push_back(place);
                        EXPECT_EQ(payload.status(), outage);
                        return absl::OkStatus();
                      }),
                  outage);
        EXPECT_THAT(places, ElementsAre(0));
        EXPECT_EQ(faulty.source->num_reads(), 1);
        EXPECT_EQ(faulty.source->num_checks(), 0);
      }
    }
  }
}

TEST(ReadRecordsTest, AnOutageWhileDamageIsCheckedEndsReadRecords) {
  const std::string bytes = ShardBuilder().Add("a").Add("b").Add("c").Add("d").Build();
  for (const int64_t max_read_bytes : {0, 1000}) {
    const Faulty faulty = MakeFaulty(WithFlippedBit(bytes, 8 * 29));  // In record 1.
    faulty.source->SetChanged(absl::UnavailableError("away"));
    std::vector<size_t> places;
    AlignedBuffer scratch;
    EXPECT_THAT(
        faulty.shard.ReadRecords({0, 1, 2, 3}, RecordBytes::kCopied, max_read_bytes, scratch,
                                 [&](size_t place, absl::StatusOr<absl::string_view>) {
                                   places.push_back(place);
                                   return absl::OkStatus();
                                 }),
        StatusIs(absl::StatusCode::kUnavailable, "away"));
    EXPECT_THAT(places, ElementsAre(0, 1));
    EXPECT_EQ(faulty.source->num_checks(), 1);
  }
}

TEST(ReadRecordsTest, AnErrorOfTheCallbackEndsTheRead) {
  const TfRecordShard shard = MakeFaulty(ShardBuilder().Add("a").Add("b").Add("c").Build()).shard;
  for (const int64_t max_read_bytes : {0, 1000}) {
    int calls = 0;
    AlignedBuffer scratch;
    EXPECT_THAT(shard.ReadRecords({0, 1, 2}, RecordBytes::kCopied, max_read_bytes, scratch,
                                  [&](size_t place, absl::StatusOr<absl::string_view>) {
                                    ++calls;
                                    return place == 1 ? absl::CancelledError("enough")
                                                      : absl::OkStatus();
                                  }),
                StatusIs(absl::StatusCode::kCancelled, "enough"));
    EXPECT_EQ(calls, 2);
  }
}

TEST(TfRecordShardTest, TheErrorForAShardWithoutReadableRecordsNamesTheCause) {
  const auto check = [](const std::string& bytes) {
    const absl::StatusOr<TfRecordShard> shard =
        TfRecordShard::Create(std::make_unique<MemorySource>(bytes, "dir/a"));
    EXPECT_THAT(shard, IsOk());
    return shard->CheckHoldsRecords();
  };
  const std::string good = ShardBuilder().Add("abc").Add("defg").Build();
  EXPECT_THAT(check(good), IsOk());
  EXPECT_THAT(check(""), IsOk());
  EXPECT_THAT(check(WithFlippedBit(good, 0)), IsOk()) << "one record of two";
  EXPECT_THAT(check(good.substr(0, 30)), IsOk()) << "cut in the second record";
  EXPECT_THAT(
      check(good.substr(0, 10)),
      StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("\"a\""), HasSubstr("cut short"))));
  EXPECT_THAT(check("\x1f\x8b\x08 and more of it"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("compressed with gzip")));
  EXPECT_THAT(check("\xff\xd8\xff\xe0"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("systole pack")));
  EXPECT_THAT(check("hello"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("TFRecord")));
}

}  // namespace
}  // namespace systole
