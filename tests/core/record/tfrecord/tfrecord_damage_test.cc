// Flips every bit of a shard and cuts it at every length. The index and random access must lose the
// damaged records and no others. The sequential reader must give all records before the damage.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/record/source/record_index.h"
#include "core/record/tfrecord/dali_index.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/record/tfrecord/scan_shard.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

const std::vector<std::string>& Payloads() {
  static const std::vector<std::string> payloads = {"first", "", "a payload of some more bytes",
                                                    std::string("\0\0\0\0\0\0\0\0\0", 9), "last"};
  return payloads;
}

ShardBuilder Built() {
  ShardBuilder builder;
  for (const std::string& payload : Payloads()) builder.Add(payload);
  return builder;
}

// The offset of each record, and the end of the last one.
std::vector<uint64_t> Offsets() {
  std::vector<uint64_t> offsets = {0};
  for (const std::string& payload : Payloads()) {
    offsets.push_back(offsets.back() + payload.size() + kRecordFramingBytes);
  }
  return offsets;
}

TEST(TfRecordDamageTest, EveryFlippedBitCostsExactlyTheRecordItIsIn) {
  const std::string good = Built().Build();
  const std::vector<uint64_t> offsets = Offsets();
  AlignedBuffer scratch;
  for (uint64_t bit = 0; bit < 8 * good.size(); ++bit) {
    SCOPED_TRACE(absl::StrCat("bit ", bit));
    int64_t hit = 0;
    while (bit / 8 >= offsets[hit + 1]) ++hit;
    const std::string bytes = WithFlippedBit(good, bit);

    absl::StatusOr<ScannedShard> scanned =
        ScanShard(MemorySource(bytes), {.verify_payloads = true});
    ASSERT_THAT(scanned, IsOk());
    ASSERT_EQ(scanned->index.num_records(), 5);
    ASSERT_EQ(scanned->index.damaged().size(), 1u);
    EXPECT_EQ(scanned->index.damaged()[0].record, hit);
    EXPECT_EQ(scanned->index.damaged()[0].span.offset, offsets[hit]);
    EXPECT_EQ(scanned->index.damaged()[0].span.size, offsets[hit + 1] - offsets[hit]);

    absl::StatusOr<TfRecordShard> shard =
        TfRecordShard::Create(std::make_unique<MemorySource>(bytes, "dir/x.tfrecord"));
    ASSERT_THAT(shard, IsOk());
    ASSERT_EQ(shard->num_records(), 5);
    for (int64_t i = 0; i < 5; ++i) {
      if (i == hit) {
        EXPECT_THAT(shard->ReadRecord(i, scratch),
                    StatusIs(absl::StatusCode::kDataLoss,
                             absl::StrCat("shard \"x.tfrecord\", record ", hit, " at byte offset ",
                                          offsets[hit], ": ", scanned->index.damaged()[0].cause)));
      } else {
        EXPECT_THAT(shard->ReadRecord(i, scratch), IsOkAndHolds(Eq(Payloads()[i])));
      }
    }

    const MemorySource source(bytes, "dir/x.tfrecord");
    absl::StatusOr<RecordReader> reader = RecordReader::Create(source);
    ASSERT_THAT(reader, IsOk());
    for (int64_t i = 0; i < hit; ++i) {
      EXPECT_THAT(reader->Next(), IsOkAndHolds(Optional(Eq(Payloads()[i]))));
    }
    EXPECT_THAT(reader->Next(),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("x.tfrecord"), HasSubstr(absl::StrCat("record ", hit)),
                               HasSubstr(absl::StrCat("byte offset ", offsets[hit])))));
  }
}

TEST(TfRecordDamageTest, FlippedBitDoesNotChangeTheTextOfTheIndex) {
  // An index that was made before the damage must still fit the damaged shard.
  const std::string good = Built().Build();
  absl::StatusOr<ScannedShard> before = ScanShard(MemorySource(good));
  ASSERT_THAT(before, IsOk());
  for (uint64_t bit = 0; bit < 8 * good.size(); ++bit) {
    absl::StatusOr<ScannedShard> after = ScanShard(MemorySource(WithFlippedBit(good, bit)));
    ASSERT_THAT(after, IsOk());
    EXPECT_EQ(DaliIndexText(after->index), DaliIndexText(before->index)) << bit;
  }
}

TEST(TfRecordDamageTest, ShardCutAnywhereLosesWhatIsCutAndNothingElse) {
  const std::string good = Built().Build();
  const std::vector<uint64_t> offsets = Offsets();
  AlignedBuffer scratch;
  for (uint64_t size = 0; size <= good.size(); ++size) {
    SCOPED_TRACE(absl::StrCat("cut to ", size, " bytes"));
    int64_t whole = 0;  // Complete records.
    while (whole < 5 && offsets[whole + 1] <= size) ++whole;
    const bool cut = size > offsets[whole];

    absl::StatusOr<TfRecordShard> shard =
        TfRecordShard::Create(std::make_unique<MemorySource>(good.substr(0, size)));
    ASSERT_THAT(shard, IsOk());
    EXPECT_EQ(shard->num_records(), whole + cut);
    EXPECT_EQ(shard->index().damaged().size(), cut);
    for (int64_t i = 0; i < whole; ++i) {
      EXPECT_THAT(shard->ReadRecord(i, scratch), IsOkAndHolds(Eq(Payloads()[i])));
    }

    const MemorySource source(good.substr(0, size));
    absl::StatusOr<RecordReader> reader = RecordReader::Create(source);
    ASSERT_THAT(reader, IsOk());
    for (int64_t i = 0; i < whole; ++i) {
      EXPECT_THAT(reader->Next(), IsOkAndHolds(Optional(Eq(Payloads()[i]))));
    }
    if (cut) {
      const auto cut_short = StatusIs(
          absl::StatusCode::kDataLoss,
          AllOf(HasSubstr("cut short"), HasSubstr(absl::StrCat("record ", whole, " at byte offset ",
                                                               offsets[whole], ":"))));
      EXPECT_THAT(shard->ReadRecord(whole, scratch), cut_short);
      EXPECT_THAT(reader->Next(), cut_short);
    } else {
      EXPECT_THAT(reader->Next(), IsOkAndHolds(Eq(std::nullopt)));
    }
  }
}

}  // namespace
}  // namespace systole
