#include "core/compression/decompressed_source.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/compression/restart_points.h"
#include "core/interrupt/interrupt.h"
#include "core/storage/memory_source.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/compression/compressed_cases.h"
#include "tests/core/storage/error_source.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Opened Open(const std::string& path, const DecompressedOptions& options) {
  absl::StatusOr<std::unique_ptr<ByteSource>> file = OpenStored(path);
  EXPECT_THAT(file, IsOk());
  Opened opened;
  opened.source = DecompressedSource::Open(*std::move(file), options, &opened.note);
  return opened;
}

// Reads at many places, backwards, so that no read continues where the last one ended.
void ExpectHolds(const ByteSource& source, const std::string& bytes) {
  ASSERT_EQ(source.Size().value(), bytes.size());
  for (size_t at = 0; at <= bytes.size(); at += 37'123) {
    const size_t offset = bytes.size() - at;
    ASSERT_TRUE(Read(source, offset, 5'000) == bytes.substr(offset, 5'000)) << offset;
  }
  EXPECT_TRUE(Read(source, 0, bytes.size() + 10) == bytes);
  EXPECT_EQ(Read(source, bytes.size() + 5, 10), "");
}

TEST(DecompressedSourceTest, AllBytesReadBackAfterAScanAndFromARestartFile) {
  const std::string bytes = MixedBytes(kBytes, 1);
  for (const Case& one : Cases(bytes)) {
    SCOPED_TRACE(one.name);
    const TempFolder folder;
    const std::string path = folder.Write("a", one.compressed);
    const DecompressedOptions kept = {.compression = one.compression,
                                      .restart_path = folder / "a.restart"};
    for (int again = 0; again < 2; ++again) {
      const Opened opened = Open(path, kept);
      ASSERT_THAT(opened.source, IsOk());
      EXPECT_EQ(opened.note, "");
      ExpectHolds(**opened.source, bytes);
    }
    const Opened in_memory = Open(path, {.compression = one.compression});
    ASSERT_THAT(in_memory.source, IsOk());
    ExpectHolds(**in_memory.source, bytes);
  }
}

TEST(DecompressedSourceTest, ASmallCacheServesAllFilesButASingleZstdFrame) {
  const std::string bytes = MixedBytes(kBytes, 1);
  for (const Case& one : Cases(bytes)) {
    SCOPED_TRACE(one.name);
    const TempFolder folder;
    // The cache holds a third of the bytes. It refuses chunks larger than half of the cache.
    const Opened opened =
        Open(folder.Write("a", one.compressed), {.compression = one.compression,
                                                 .restart_path = folder / "a.restart",
                                                 .chunks = std::make_shared<ChunkCache>(1 << 20)});
    if (one.name == "zstd one frame") {
      EXPECT_THAT(opened.source.status(),
                  StatusIs(absl::StatusCode::kResourceExhausted,
                           AllOf(HasSubstr("shard \"a\""), HasSubstr("524288"),
                                 HasSubstr("--decompression-cache"),
                                 HasSubstr("systole pack --compression zstd"))));
      continue;
    }
    ASSERT_THAT(opened.source, IsOk());
    ExpectHolds(**opened.source, bytes);
  }
}

// Makes bytes that do not compress.
std::string Noise(size_t size) {
  std::string bytes;
  for (uint64_t state = 1; bytes.size() < size;) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    bytes.push_back(static_cast<char>(state >> 56));
  }
  return bytes;
}

TEST(DecompressedSourceTest, AScanOfAFileThatIsNotLocalTakesFewReads) {
  const std::string noise = Noise(6 << 20);
  const std::pair<Compression, std::string> kFiles[] = {
      {Compression::kGzip, Deflate(noise, kGzipStream, 0)},
      {Compression::kZstd, Zstd(noise, 64 << 10)}};
  for (const auto& [compression, bytes] : kFiles) {
    auto file = std::make_unique<ErrorSource>(bytes);
    ErrorSource& source = *file;
    source.MoveAway();
    std::string note;
    const absl::StatusOr<std::unique_ptr<DecompressedSource>> opened =
        DecompressedSource::Open(std::move(file), {.compression = compression}, &note);
    ASSERT_THAT(opened, IsOk());
    // The first read takes 128 or 256 KiB, and each later read twice as much as the one before.
    EXPECT_LE(source.num_reads(), 7);
    EXPECT_LE(source.longest_read(), uint64_t{8} << 20);
    EXPECT_EQ(Read(**opened, 5'000'000, 1000), noise.substr(5'000'000, 1000));
  }
}

TEST(DecompressedSourceTest, AnInterruptedScanEndsAsCancelled) {
  InterruptFlag unwanted;
  unwanted.Raise();
  const InterruptScope scope(unwanted);
  for (const Case& c : Cases(MixedBytes(kBytes, 1))) {
    std::string note;
    EXPECT_THAT(DecompressedSource::Open(std::make_unique<MemorySource>(c.compressed),
                                         {.compression = c.compression}, &note),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("no longer needed")))
        << c.name;
  }
}

TEST(DecompressedSourceTest, ACompressedEmptyInputReadsAsEmpty) {
  for (const auto& [compression, bytes] : {std::pair(Compression::kGzip, Deflate("", kGzipStream)),
                                           std::pair(Compression::kZlib, Deflate("", kZlibStream)),
                                           std::pair(Compression::kZstd, Zstd(""))}) {
    const TempFolder folder;
    const std::string path = folder.Write("a", bytes);
    for (int again = 0; again < 2; ++again) {
      const Opened opened =
          Open(path, {.compression = compression, .restart_path = folder / "a.restart"});
      ASSERT_THAT(opened.source, IsOk());
      EXPECT_EQ(opened.note, "");
      ExpectHolds(**opened.source, "");
    }
  }
}

TEST(DecompressedSourceTest, TruncatedMislabelledAndChecksummedDamagedFilesAreDataLoss) {
  const std::string bytes = MixedBytes(kBytes, 2);
  const TempFolder folder;
  std::vector<Case> cases = Cases(bytes);
  const std::string checked = "zstd with a checksum";
  // Noise is stored as it is, so only the checksum can show that it is damaged.
  cases.push_back({checked, Compression::kZstd, ZstdWithChecksum(Noise(300'000))});
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const std::string cut = one.compressed.substr(0, one.compressed.size() - 3);
    EXPECT_THAT(Open(folder.Write("cut", cut), {.compression = one.compression}).source.status(),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("shard \"cut\""),
                               HasSubstr(absl::StrCat("near byte ", cut.size())))));
    std::string flipped = one.compressed;
    flipped[flipped.size() - 5] ^= 0x10;  // In gzip's checksum, or in the last block.
    flipped[flipped.size() / 2] ^= 0x10;
    const absl::Status status =
        Open(folder.Write("flipped", flipped), {.compression = one.compression}).source.status();
    // A zstd frame has a checksum only if its writer adds one, and the writer of the other frames
    // adds none. In a shard of such frames, the CRCs of the records detect the damage.
    if (one.compression != Compression::kZstd) {
      EXPECT_THAT(status,
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("stream is damaged near byte")));
    } else if (one.name == checked) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                   HasSubstr("zstd frames are damaged near byte")));
    }
    for (const Compression stated : {Compression::kGzip, Compression::kZlib, Compression::kZstd}) {
      if (stated == one.compression) continue;
      EXPECT_THAT(
          Open(folder.Write("other", one.compressed), {.compression = stated}).source.status(),
          StatusIs(absl::StatusCode::kDataLoss,
                   HasSubstr(absl::StrCat("does not begin as ", CompressionName(stated)))));
    }
  }
  EXPECT_THAT(
      Open(folder.Write("more", Deflate(bytes, kZlibStream) + "x"),
           {.compression = Compression::kZlib})
          .source.status(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("bytes follow the end of the stream")));
}

// The restart points that the file at `restart_path` keeps for the file at `path`.
RestartPoints PointsIn(const std::string& restart_path, const std::string& path,
                       Compression compression) {
  const std::string kept = ReadWholeFile(restart_path);
  const uint64_t table = RestartTableSize(kept.substr(kept.size() - kRestartTrailerBytes)).value();
  const absl::StatusOr<RestartPoints> points =
      ParseRestartTable(kept.substr(kept.size() - table), StatStored(path).value(), compression,
                        ChunkCache().max_chunk_bytes());
  EXPECT_THAT(points, IsOk());
  return points.value();
}

TEST(DecompressedSourceTest, DamageAfterTheScanChangesOnlyBytesOfDamagedChunks) {
  constexpr size_t kDamagedBytes = 40;
  const std::string bytes = MixedBytes(kBytes, 3);
  for (const Case& one : Cases(bytes)) {
    if (one.name == "zstd one frame") continue;  // All of its bytes are one chunk.
    SCOPED_TRACE(one.name);
    const TempFolder folder;
    const std::string path = folder.Write("a", one.compressed);
    const DecompressedOptions kept = {.compression = one.compression,
                                      .restart_path = folder / "a.restart"};
    ASSERT_THAT(Open(path, kept).source, IsOk());
    std::string damaged = one.compressed;
    const size_t at = damaged.size() / 2;
    for (size_t i = 0; i < kDamagedBytes; ++i) damaged[at + i] ^= 0x55;
    const auto mtime = std::filesystem::last_write_time(path);
    folder.Write("a", damaged);
    std::filesystem::last_write_time(path, mtime);
    const Opened opened = Open(path, kept);
    ASSERT_THAT(opened.source, IsOk());
    EXPECT_EQ(opened.note, "");
    const std::string read = Read(**opened.source, 0, bytes.size());
    ASSERT_EQ(read.size(), bytes.size());
    EXPECT_FALSE(read == bytes);
    const RestartPoints points = PointsIn(kept.restart_path, path, one.compression);
    uint64_t damaged_bytes = 0;
    for (size_t chunk = 0; chunk < points.chunks(); ++chunk) {
      const uint64_t begin_bit = points.points[chunk].compressed_bit;
      const uint64_t end_bit = chunk + 1 < points.chunks() ? points.points[chunk + 1].compressed_bit
                                                           : 8 * damaged.size();
      const uint64_t begin = points.points[chunk].offset;
      const uint64_t size = points.chunk_bytes(chunk);
      if (begin_bit < 8 * (at + kDamagedBytes) && end_bit > 8 * at) {
        damaged_bytes += size;
      } else {
        EXPECT_TRUE(read.substr(begin, size) == bytes.substr(begin, size)) << chunk;
      }
    }
    EXPECT_LT(damaged_bytes, 600'000u);
  }
}

TEST(DecompressedSourceTest, AnInvalidOrStaleRestartFileIsRebuiltWithANote) {
  const std::string bytes = MixedBytes(kBytes, 4);
  const std::string compressed = Deflate(bytes, kGzipStream);
  const TempFolder folder;
  const std::string path = folder.Write("a", compressed);
  const DecompressedOptions kept = {.compression = Compression::kGzip,
                                    .restart_path = folder / "a.restart"};
  ASSERT_THAT(Open(path, kept).source, IsOk());
  const std::string good = ReadWholeFile(folder / "a.restart");
  const auto notes = [&](const std::string& restart) {
    folder.Write("a.restart", restart);
    const Opened opened = Open(path, kept);
    EXPECT_THAT(opened.source, IsOk());
    if (opened.source.ok()) ExpectHolds(**opened.source, bytes);
    EXPECT_EQ(ReadWholeFile(folder / "a.restart"), good);
    return opened.note;
  };
  EXPECT_EQ(notes(good), "");
  EXPECT_THAT(notes(""), HasSubstr("does not end like"));
  EXPECT_THAT(notes(good.substr(1)), HasSubstr("more or fewer windows"));
  EXPECT_THAT(notes(good.substr(good.size() - kRestartTrailerBytes)), HasSubstr("cut short"));
  std::string flipped = good;
  flipped[flipped.size() - kRestartTrailerBytes - 3] ^= 1;
  EXPECT_THAT(notes(flipped), HasSubstr("checksum does not match"));

  ShiftMtime(folder / "a.restart", -3600);  // The age of the restart file must not matter.
  EXPECT_EQ(Open(path, kept).note, "");
  ShiftMtime(path, 100);
  EXPECT_THAT(Open(path, kept).note, HasSubstr("another state of the shard"));
}

TEST(DecompressedSourceTest, ADamagedRestartWindowIsUnavailableAndNamesTheRestartFile) {
  const std::string bytes = MixedBytes(kBytes, 7);
  const TempFolder folder;
  const std::string path = folder.Write("a", Deflate(bytes, kGzipStream));
  const DecompressedOptions kept = {.compression = Compression::kGzip,
                                    .restart_path = folder / "a.restart"};
  ASSERT_THAT(Open(path, kept).source, IsOk());
  std::string damaged = ReadWholeFile(folder / "a.restart");
  damaged[2 * kWindowBytes + 5] ^= 1;
  folder.Write("a.restart", damaged);
  const Opened opened = Open(path, kept);
  ASSERT_THAT(opened.source, IsOk());
  std::string out(bytes.size(), '\0');
  EXPECT_THAT((*opened.source)->ReadAt(0, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("shard \"a\""), HasSubstr("remove \"a.restart\""))));
  EXPECT_TRUE(Read(**opened.source, 0, 100'000) == bytes.substr(0, 100'000));
}

TEST(DecompressedSourceTest, TemporaryFilesOfAKilledScanAreRemoved) {
  const TempFolder folder;
  const std::string path = folder.Write("a", Deflate("abc", kGzipStream));
  folder.Write(".a.restart.999999999.0.tmp", "left");
  ASSERT_THAT(
      Open(path, {.compression = Compression::kGzip, .restart_path = folder / "a.restart"}).source,
      IsOk());
  EXPECT_THAT(folder.List(), ElementsAre("a", "a.restart"));
}

TEST(DecompressedSourceTest, ZeroPaddingAfterAGzipMemberIsIgnored) {
  const TempFolder folder;
  const std::string path =
      folder.Write("a", Deflate("abc", kGzipStream) + std::string(1'000, '\0'));
  const Opened opened = Open(path, {.compression = Compression::kGzip});
  ASSERT_THAT(opened.source, IsOk());
  ExpectHolds(**opened.source, "abc");
  EXPECT_THAT(
      Open(folder.Write("b", Deflate("abc", kGzipStream) + std::string("\0\0x", 3)),
           {.compression = Compression::kGzip})
          .source.status(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("bytes follow the end of the stream")));
}

TEST(DecompressedSourceTest, AFileOfZeroBytesReadsAsEmpty) {
  for (const Compression compression :
       {Compression::kGzip, Compression::kZlib, Compression::kZstd}) {
    const TempFolder folder;
    const Opened opened = Open(folder.Write("a", ""), {.compression = compression});
    ASSERT_THAT(opened.source, IsOk());
    ExpectHolds(**opened.source, "");
  }
}

TEST(DecompressedSourceTest, RestartPointsStayInMemoryIfTheirFileCannotBeWritten) {
  const std::string bytes = MixedBytes(kBytes, 5);
  const TempFolder folder;
  const Opened opened =
      Open(folder.Write("a", Deflate(bytes, kGzipStream)),
           {.compression = Compression::kGzip, .restart_path = folder / "none/a.restart"});
  ASSERT_THAT(opened.source, IsOk());
  EXPECT_THAT(opened.note, AllOf(HasSubstr("not kept"), HasSubstr("--index-dir")));
  ExpectHolds(**opened.source, bytes);
  EXPECT_THAT(folder.List(), ElementsAre("a"));
}

TEST(DecompressedSourceTest, AFailedScanLeavesNothingBehind) {
  const TempFolder folder;
  const std::string cut = Deflate(MixedBytes(kBytes, 6), kGzipStream).substr(0, 400'000);
  EXPECT_FALSE(Open(folder.Write("a", cut),
                    {.compression = Compression::kGzip, .restart_path = folder / "a.restart"})
                   .source.ok());
  EXPECT_THAT(folder.List(), ElementsAre("a"));
}

TEST(DecompressedSourceTest, AChangedFileIsNoticed) {
  const TempFolder folder;
  const std::string path = folder.Write("a", Deflate("abc", kGzipStream));
  const Opened opened = Open(path, {.compression = Compression::kGzip});
  ASSERT_THAT(opened.source, IsOk());
  EXPECT_THAT((*opened.source)->CheckUnchanged(), IsOk());
  ShiftMtime(path, 10);
  EXPECT_THAT((*opened.source)->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was rewritten")));
}

}  // namespace
}  // namespace systole
