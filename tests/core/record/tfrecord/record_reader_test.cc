#include "core/record/tfrecord/record_reader.h"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/error_source.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

RecordReader MustCreate(const ByteSource& source, const RecordReaderOptions& options = {}) {
  absl::StatusOr<RecordReader> reader = RecordReader::Create(source, options);
  EXPECT_THAT(reader, IsOk());
  return *std::move(reader);
}

// Whether Next() compiles. Next() must not compile on a temporary reader, because Next() returns a
// view into the reader.
template <typename Reader>
concept CanNext = requires(Reader&& reader) {
  std::forward<Reader>(reader).Next();
};
static_assert(CanNext<RecordReader&>);
static_assert(!CanNext<RecordReader>);

TEST(RecordReaderTest, ReadsAShardWrittenByHand) {
  // "" and "abc" as TensorFlow's writer frames them. The CRCs come from a bitwise implementation.
  constexpr unsigned char kShard[] = {
      0,    0,    0,    0,    0, 0, 0, 0, 0x29, 0x03, 0x98, 0x07,                 //
      0xd8, 0xea, 0x82, 0xa2,                                                     //
      3,    0,    0,    0,    0, 0, 0, 0, 0xb0, 0x99, 0x49, 0x0e, 'a', 'b', 'c',  //
      0x6e, 0x57, 0xf1, 0x21};
  const MemorySource source(std::string(reinterpret_cast<const char*>(kShard), sizeof(kShard)));
  RecordReader reader = MustCreate(source);
  EXPECT_THAT(reader.Next(), IsOkAndHolds(Optional(Eq(""))));
  EXPECT_THAT(reader.Next(), IsOkAndHolds(Optional(Eq("abc"))));
  EXPECT_THAT(reader.Next(), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_THAT(reader.Next(), IsOkAndHolds(Eq(std::nullopt)));  // The reader stays at the end.
  EXPECT_EQ(reader.num_read(), 2);
}

TEST(RecordReaderTest, EmptyShardEndsAtOnce) {
  const MemorySource source("");
  RecordReader reader = MustCreate(source);
  EXPECT_THAT(reader.Next(), IsOkAndHolds(Eq(std::nullopt)));
  EXPECT_EQ(reader.num_read(), 0);
}

TEST(RecordReaderTest, RecordsAroundTheReadSizeComeWhole) {
  // The reader reads 4096 bytes at a time. Some frames end just before, at or just after the end of
  // a read. Some frames span several reads.
  ShardBuilder builder;
  std::vector<std::string> payloads;
  for (const size_t size :
       {4080u, 4079u, 1u, 4081u, 0u, 8176u, 100u, 20'000u, 3u, 4096u, 50'000u}) {
    payloads.push_back(std::string(size, static_cast<char>('a' + payloads.size())));
    builder.Add(payloads.back());
  }
  const MemorySource source(builder.Build());
  RecordReader reader = MustCreate(source, {.read_bytes = 4096});
  for (const std::string& payload : payloads) {
    EXPECT_THAT(reader.Next(), IsOkAndHolds(Optional(Eq(payload))));
  }
  EXPECT_THAT(reader.Next(), IsOkAndHolds(Eq(std::nullopt)));
}

TEST(RecordReaderTest, SmallRecordsShareReads) {
  ShardBuilder builder;
  for (int i = 0; i < 1000; ++i) builder.Add("ten bytes!");
  const ErrorSource source(builder.Build());
  RecordReader reader = MustCreate(source, {.read_bytes = 8192});
  for (int i = 0; i < 1000; ++i) EXPECT_THAT(reader.Next(), IsOk());
  EXPECT_LE(source.num_reads(), 5);  // For 26,000 bytes.
}

TEST(RecordReaderTest, TruncatedPayloadIsDataLossNotEnd) {
  const std::string shard = ShardBuilder().Add("abc").Add("defg").Build();
  const MemorySource source(shard.substr(0, shard.size() - 5), "folder/x-00000.tfrecord");
  RecordReader reader = MustCreate(source);
  EXPECT_THAT(reader.Next(), IsOkAndHolds(Optional(Eq("abc"))));
  EXPECT_THAT(reader.Next(), StatusIs(absl::StatusCode::kDataLoss,
                                      AllOf(HasSubstr("shard \"x-00000.tfrecord\", record 1"),
                                            HasSubstr("offset 19"), HasSubstr("announces 4 bytes"),
                                            HasSubstr("3 bytes are left"))));
}

TEST(RecordReaderTest, TruncatedHeaderIsDataLossNotEnd) {
  const std::string shard = ShardBuilder().Add("abc").Add("defg").Build();
  for (size_t left = 1; left < 12; ++left) {
    const MemorySource source(shard.substr(0, 19 + left));
    RecordReader reader = MustCreate(source);
    EXPECT_THAT(reader.Next(), IsOk());
    EXPECT_THAT(reader.Next(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("offset 19")))
        << left;
  }
}

TEST(RecordReaderTest, FirstErrorSticks) {
  const std::string shard = ShardBuilder().Add("abc").Add("defg").Build();
  const MemorySource source(WithFlippedBit(shard, 8 * 12));  // The first payload byte.
  RecordReader reader = MustCreate(source);
  const absl::Status first = reader.Next().status();
  EXPECT_THAT(first,
              StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("record 0 at byte offset 0"),
                                                          HasSubstr("CRC of the payload"))));
  EXPECT_EQ(reader.Next().status(), first);
  EXPECT_EQ(reader.num_read(), 0);
}

TEST(RecordReaderTest, HostileLengthIsDataLossAndAllocatesNothing) {
  for (const uint64_t length : {uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 15}) {
    const MemorySource source(ShardBuilder().AddHeader(length).AddRaw("few bytes").Build());
    RecordReader reader = MustCreate(source);
    EXPECT_THAT(reader.Next(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("9 bytes are left")));
  }
}

TEST(RecordReaderTest, PayloadOverTheLimitIsResourceExhaustedAndAtTheLimitIsRead) {
  const MemorySource source(ShardBuilder().Add("12345678").Add("123456789").Build());
  RecordReader reader = MustCreate(source, {.max_record_bytes = 8});
  EXPECT_THAT(reader.Next(), IsOkAndHolds(Optional(Eq("12345678"))));
  EXPECT_THAT(reader.Next(), StatusIs(absl::StatusCode::kResourceExhausted,
                                      AllOf(HasSubstr("record 1 at byte offset 24"),
                                            HasSubstr("has 9 bytes"), HasSubstr("limit is 8"))));
}

TEST(RecordReaderTest, OptionsOutOfRangeAreInvalid) {
  const MemorySource source("");
  EXPECT_THAT(
      RecordReader::Create(source, {.read_bytes = 4095}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("read_bytes is 4095, want >= 4096")));
  EXPECT_THAT(RecordReader::Create(source, {.max_record_bytes = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_record_bytes is -1")));
}

TEST(RecordReaderTest, ErrorsOfTheSourceArePassedOn) {
  ErrorSource source(ShardBuilder().Add("abc").Add(std::string(9000, 'x')).Build());
  source.FailAt(8000, absl::UnavailableError("store is away"));
  RecordReader reader = MustCreate(source, {.read_bytes = 4096});
  EXPECT_THAT(reader.Next(), IsOkAndHolds(Optional(Eq("abc"))));
  EXPECT_THAT(reader.Next(), StatusIs(absl::StatusCode::kUnavailable, "store is away"));
  source.FailSize(absl::InternalError("no size"));
  EXPECT_THAT(RecordReader::Create(source), StatusIs(absl::StatusCode::kInternal, "no size"));
}

TEST(RecordReaderTest, ErrorOfTheSourceSticksThoughTheSourceRecovers) {
  ErrorSource source(ShardBuilder().Add("abc").Build());
  source.FailAt(0, absl::UnavailableError("store is away"));
  RecordReader reader = MustCreate(source);
  EXPECT_THAT(reader.Next(), StatusIs(absl::StatusCode::kUnavailable, "store is away"));
  source.FailAt(0, absl::OkStatus());
  EXPECT_THAT(reader.Next(), StatusIs(absl::StatusCode::kUnavailable, "store is away"));
}

TEST(RecordReaderTest, SourceThatShrankIsDataLoss) {
  ErrorSource source(ShardBuilder().Add("abc").Add("defg").Build());
  source.CutAt(25);
  RecordReader reader = MustCreate(source);
  EXPECT_THAT(reader.Next(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends at byte 25")));
}

TEST(RecordReaderTest, MovedReaderGoesOnWhereItWas) {
  const MemorySource source(ShardBuilder().Add("abc").Add("defg").Build());
  RecordReader reader = MustCreate(source);
  EXPECT_THAT(reader.Next(), IsOkAndHolds(Optional(Eq("abc"))));
  RecordReader moved = std::move(reader);
  EXPECT_THAT(moved.Next(), IsOkAndHolds(Optional(Eq("defg"))));
}

}  // namespace
}  // namespace systole
