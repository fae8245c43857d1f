#include "core/record/tfrecord/scan_shard.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/record/tfrecord/dali_index.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/error_source.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// What a scan of a shard finds: the offset and size of each record in turn, the numbers of the
// damaged records, and the causes of their damage.
struct Found {
  std::vector<uint64_t> begins_and_sizes;
  std::vector<int64_t> damaged;
  std::vector<std::string> causes;
};
Found Scan(const std::string& bytes, const ScanOptions& options = {}) {
  const MemorySource source(bytes);
  absl::StatusOr<ScannedShard> scanned = ScanShard(source, options);
  EXPECT_THAT(scanned, IsOk());
  Found found;
  if (!scanned.ok()) return found;
  for (int64_t i = 0; i < scanned->index.num_records(); ++i) {
    found.begins_and_sizes.push_back(scanned->index.span(i).offset);
    found.begins_and_sizes.push_back(scanned->index.span(i).size);
  }
  for (const DamagedRecord& damaged : scanned->index.damaged()) {
    EXPECT_EQ(damaged.span, scanned->index.span(damaged.record));
    found.damaged.push_back(damaged.record);
    found.causes.push_back(damaged.cause);
  }
  EXPECT_EQ(scanned->index.end(), bytes.size());
  // ScanIndexed() gets the places of the records from an index, and must find the same damage and
  // content.
  const absl::StatusOr<RecordIndex> index =
      ParseDaliIndex(DaliIndexText(scanned->index), bytes.size());
  EXPECT_THAT(index, IsOk());
  const absl::StatusOr<ScannedShard> indexed = ScanIndexed(source, *index);
  EXPECT_THAT(indexed, IsOk());
  EXPECT_EQ(indexed->content_hash, scanned->content_hash);
  if (!options.verify_payloads) {
    EXPECT_EQ(indexed->index.num_damaged(), scanned->index.num_damaged());
  }
  return found;
}

TEST(ScanShardTest, FindsEveryRecordOfAGoodShard) {
  for (const bool verify : {false, true}) {
    const Found found =
        Scan(ShardBuilder().Add("").Add("abc").Add("defg").Build(), {.verify_payloads = verify});
    EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, 16, 16, 19, 35, 20));
    EXPECT_THAT(found.damaged, IsEmpty());
  }
}

TEST(ScanShardTest, AHugeClaimedShardSizeFailsWithoutAHugeAllocation) {
  ShardBuilder builder;
  for (int i = 0; i < 40'000; ++i) builder.Add("");  // More than one read: 640 KB.
  ErrorSource source(builder.Build());
  source.ClaimSize(uint64_t{1} << 60);
  for (const bool verify : {false, true}) {
    EXPECT_FALSE(ScanShard(source, {.verify_payloads = verify}).ok());
  }
}

TEST(ScanShardTest, RecordSizesMayChangeWithinAShard) {
  constexpr int kSmall = 1000;  // More than one read: 16 KB of empty records.
  const std::string large(3'000'000, 'x');
  for (const bool verify : {false, true}) {
    ShardBuilder small_first, large_first;
    for (int i = 0; i < kSmall; ++i) small_first.Add("");
    small_first.Add(large);
    large_first.Add(large);
    for (int i = 0; i < kSmall; ++i) large_first.Add("");
    const ScanOptions options = {.verify_payloads = verify, .read_bytes = 4096};
    std::vector<uint64_t> expected;
    for (int i = 0; i < kSmall; ++i) expected.insert(expected.end(), {16u * i, 16});
    expected.insert(expected.end(), {16u * kSmall, 3'000'016});
    EXPECT_EQ(Scan(small_first.Build(), options).begins_and_sizes, expected);
    expected = {0, 3'000'016};
    for (int i = 0; i < kSmall; ++i) expected.insert(expected.end(), {3'000'016 + 16u * i, 16});
    EXPECT_EQ(Scan(large_first.Build(), options).begins_and_sizes, expected);
  }
}

TEST(ScanShardTest, EmptyShardHasNoRecords) {
  const Found found = Scan("");
  EXPECT_THAT(found.begins_and_sizes, IsEmpty());
  EXPECT_THAT(found.damaged, IsEmpty());
}

TEST(ScanShardTest, DamagedPayloadsAreFoundOnlyIfPayloadsAreVerified) {
  const std::string shard = ShardBuilder().Add("abc").Add("defg").Add("hi").Build();
  const std::string damaged = WithFlippedBit(shard, 8 * (19 + 12));  // The 'd'.
  EXPECT_THAT(Scan(damaged).damaged, IsEmpty());
  const Found found = Scan(damaged, {.verify_payloads = true});
  EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, 19, 19, 20, 39, 18));
  EXPECT_THAT(found.damaged, ElementsAre(1));
  EXPECT_THAT(found.causes, ElementsAre(HasSubstr("CRC of the payload is")));
}

TEST(ScanShardTest, DamagedHeaderCostsOneRecordWhereverItStands) {
  const std::string shard = ShardBuilder().Add("abc").Add("defg").Add("hi").Build();
  const uint64_t kOffsets[] = {0, 19, 39};
  for (int record = 0; record < 3; ++record) {
    const Found found = Scan(WithFlippedBit(shard, 8 * kOffsets[record] + 1));
    EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, 19, 19, 20, 39, 18));
    EXPECT_THAT(found.damaged, ElementsAre(record));
    EXPECT_THAT(found.causes, ElementsAre(HasSubstr("CRC of the length field is")));
  }
}

TEST(ScanShardTest, NeighbouringDamagedHeadersGiveOneDamagedRecord) {
  std::string shard = ShardBuilder().Add("abc").Add("defg").Add("hi").Add("j").Build();
  shard = WithFlippedBit(WithFlippedBit(shard, 8 * 19), 8 * 39);
  const Found found = Scan(shard);
  EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, 19, 19, 38, 57, 17));
  EXPECT_THAT(found.damaged, ElementsAre(1));
}

TEST(ScanShardTest, AGoodRecordBetweenTwoDamagedHeadersIsFoundByItsPayload) {
  ShardBuilder builder;
  std::vector<uint64_t> offsets;
  for (int i = 0; i < 128; ++i) {
    offsets.push_back(builder.Build().size());
    builder.Add(std::string(static_cast<size_t>(i * 37 % 500), static_cast<char>(i)));
  }
  std::string shard = builder.Build();
  // Damages the header of every second one of the first 40 records.
  std::vector<int64_t> damaged;
  for (int64_t i = 0; i < 40; i += 2) {
    shard = WithFlippedBit(shard, 8 * offsets[static_cast<size_t>(i)] + 3);
    damaged.push_back(i);
  }
  const Found found = Scan(shard);
  EXPECT_EQ(found.begins_and_sizes.size(), 2u * 128);
  EXPECT_EQ(found.damaged, damaged);
}

TEST(ScanShardTest, AHeaderBetweenTwoDamagedOnesIsNotBelievedIfItsPayloadIsDamagedToo) {
  std::string shard = ShardBuilder().Add("abc").Add("defg").Add("hi").Add("j").Build();
  shard = WithFlippedBit(WithFlippedBit(shard, 0), 8 * 39);  // Damages the headers of "abc", "hi"
  shard = WithFlippedBit(shard, 8 * 31);                     // and the payload "defg".
  const Found found = Scan(shard);
  EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, 57, 57, 17));
  EXPECT_THAT(found.damaged, ElementsAre(0));
}

TEST(ScanShardTest, AScanOfManyFalseHeadersReadsLessThanThreeTimesTheShard) {
  // Each header claims a payload of nearly all bytes that are left. The bytes after the payload are
  // never the payload's CRC.
  constexpr uint64_t kHeaders = 500;
  constexpr uint64_t kRest = 100'000;
  ShardBuilder builder;
  builder.AddRaw("x");
  for (uint64_t i = 0; i < kHeaders; ++i) builder.AddHeader(kRest - 1000);
  builder.AddRaw(std::string(kRest, 'r'));
  const std::string shard = builder.Build();
  const ErrorSource source(shard);
  const absl::StatusOr<ScannedShard> scanned = ScanShard(source);
  ASSERT_THAT(scanned, IsOk());
  EXPECT_EQ(scanned->index.num_records(), 1);
  EXPECT_LT(source.bytes_read(), 3 * shard.size());
}

TEST(ScanShardTest, NeighbouringDamagedPayloadsAreTwoRecords) {
  std::string shard = ShardBuilder().Add("abc").Add("defg").Add("hi").Add("j").Build();
  shard = WithFlippedBit(WithFlippedBit(shard, 8 * 31), 8 * 51);
  EXPECT_THAT(Scan(shard, {.verify_payloads = true}).damaged, ElementsAre(1, 2));
}

TEST(ScanShardTest, DamagedHeaderBeforeADamagedPayloadAreTwoRecords) {
  std::string shard = ShardBuilder().Add("abc").Add("defg").Add("hi").Add("j").Build();
  shard = WithFlippedBit(WithFlippedBit(shard, 8 * 19), 8 * 51);
  const Found found = Scan(shard, {.verify_payloads = true});
  EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, 19, 19, 20, 39, 18, 57, 17));
  EXPECT_THAT(found.damaged, ElementsAre(1, 2));
}

TEST(ScanShardTest, ForeignBytesBetweenRecordsAreOneDamagedRecord) {
  for (const char* foreign : {"x", "some foreign bytes that are no record"}) {
    const uint64_t size = std::string(foreign).size();
    const Found found =
        Scan(ShardBuilder().Add("abc").AddRaw(foreign).Add("defg").Add("hi").Build());
    EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, 19, 19, size, 19 + size, 20, 39 + size, 18));
    EXPECT_THAT(found.damaged, ElementsAre(1));
  }
}

TEST(ScanShardTest, HostileLengthWithAGoodCrcCostsOneRecord) {
  for (const uint64_t length :
       {uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 15, uint64_t{200}}) {
    ShardBuilder builder;
    builder.Add("abc").AddHeader(length).AddRaw("payload and crc").Add("defg").Add("hi");
    const Found found = Scan(builder.Build());
    EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, 19, 19, 27, 46, 20, 66, 18)) << length;
    EXPECT_THAT(found.damaged, ElementsAre(1));
    EXPECT_THAT(found.causes, ElementsAre(HasSubstr("announces " + std::to_string(length))));
  }
}

TEST(ScanShardTest, AHeaderInsideADamagedRecordIsIgnoredIfNoRecordFollows) {
  // The payload of the damaged record holds a header with a good CRC. But no other record begins
  // where the record of this header would end.
  const std::string decoy = ShardBuilder().AddHeader(5).Build();
  const std::string shard = ShardBuilder().Add("xx" + decoy + "yyyyyyyy").Add("defg").Build();
  const Found found = Scan(WithFlippedBit(shard, 0));
  EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, 38, 38, 20));
  EXPECT_THAT(found.damaged, ElementsAre(0));
}

TEST(ScanShardTest, ARecordBetweenDamageAndATruncatedTailIsFound) {
  // Record 1 counts as good because the good header of record 2 follows it. This suffices, although
  // the payload of record 2 is cut.
  const std::string shard = ShardBuilder().Add("abc").Add("defg").Add("hi").Build();
  const Found found = Scan(WithFlippedBit(shard.substr(0, shard.size() - 1), 0));
  EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, 19, 19, 20, 39, 17));
  EXPECT_THAT(found.damaged, ElementsAre(0, 2));
}

TEST(ScanShardTest, ShardOfZerosOrNoiseIsOneDamagedRecord) {
  std::string noise;
  for (uint32_t i = 0, x = 1; i < 100'000; ++i) {
    x = x * 1664525 + 1013904223;
    noise.push_back(static_cast<char>(x >> 24));
  }
  for (const std::string& bytes : {std::string(100'000, '\0'), noise, std::string("x")}) {
    const Found found = Scan(bytes);
    EXPECT_THAT(found.begins_and_sizes, ElementsAre(0, bytes.size()));
    EXPECT_THAT(found.damaged, ElementsAre(0));
  }
}

TEST(ScanShardTest, ResultDoesNotDependOnTheReadSize) {
  ShardBuilder builder;
  for (int i = 0; i < 50; ++i) builder.Add(std::string((i * 977) % 9000, static_cast<char>(i)));
  builder.AddRaw(std::string(5000, 'r'));
  for (int i = 0; i < 50; ++i) builder.Add(std::string(i, static_cast<char>(i)));
  const std::string shard = builder.Build();
  const MemorySource source(shard);
  absl::StatusOr<ScannedShard> whole = ScanShard(source, {.read_bytes = 1 << 20});
  ASSERT_THAT(whole, IsOk());
  EXPECT_EQ(whole->index.num_records(), 101);
  for (const bool verify : {false, true}) {
    for (const int64_t read_bytes : {4096, 4097, 5000, 65'536}) {
      absl::StatusOr<ScannedShard> scanned =
          ScanShard(source, {.verify_payloads = verify, .read_bytes = read_bytes});
      ASSERT_THAT(scanned, IsOk());
      EXPECT_EQ(DaliIndexText(scanned->index), DaliIndexText(whole->index));
      EXPECT_EQ(scanned->content_hash, whole->content_hash);
      EXPECT_EQ(scanned->index.damaged().size(), 1u);
    }
  }
}

TEST(ScanShardTest, ScanningLargeRecordsTakesOneSmallReadPerRecord) {
  ShardBuilder builder;
  for (int i = 0; i < 20; ++i) builder.Add(std::string(100'000, 'x'));
  const ErrorSource source(builder.Build());
  ASSERT_THAT(ScanShard(source), IsOk());
  EXPECT_LE(source.num_reads(), 21);
  EXPECT_LE(source.bytes_read(), 70'000u);  // The shard has 2,000,320 bytes.
}

// For a large shard on a server, one request for each record would take hours.
TEST(ScanShardTest, AShardThatIsNotLocalTakesFewReadsAndLargeRecordsOneSmallReadEach) {
  ShardBuilder small;
  for (int i = 0; i < 200; ++i) small.Add(std::string(100'000, 'x'));
  ShardBuilder large;
  for (int i = 0; i < 4; ++i) large.Add(std::string(3 << 20, 'x'));
  ErrorSource of_small(small.Build());
  ErrorSource of_large(large.Build());
  for (ErrorSource* const source : {&of_small, &of_large}) source->MoveAway();
  const absl::StatusOr<ScannedShard> scanned = ScanShard(of_small);
  ASSERT_THAT(scanned, IsOk());
  EXPECT_EQ(scanned->index.num_records(), 200);
  EXPECT_EQ(of_small.num_reads(), 7);
  of_small.ResetCounts();
  EXPECT_THAT(ScanIndexed(of_small, scanned->index), IsOk());
  EXPECT_EQ(of_small.num_reads(), 7);
  ASSERT_THAT(ScanShard(of_large), IsOk());
  EXPECT_EQ(of_large.num_reads(), 5);
  EXPECT_LT(of_large.bytes_read(), uint64_t{300'000});
}

TEST(ScanShardTest, FullScanReadsEveryByteAboutOnce) {
  ShardBuilder builder;
  for (int i = 0; i < 200; ++i) builder.Add(std::string(10'000, 'x'));
  const ErrorSource source(builder.Build());
  ASSERT_THAT(ScanShard(source, {.verify_payloads = true}), IsOk());
  EXPECT_LE(source.bytes_read(), builder.size() + 16 * 16);
}

TEST(ScanShardTest, TheErrorForTooManyRecordsNamesTheShardByBaseName) {
  ShardBuilder builder;
  for (int i = 0; i < 5; ++i) builder.Add("abc");
  const std::string damaged = builder.Build().substr(0, 40) + std::string(60, 'x');
  for (const std::string& bytes : {builder.Build(), damaged}) {
    const MemorySource source(bytes, "/dir/a.tfrecord");
    const auto records = static_cast<uint64_t>(ScanShard(source)->index.num_records());
    EXPECT_THAT(ScanShard(source, {.max_records = records}), IsOk());
    EXPECT_THAT(ScanShard(source, {.max_records = records - 1}),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("\"a.tfrecord\""), Not(HasSubstr("dir")),
                               HasSubstr(absl::StrCat("more than ", records - 1)))));
  }
}

TEST(ScanShardTest, ErrorsOfTheSourceArePassedOn) {
  const std::string bytes =
      ShardBuilder().Add(std::string(20'000, 'x')).Add(std::string(20'000, 'y')).Build();
  for (const uint64_t offset : {5u, 15'000u, 20'012u, 20'020u, 30'000u, 40'030u}) {
    ErrorSource source(bytes);
    source.FailAt(offset, absl::UnavailableError("store is away"));
    EXPECT_THAT(ScanShard(source, {.verify_payloads = true, .read_bytes = 4096}),
                StatusIs(absl::StatusCode::kUnavailable, "store is away"))
        << offset;
  }
  ErrorSource source(WithFlippedBit(bytes, 0));
  source.FailAt(15'000, absl::UnavailableError("store is away"));  // In the search for a header.
  EXPECT_THAT(ScanShard(source, {.read_bytes = 4096}),
              StatusIs(absl::StatusCode::kUnavailable, "store is away"));
  source.FailSize(absl::InternalError("no size"));
  EXPECT_THAT(ScanShard(source), StatusIs(absl::StatusCode::kInternal, "no size"));
}

TEST(ScanShardTest, TooSmallAReadSizeIsInvalid) {
  EXPECT_THAT(ScanShard(MemorySource(""), {.read_bytes = 100}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("read_bytes is 100")));
}

TEST(ScanShardTest, ContentHashIsXxh3OfSizesAndStoredPayloadCrcs) {
  // The frame size and the CRC of each record, little-endian: 16 and a282ead8 for "", 19 and
  // 21f1576e for "abc".
  constexpr unsigned char kHashed[] = {16, 0, 0, 0, 0, 0, 0, 0, 0xd8, 0xea, 0x82, 0xa2,
                                       19, 0, 0, 0, 0, 0, 0, 0, 0x6e, 0x57, 0xf1, 0x21};
  const MemorySource source(ShardBuilder().Add("").Add("abc").Build());
  absl::StatusOr<ScannedShard> scanned = ScanShard(source);
  ASSERT_THAT(scanned, IsOk());
  EXPECT_EQ(scanned->content_hash,
            Xxh3(absl::string_view(reinterpret_cast<const char*>(kHashed), sizeof(kHashed))));
}

TEST(ScanShardTest, ContentHashDependsOnContentAndOrderNotOnNames) {
  const auto hash = [](const ShardBuilder& builder, const std::string& name) {
    absl::StatusOr<ScannedShard> scanned = ScanShard(MemorySource(builder.Build(), name));
    EXPECT_THAT(scanned, IsOk());
    return scanned->content_hash;
  };
  const uint64_t ab = hash(ShardBuilder().Add("a").Add("b"), "x");
  EXPECT_EQ(hash(ShardBuilder().Add("a").Add("b"), "y"), ab);
  EXPECT_NE(hash(ShardBuilder().Add("b").Add("a"), "x"), ab);
  EXPECT_NE(hash(ShardBuilder().Add("a").Add("c"), "x"), ab);
  EXPECT_NE(hash(ShardBuilder().Add("a"), "x"), ab);
}

TEST(ScanIndexedTest, LargeRecordsCostOneSmallReadEach) {
  ShardBuilder builder;
  for (int i = 0; i < 20; ++i) builder.Add(std::string(100'000, 'x'));
  ErrorSource source(builder.Build());
  absl::StatusOr<ScannedShard> scanned = ScanShard(source);
  ASSERT_THAT(scanned, IsOk());
  source.ResetCounts();
  const absl::StatusOr<ScannedShard> indexed = ScanIndexed(source, scanned->index);
  ASSERT_THAT(indexed, IsOk());
  EXPECT_EQ(indexed->content_hash, scanned->content_hash);
  // The scan first reads one window of bytes, then each footer together with the next header.
  EXPECT_EQ(source.num_reads(), 1 + 20);
  EXPECT_LE(source.bytes_read(), (64u << 10) + 4096 + 20 * 16u);
}

TEST(ScanIndexedTest, FindsARecordWithDamagedFraming) {
  const std::string good = ShardBuilder().Add("abc").Add("defg").Add("hi").Build();
  const absl::StatusOr<RecordIndex> index = ParseDaliIndex("0 19\n19 20\n39 18\n", 57);
  ASSERT_THAT(index, IsOk());
  const absl::StatusOr<ScannedShard> scanned =
      ScanIndexed(MemorySource(WithFlippedBit(good, 8 * 19)), *index);
  ASSERT_THAT(scanned, IsOk());
  EXPECT_EQ(scanned->index.num_damaged(), 1);
  ASSERT_EQ(scanned->index.damaged().size(), 1u);
  EXPECT_EQ(scanned->index.damaged()[0].record, 1);
  EXPECT_EQ(scanned->index.damaged()[0].span, scanned->index.span(1));
  EXPECT_THAT(scanned->index.damaged()[0].cause, HasSubstr("CRC of the length field"));
}

TEST(ScanIndexedTest, ARecordOfAWrongIndexIsReportedAsDamaged) {
  const std::string good = ShardBuilder().Add("abc").Add("defg").Build();
  const absl::StatusOr<RecordIndex> index = ParseDaliIndex("0 39\n", 39);
  ASSERT_THAT(index, IsOk());
  const absl::StatusOr<ScannedShard> scanned = ScanIndexed(MemorySource(good), *index);
  ASSERT_THAT(scanned, IsOk());
  ASSERT_EQ(scanned->index.num_damaged(), 1);
  EXPECT_THAT(scanned->index.damaged()[0].cause, HasSubstr("delete the index file"));
}

TEST(ScanIndexedTest, SourceErrorsArePassedOn) {
  ErrorSource source(ShardBuilder().Add("abc").Build());
  const absl::StatusOr<RecordIndex> index = ParseDaliIndex("0 19\n", 19);
  ASSERT_THAT(index, IsOk());
  source.FailAt(17, absl::UnavailableError("store is away"));
  EXPECT_THAT(ScanIndexed(source, *index),
              StatusIs(absl::StatusCode::kUnavailable, "store is away"));
}

TEST(ScanShardTest, DamageIsListedUpToALimitAndCounted) {
  ShardBuilder builder;
  for (int i = 0; i < 250; ++i) builder.Add("good").Add("good").AddRaw("bad");
  const absl::StatusOr<ScannedShard> scanned = ScanShard(MemorySource(builder.Build()));
  ASSERT_THAT(scanned, IsOk());
  EXPECT_EQ(scanned->index.num_damaged(), 250);
  ASSERT_EQ(scanned->index.damaged().size(), kMaxDamagedListed);
  EXPECT_EQ(scanned->index.damaged().back().record, 299);
}

}  // namespace
}  // namespace systole
