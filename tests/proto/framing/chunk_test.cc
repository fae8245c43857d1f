#include "proto/framing/chunk.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/batch/stage_times.h"
#include "core/checksum/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/service.pb.h"
#include "tests/proto/framing/sliced_message.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr ChunkHeader kHeader = {.step = 300,
                                 .core = 5,
                                 .tensor = 2,
                                 .offset = int64_t{1} << 40,
                                 .crc32c = 0xdeadbeef,
                                 .slot_bytes = 567890,
                                 .not_shared = 7,
                                 .stages = StageTimes{.read = absl::Nanoseconds(1),
                                                      .make = absl::Milliseconds(250),
                                                      .wait = absl::Hours(1),
                                                      .costliest = 3,
                                                      .operation = 31}};

std::vector<uint8_t> Data(size_t bytes) {
  std::vector<uint8_t> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(i * 31 + 7);
  return data;
}

uint32_t CrcOf(const std::vector<uint8_t>& data) {
  return Crc32c(absl::string_view(reinterpret_cast<const char*>(data.data()), data.size()));
}

TEST(ChunkTest, ProtobufParsesAnEncodedChunk) {
  for (const size_t bytes : {size_t{1}, size_t{127}, size_t{128}, size_t{1} << 20}) {
    const std::vector<uint8_t> data = Data(bytes);
    v1::Chunk chunk;
    ASSERT_TRUE(chunk.ParseFromString(BytesOf(EncodeChunk(kHeader, data, nullptr))));
    EXPECT_EQ(chunk.step(), 300);
    EXPECT_EQ(chunk.core(), 5);
    EXPECT_EQ(chunk.tensor(), 2);
    EXPECT_EQ(chunk.offset(), int64_t{1} << 40);
    EXPECT_EQ(chunk.crc32c(), 0xdeadbeefu);
    EXPECT_FALSE(chunk.draining());
    EXPECT_EQ(chunk.slot_bytes(), 567890);
    EXPECT_EQ(chunk.not_shared(), 7);
    EXPECT_EQ(chunk.stages().read_ns(), 1);
    EXPECT_EQ(chunk.stages().make_ns(), 250'000'000);
    EXPECT_EQ(chunk.stages().wait_ns(), 3'600'000'000'000);
    EXPECT_EQ(chunk.stages().costliest_output(), 4);
    EXPECT_EQ(chunk.stages().costliest_operation(), 32);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), chunk.data().begin(), chunk.data().end(),
                           [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }));
  }
}

TEST(ChunkTest, ForEachPieceYieldsAllDataAndThenReportsDamage) {
  const std::vector<uint8_t> data = Data(1000);
  ChunkHeader header = kHeader;
  for (const bool damaged : {false, true}) {
    header.crc32c = CrcOf(data) ^ (damaged ? 1 : 0);
    const std::string message = BytesOf(EncodeChunk(header, data, nullptr));
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{64}, message.size()}) {
      const absl::StatusOr<ReceivedChunk> chunk =
          ReceivedChunk::Parse(SlicedMessage(message, piece));
      ASSERT_THAT(chunk, IsOk());
      std::vector<uint8_t> taken;
      const absl::Status status = chunk->ForEachPiece([&](absl::Span<const uint8_t> part) {
        taken.insert(taken.end(), part.begin(), part.end());
      });
      EXPECT_EQ(taken, data);
      EXPECT_EQ(status.code(), damaged ? absl::StatusCode::kDataLoss : absl::StatusCode::kOk);
    }
  }
}

TEST(ChunkTest, WritesTheBytesThatProtobufWrites) {
  const std::vector<uint8_t> data = Data(1000);
  v1::Chunk chunk;
  chunk.set_step(300);
  chunk.set_core(5);
  chunk.set_tensor(2);
  chunk.set_offset(int64_t{1} << 40);
  chunk.set_crc32c(0xdeadbeef);
  chunk.set_slot_bytes(567890);
  chunk.set_not_shared(v1::SESSION_OVER);
  chunk.mutable_stages()->set_read_ns(1);
  chunk.mutable_stages()->set_make_ns(250'000'000);
  chunk.mutable_stages()->set_wait_ns(3'600'000'000'000);
  chunk.mutable_stages()->set_costliest_output(4);
  chunk.mutable_stages()->set_costliest_operation(32);
  chunk.set_header_crc32c(Crc32c(chunk.SerializeAsString()));
  chunk.set_data(data.data(), data.size());
  EXPECT_EQ(BytesOf(EncodeChunk(kHeader, data, nullptr)), chunk.SerializeAsString());
}

TEST(ChunkTest, StageTimesOutOfBoundsAreClamped) {
  v1::Chunk chunk;
  chunk.mutable_stages()->set_read_ns(-1);
  chunk.mutable_stages()->set_make_ns(INT64_MAX);
  chunk.mutable_stages()->set_wait_ns(INT64_MIN);
  chunk.mutable_stages()->set_costliest_output(-7);
  chunk.mutable_stages()->set_costliest_operation(INT32_MIN);
  const absl::StatusOr<ReceivedChunk> received =
      ReceivedChunk::Parse(SlicedMessage(chunk.SerializeAsString(), 3));
  ASSERT_THAT(received, IsOk());
  EXPECT_EQ(received->header().stages, (StageTimes{.make = absl::Hours(1)}));
  // EncodeChunk() cuts stage times down, too.
  v1::Chunk written;
  ASSERT_TRUE(written.ParseFromString(BytesOf(EncodeChunk(
      {.stages = StageTimes{.read = absl::Hours(5), .make = -absl::Hours(5)}}, {}, nullptr))));
  EXPECT_EQ(written.stages().read_ns(), 3'600'000'000'000);
  EXPECT_EQ(written.stages().make_ns(), 0);
}

TEST(ChunkTest, RepeatedStageTimesAreMergedAndTruncatedOnesAreRefused) {
  v1::Chunk first;
  first.mutable_stages()->set_read_ns(5);
  first.mutable_stages()->set_make_ns(6);
  v1::Chunk second;
  second.mutable_stages()->set_make_ns(7);
  const std::string bytes = first.SerializeAsString() + second.SerializeAsString();
  const absl::StatusOr<ReceivedChunk> received = ReceivedChunk::Parse(SlicedMessage(bytes, 2));
  ASSERT_THAT(received, IsOk());
  EXPECT_EQ(received->header().stages,
            (StageTimes{.read = absl::Nanoseconds(5), .make = absl::Nanoseconds(7)}));
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    v1::Chunk theirs;
    EXPECT_EQ(ReceivedChunk::Parse(SlicedMessage(bytes.substr(0, cut), 2)).ok(),
              theirs.ParseFromString(bytes.substr(0, cut)))
        << cut;
  }
  // The message `stages` has a length of two bytes, which ends within its field.
  EXPECT_FALSE(ReceivedChunk::Parse(SlicedMessage(std::string("\x62\x02\x08\xff\x01", 5), 1)).ok());
}

TEST(ChunkTest, HeadersWithExtremeValuesSurviveEncodingAndParsing) {
  const ChunkHeader headers[] = {
      {},
      {.step = INT64_MAX,
       .core = INT32_MAX,
       .tensor = INT32_MAX,
       .offset = INT64_MAX,
       .crc32c = UINT32_MAX,
       .draining = true,
       .slot = UINT64_MAX,
       .slot_bytes = INT64_MAX,
       .not_shared = INT32_MAX,
       .stages = StageTimes{.read = kMaxStageTime,
                            .make = kMaxStageTime,
                            .wait = kMaxStageTime,
                            .costliest = INT32_MAX - 1,
                            .operation = INT32_MAX - 1}},
      {.stages = StageTimes()},
      {.step = INT64_MIN, .core = INT32_MIN, .tensor = INT32_MIN, .offset = INT64_MIN},
      {.step = -1, .core = -1, .tensor = -1, .offset = -1, .slot_bytes = -1, .not_shared = -1},
  };
  for (const ChunkHeader& header : headers) {
    for (const size_t bytes : {0, 3}) {
      const std::vector<uint8_t> data = Data(bytes);
      const grpc::ByteBuffer message = EncodeChunk(header, data, nullptr);
      const absl::StatusOr<ReceivedChunk> chunk = ReceivedChunk::Parse(message);
      ASSERT_THAT(chunk, IsOk());
      EXPECT_EQ(chunk->header(), header);
      EXPECT_EQ(chunk->data_bytes(), static_cast<int64_t>(bytes));
      v1::Chunk parsed;
      ASSERT_TRUE(parsed.ParseFromString(BytesOf(message)));
      EXPECT_EQ(parsed.step(), header.step);
      EXPECT_EQ(parsed.core(), header.core);
      EXPECT_EQ(parsed.draining(), header.draining);
      EXPECT_EQ(parsed.slot(), header.slot);
      EXPECT_EQ(parsed.slot_bytes(), header.slot_bytes);
      EXPECT_EQ(parsed.not_shared(), header.not_shared);
    }
  }
}

TEST(ChunkTest, TheDataAreSharedNotCopiedAndTheirOwnerIsKept) {
  const std::vector<uint8_t> data = Data(100'000);
  std::atomic<bool> dropped = false;
  {
    grpc::ByteBuffer message;
    {
      std::shared_ptr<const void> owner(&data, [&](const void*) { dropped = true; });
      message = EncodeChunk(kHeader, data, std::move(owner));
    }
    EXPECT_FALSE(dropped);
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(message.Dump(&slices).ok());
    ASSERT_EQ(slices.size(), 2u);
    EXPECT_EQ(slices[1].begin(), data.data());
  }
  EXPECT_TRUE(dropped);
}

TEST(ChunkTest, TheOwnerOfAChunkWithoutDataIsReleasedAtOnce) {
  bool dropped = false;
  std::shared_ptr<const void> owner(&dropped, [&](const void*) { dropped = true; });
  const grpc::ByteBuffer message = EncodeChunk(kHeader, {}, std::move(owner));
  EXPECT_TRUE(dropped);
}

TEST(ChunkTest, GathersDataHoweverTheyAreSliced) {
  const std::vector<uint8_t> data = Data(100);
  ChunkHeader header = kHeader;
  header.crc32c = CrcOf(data);
  const std::string bytes = BytesOf(EncodeChunk(header, data, nullptr));
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    const absl::StatusOr<ReceivedChunk> chunk = ReceivedChunk::Parse(SlicedMessage(bytes, piece));
    ASSERT_THAT(chunk, IsOk());
    EXPECT_EQ(chunk->header(), header);
    std::vector<uint8_t> gathered(100);
    ASSERT_THAT(chunk->CopyTo(absl::MakeSpan(gathered)), IsOk());
    EXPECT_EQ(gathered, data);
  }
}

TEST(ChunkTest, AReceivedChunkStaysValidAfterItsMessageIsDestroyed) {
  const std::vector<uint8_t> data = Data(100);
  ChunkHeader header = kHeader;
  header.crc32c = CrcOf(data);
  absl::StatusOr<ReceivedChunk> chunk = absl::UnknownError("");
  {
    const grpc::ByteBuffer message = SlicedMessage(BytesOf(EncodeChunk(header, data, nullptr)), 7);
    chunk = ReceivedChunk::Parse(message);
  }
  ASSERT_THAT(chunk, IsOk());
  std::vector<uint8_t> gathered(100);
  EXPECT_THAT(chunk->CopyTo(absl::MakeSpan(gathered)), IsOk());
}

TEST(ChunkTest, EveryFlippedBitOfTheDataIsSeen) {
  const std::vector<uint8_t> data = Data(20);
  ChunkHeader header = kHeader;
  header.crc32c = CrcOf(data);
  for (size_t bit = 0; bit < 8 * data.size(); ++bit) {
    std::vector<uint8_t> damaged = data;
    damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const absl::StatusOr<ReceivedChunk> chunk =
        ReceivedChunk::Parse(EncodeChunk(header, damaged, nullptr));
    ASSERT_THAT(chunk, IsOk());
    std::vector<uint8_t> gathered(20);
    EXPECT_THAT(chunk->CopyTo(absl::MakeSpan(gathered)),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("step 300, core 5, tensor 2"), HasSubstr("CRC-32C"))));
  }
}

// `bytes` with one bit flipped.
std::string WithFlippedBit(std::string bytes, size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  return bytes;
}

TEST(ChunkTest, EveryFlippedBitOfTheMessageIsSeen) {
  for (const size_t size : {0, 1, 20, 200}) {
    const std::vector<uint8_t> data = Data(size);
    ChunkHeader header = kHeader;
    header.crc32c = CrcOf(data);
    const std::string bytes = BytesOf(EncodeChunk(header, data, nullptr));
    for (size_t bit = 0; bit <= 8 * bytes.size(); ++bit) {
      const bool whole = bit == 8 * bytes.size();
      const absl::StatusOr<ReceivedChunk> chunk =
          ReceivedChunk::Parse(SlicedMessage(whole ? bytes : WithFlippedBit(bytes, bit), 7));
      std::vector<uint8_t> gathered(chunk.ok() ? static_cast<size_t>(chunk->data_bytes()) : 0);
      const bool intact =
          chunk.ok() && chunk->CheckHeader().ok() && chunk->CopyTo(absl::MakeSpan(gathered)).ok();
      EXPECT_EQ(intact, whole) << "bit " << bit << " of " << bytes.size() << " bytes";
    }
  }
}

TEST(ChunkTest, ADamagedHeaderIsDataLoss) {
  const std::string bytes = BytesOf(EncodeChunk(kHeader, Data(20), nullptr));
  const absl::StatusOr<ReceivedChunk> chunk =
      ReceivedChunk::Parse(SlicedMessage(WithFlippedBit(bytes, 8), 3));  // A bit of `step`.
  ASSERT_THAT(chunk, IsOk());
  EXPECT_THAT(chunk->CheckHeader(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("header was damaged on the way")));
}

TEST(ChunkTest, AHeaderIsIntactOnlyIfItsChecksumStandsRightBeforeTheData) {
  v1::Chunk header;
  header.set_step(7);
  const std::string fields = header.SerializeAsString();
  v1::Chunk guard;
  guard.set_header_crc32c(Crc32c(fields));
  const std::string crc = guard.SerializeAsString();
  v1::Chunk payload;
  payload.set_data("abc");
  const std::string data = payload.SerializeAsString();
  v1::Chunk other;
  other.set_core(3);
  const std::string field = other.SerializeAsString();
  const struct {
    const char* why;
    std::string bytes;
    bool intact;
  } kCases[] = {
      {"as it should be", fields + crc + data, true},
      {"a notice without data", fields + crc, true},
      {"no checksum", fields + data, false},
      {"a field between checksum and data", fields + crc + field + data, false},
      {"a field after the data", fields + crc + data + field, false},
      {"data twice", fields + crc + data + data, false},
      {"the checksum after the data", fields + data + crc, false},
      {"the checksum twice", fields + crc + crc + data, false},
      {"another field before the checksum", fields + field + crc + data, false},
  };
  for (const auto& test : kCases) {
    const absl::StatusOr<ReceivedChunk> chunk = ReceivedChunk::Parse(SlicedMessage(test.bytes, 2));
    ASSERT_THAT(chunk, IsOk()) << test.why;
    EXPECT_EQ(chunk->CheckHeader().ok(), test.intact) << test.why;
  }
}

TEST(ChunkTest, ReserializingTheHeaderReproducesItsChecksum) {
  // For clients that do not get the message's raw bytes, proto/README.md recommends this check.
  const std::vector<uint8_t> data = Data(100);
  v1::Chunk chunk;
  ASSERT_TRUE(chunk.ParseFromString(BytesOf(EncodeChunk(kHeader, data, nullptr))));
  const uint32_t told = chunk.header_crc32c();
  chunk.clear_data();
  chunk.clear_header_crc32c();
  EXPECT_EQ(Crc32c(chunk.SerializeAsString()), told);
}

TEST(ChunkTest, ATruncatedMessageIsRefusedExactlyIfProtobufRefusesIt) {
  const std::string bytes = BytesOf(EncodeChunk(kHeader, Data(10), nullptr));
  int refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const absl::StatusOr<ReceivedChunk> chunk =
        ReceivedChunk::Parse(SlicedMessage(bytes.substr(0, size), 3));
    v1::Chunk parsed;
    EXPECT_EQ(chunk.ok(), parsed.ParseFromString(bytes.substr(0, size))) << size;
    refused += chunk.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 20);
}

TEST(ChunkTest, FieldsMayComeInAnyOrderAndTheLastCounts) {
  v1::Chunk first, second;
  first.set_data("old data");
  first.set_step(7);
  first.set_crc32c(9);
  second.set_core(3);
  second.set_data("new");
  second.set_step(8);
  const std::string bytes = first.SerializeAsString() + second.SerializeAsString();
  const absl::StatusOr<ReceivedChunk> chunk = ReceivedChunk::Parse(SlicedMessage(bytes, 4));
  ASSERT_THAT(chunk, IsOk());
  EXPECT_EQ(chunk->header().step, 8);
  EXPECT_EQ(chunk->header().core, 3);
  EXPECT_EQ(chunk->header().crc32c, 9u);
  EXPECT_EQ(chunk->data_bytes(), 3);
}

TEST(ChunkTest, UnknownFieldsOfEveryWireTypeAreSkipped) {
  // Fields 100 to 103 have the wire types varint, eight bytes, text and four bytes. Then step = 7.
  const std::string bytes(
      "\xa0\x06\xff\x01"
      "\xa9\x06"
      "12345678"
      "\xb2\x06\x03"
      "abc"
      "\xbd\x06"
      "1234"
      "\x08\x07",
      4 + 10 + 6 + 6 + 2);
  const absl::StatusOr<ReceivedChunk> chunk = ReceivedChunk::Parse(SlicedMessage(bytes, 5));
  ASSERT_THAT(chunk, IsOk());
  EXPECT_EQ(chunk->header().step, 7);
}

TEST(ChunkTest, MalformedMessagesAreRefused) {
  const struct {
    const char* why;
    std::string bytes;
  } kCases[] = {
      {"field number 0", std::string("\x00\x01", 2)},
      {"a varint of eleven bytes", std::string("\x08") + std::string(10, '\xff') + "\x01"},
      {"a tag of seven bytes", "\x88\x80\x80\x80\x80\x80\x01\x01"},
      {"data longer than the message",
       "\x7a\x05"
       "abc"},
      {"data of nearly 2^64 bytes",
       "\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
       "abc"},
      {"a length of eight bytes", std::string("\x7a\x83\x80\x80\x80\x80\x80\x80\x00"
                                              "abc",
                                              12)},
      {"wire type 6", "\x0e\x01"},
      {"wire type 7", "\x0f\x01"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(ReceivedChunk::Parse(SlicedMessage(test.bytes, 2)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a Chunk message")))
        << test.why;
  }
}

TEST(ChunkTest, AnEmptyMessageIsAChunkOfDefaults) {
  const absl::StatusOr<ReceivedChunk> chunk = ReceivedChunk::Parse(SlicedMessage("", 1));
  ASSERT_THAT(chunk, IsOk());
  EXPECT_EQ(chunk->header(), ChunkHeader());
  EXPECT_EQ(chunk->data_bytes(), 0);
  EXPECT_THAT(chunk->CopyTo({}), IsOk());
}

TEST(ChunkTest, ADefaultConstructedByteBufferIsRefused) {
  EXPECT_THAT(ReceivedChunk::Parse(grpc::ByteBuffer()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("without bytes")));
}

}  // namespace
}  // namespace systole
