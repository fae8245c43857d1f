#include "core/record/source/shard_file.h"

#include <filesystem>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/record/shard_formats.h"
#include "core/record/tfrecord/record_writer.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/must_open.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;

constexpr Compression kKinds[] = {Compression::kNone, Compression::kGzip, Compression::kZlib,
                                  Compression::kZstd};

std::string Payload(int64_t record) {
  std::string payload(record * 977 % 5'000, static_cast<char>('a' + record % 26));
  for (size_t i = 0; i < payload.size(); i += 3) payload[i] = static_cast<char>(i * record);
  return payload;
}

std::string WriteShard(const TempFolder& folder, const std::string& name, Compression compression,
                       int64_t records = 400) {
  absl::StatusOr<RecordWriter> writer = RecordWriter::Create(folder / name, compression);
  EXPECT_THAT(writer, IsOk());
  for (int64_t record = 0; record < records; ++record) {
    EXPECT_THAT(writer->Write(Payload(record)), IsOk());
  }
  EXPECT_THAT(writer->Close(), IsOk());
  return folder / name;
}

TEST(ShardFileTest, CompressedShardsHoldWhatPlainOnesHold) {
  const TempFolder folder;
  const std::unique_ptr<RecordSource> plain =
      MustOpen(WriteShard(folder, "plain", Compression::kNone));
  for (const Compression compression : kKinds) {
    const std::string path =
        WriteShard(folder, std::string(CompressionName(compression)), compression);
    for (int again = 0; again < 2; ++again) {
      const std::unique_ptr<RecordSource> shard = MustOpen(path);
      EXPECT_EQ(shard->note(), "");
      EXPECT_EQ(shard->content_hash(), plain->content_hash());
      EXPECT_EQ(shard->size_bytes(), plain->size_bytes());
      for (int64_t i = 0; i < 400; ++i) EXPECT_EQ(shard->span(i), plain->span(i));
      AlignedBuffer scratch;
      for (int64_t i = 0; i < 400; ++i) {
        const int64_t record = i * 173 % 400;
        EXPECT_THAT(shard->ReadRecord(record, scratch), IsOkAndHolds(Eq(Payload(record))));
      }
    }
  }
  EXPECT_THAT(folder.List(),
              ElementsAre("gzip", "gzip.idx", "gzip.idx.hash", "gzip.idx.restart",  //
                          "none", "none.idx", "none.idx.hash",                      //
                          "plain", "plain.idx", "plain.idx.hash",                   //
                          "zlib", "zlib.idx", "zlib.idx.hash", "zlib.idx.restart",  //
                          "zstd", "zstd.idx", "zstd.idx.hash", "zstd.idx.restart"));
}

TEST(ShardFileTest, OpeningWithAnIgnoredIndexWritesNothing) {
  const TempFolder folder;
  const std::string path = WriteShard(folder, "a", Compression::kGzip);
  const absl::StatusOr<std::unique_ptr<RecordSource>> shard =
      OpenShard(path, {.index_use = IndexUse::kIgnore});
  ASSERT_THAT(shard, IsOk());
  AlignedBuffer scratch;
  EXPECT_THAT((*shard)->ReadRecord(399, scratch), IsOkAndHolds(Eq(Payload(399))));
  EXPECT_THAT(folder.List(), ElementsAre("a"));
}

TEST(ShardFileTest, AnEmptyShardIsEmptyInEveryCompression) {
  for (const Compression compression : kKinds) {
    const TempFolder folder;
    const std::unique_ptr<RecordSource> shard = MustOpen(WriteShard(folder, "a", compression, 0));
    EXPECT_EQ(shard->num_records(), 0);
    EXPECT_THAT(shard->CheckHoldsRecords(), IsOk());
  }
}

TEST(ShardFileTest, APlainShardThatBeginsAsACompressedOneIsPlain) {
  const TempFolder folder;
  // The low bytes of these lengths are the magic numbers of gzip and zlib.
  for (const size_t length : {0x8b1f, 0x0178, 0x9c78}) {
    const std::string path = folder / absl::StrCat(length);
    ShardBuilder().Add(std::string(length, 'x')).WriteTo(path);
    const absl::StatusOr<ShardFile> file = OpenShardFile(path, {}, TfRecordFormat().begins);
    ASSERT_THAT(file, IsOk());
    EXPECT_EQ(file->compression, Compression::kNone);
    EXPECT_EQ(MustOpen(path)->num_records(), 1);
  }
}

TEST(ShardFileTest, TheStatedCompressionOverridesDetection) {
  const TempFolder folder;
  const std::string gzip = WriteShard(folder, "gzip", Compression::kGzip);
  EXPECT_THAT(OpenShard(gzip, {.compression = Compression::kGzip}), IsOk());
  EXPECT_THAT(OpenShard(gzip, {.compression = Compression::kZstd}).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       testing::AllOf(HasSubstr("shard \"gzip\""), HasSubstr("zstd"))));
  const absl::StatusOr<std::unique_ptr<RecordSource>> none =
      OpenShard(gzip, {.index_use = IndexUse::kIgnore, .compression = Compression::kNone});
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT((*none)->CheckHoldsRecords(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::AllOf(HasSubstr("compressed with gzip"), HasSubstr("'detect'"))));
}

TEST(ShardFileTest, DamageInACompressedShardCostsOnlySomeOfItsRecords) {
  for (const Compression compression :
       {Compression::kGzip, Compression::kZlib, Compression::kZstd}) {
    SCOPED_TRACE(std::string(CompressionName(compression)));
    const TempFolder folder;
    const std::string path = WriteShard(folder, "a", compression, 2'000);
    (void)MustOpen(path);
    std::string bytes = ReadWholeFile(path);
    const auto mtime = std::filesystem::last_write_time(path);
    for (int i = 0; i < 30; ++i) bytes[bytes.size() / 2 + i] ^= 0x3c;
    folder.Write("a", bytes);
    std::filesystem::last_write_time(path, mtime);
    const std::unique_ptr<RecordSource> shard = MustOpen(path);
    AlignedBuffer scratch;
    int64_t lost = 0;
    for (int64_t record = 0; record < 2'000; ++record) {
      const absl::StatusOr<absl::string_view> payload = shard->ReadRecord(record, scratch);
      if (payload.ok()) {
        EXPECT_EQ(*payload, Payload(record));
        continue;
      }
      ++lost;
      EXPECT_THAT(payload.status(),
                  StatusIs(absl::StatusCode::kDataLoss,
                           HasSubstr(absl::StrCat("shard \"a\", record ", record))));
    }
    EXPECT_GT(lost, 0);
    EXPECT_LT(lost, 400);
  }
}

TEST(ShardFileTest, ShardsWrittenByTensorFlowAreRead) {
  // tests/golden/tensorflow/make_framing.py makes the same payloads.
  const auto payload = [](int64_t record) {
    std::string bytes(record * 37 % 4'000, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>(i * (record + 3) / 40 % 17 + 60);
    }
    return bytes;
  };
  for (const auto& [name, compression, records] : {std::tuple("none", Compression::kNone, 20),
                                                   {"gzip", Compression::kGzip, 300},
                                                   {"zlib", Compression::kZlib, 300}}) {
    SCOPED_TRACE(name);
    const std::string path = absl::StrCat("tests/golden/tensorflow/framing-", name, ".tfrecord");
    const TempFolder indexes;  // Keeps indexes out of the source tree.
    for (int again = 0; again < 2; ++again) {
      const absl::StatusOr<std::unique_ptr<RecordSource>> shard =
          OpenShard(path, {.index_dir = indexes.path()});
      ASSERT_THAT(shard, IsOk());
      ASSERT_EQ((*shard)->num_records(), records);
      AlignedBuffer scratch;
      for (int64_t record = records - 1; record >= 0; --record) {
        EXPECT_THAT((*shard)->ReadRecord(record, scratch), IsOkAndHolds(Eq(payload(record))));
      }
    }
    EXPECT_EQ(OpenShardFile(path, {}, TfRecordFormat().begins)->compression, compression);
  }
}

}  // namespace
}  // namespace systole
