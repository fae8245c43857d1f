// Tests how a compressed shard makes its records from pieces of its compressed bytes that have
// already been fetched.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/compression/chunk_cache.h"
#include "core/compression/compression.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/status/check.h"
#include "core/storage/byte_source.h"
#include "core/storage/stored_pieces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/compressed_shards.h"
#include "tests/core/storage/gated_source.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr int kRecords = 120;

struct Fetching {
  std::vector<absl::StatusOr<std::string>> payloads = {};
  absl::Status status;
  std::map<uint64_t, int> asked = {};  // How often each piece was used, by the piece's offset.
};

// Reads `records` of a shard from its pieces. `errors` has the errors of the pieces that cannot be
// read, by the piece's offset.
Fetching Fetch(const RecordSource& shard, const std::vector<int64_t>& records,
               const std::map<uint64_t, absl::Status>& errors = {}) {
  Fetching fetching;
  std::map<uint64_t, std::string> pieces;
  AlignedBuffer scratch;
  fetching.status = shard.ReadFetched(
      records,
      [&](const ByteSource& /*far*/, const RecordSpan& place) -> absl::StatusOr<absl::string_view> {
        ++fetching.asked[place.offset];
        const auto error = errors.find(place.offset);
        if (error != errors.end()) return error->second;
        std::string& bytes = pieces[place.offset];
        bytes.resize(place.size);
        EXPECT_THAT(ReadExactlyAt(*shard.far_bytes(), place.offset,
                                  absl::MakeSpan(bytes.data(), bytes.size())),
                    IsOk());
        return bytes;
      },
      scratch,
      [&](size_t place, const absl::StatusOr<absl::string_view>& payload) {
        EXPECT_EQ(place, fetching.payloads.size());
        fetching.payloads.push_back(
            payload.ok() ? absl::StatusOr<std::string>(std::string(*payload)) : payload.status());
        return absl::OkStatus();
      });
  return fetching;
}

std::vector<int64_t> AllRecords() {
  std::vector<int64_t> records;
  for (int64_t i = 0; i < kRecords; ++i) records.push_back(i);
  return records;
}

class TfRecordPiecesTest : public testing::TestWithParam<Compression> {
 protected:
  TfRecordShard Open() {
    const std::shared_ptr<ChunkCache> chunks = SmallChunkCache();
    absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(
        FarCompressed(bytes_, GetParam(), "far://a", gate_, folder_ / "a.restart", chunks));
    SYSTOLE_CHECK(shard.ok());
    Evict(*chunks);
    return *std::move(shard);
  }

  const TempFolder folder_;
  const std::string bytes_ = NoisyShards({kRecords}, 20'000)[0];
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

TEST_P(TfRecordPiecesTest, FetchedRecordsEqualReadRecordsAndUseEachPieceOnce) {
  const TfRecordShard shard = Open();
  const Fetching fetched = Fetch(shard, AllRecords());
  EXPECT_THAT(fetched.status, IsOk());
  ASSERT_EQ(fetched.payloads.size(), kRecords);
  EXPECT_GT(fetched.asked.size(), 3);
  for (const auto& [place, times] : fetched.asked) EXPECT_EQ(times, 1) << place;
  const TfRecordShard other = Open();
  AlignedBuffer scratch;
  for (int64_t i = 0; i < kRecords; ++i) {
    EXPECT_THAT(fetched.payloads[static_cast<size_t>(i)], IsOk());
    EXPECT_EQ(*other.ReadRecord(i, scratch), *fetched.payloads[static_cast<size_t>(i)]);
  }
  // The chunk cache still has all chunks, so these records need no piece.
  EXPECT_TRUE(Fetch(shard, {7, 3, kRecords - 1, 0}).asked.empty());
}

TEST_P(TfRecordPiecesTest, ABadPieceCostsOnlyItsRecordsButAnOutageEndsTheRead) {
  const TfRecordShard shard = Open();
  const StoredPieces* const pieces = shard.far_pieces();
  ASSERT_NE(pieces, nullptr);
  const uint64_t bad = pieces->PlaceOf(2).begin;
  const ByteStretch lost = pieces->BytesOf({.begin = 2, .end = 3});
  const Fetching sector = Fetch(shard, AllRecords(), {{bad, absl::UnknownError("bad sector")}});
  EXPECT_THAT(sector.status, IsOk());
  ASSERT_EQ(sector.payloads.size(), kRecords);
  int failed = 0;
  for (int64_t i = 0; i < kRecords; ++i) {
    const RecordSpan span = shard.span(i);
    const bool is_lost = span.offset < lost.end && span.offset + span.size > lost.begin;
    EXPECT_EQ(sector.payloads[static_cast<size_t>(i)].status().code(),
              is_lost ? absl::StatusCode::kUnknown : absl::StatusCode::kOk)
        << i;
    failed += is_lost ? 1 : 0;
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, kRecords);

  const TfRecordShard other = Open();
  const Fetching outage = Fetch(other, AllRecords(), {{bad, absl::UnavailableError("away")}});
  EXPECT_THAT(outage.status, StatusIs(absl::StatusCode::kUnavailable, "away"));
  ASSERT_FALSE(outage.payloads.empty());
  EXPECT_LT(outage.payloads.size(), kRecords);
  EXPECT_EQ(outage.payloads.back().status(), outage.status);
}

INSTANTIATE_TEST_SUITE_P(All, TfRecordPiecesTest, testing::ValuesIn(kCompressions),
                         [](const testing::TestParamInfo<Compression>& info) {
                           return std::string(CompressionName(info.param));
                         });

}  // namespace
}  // namespace systole
