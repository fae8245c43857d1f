#include "core/compression/compressing_sink.h"

#include <memory>
#include <string>

#include "core/compression/decompressed_source.h"
#include "core/storage/local/file_sink.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/compression/compressed_bytes.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr Compression kKinds[] = {Compression::kGzip, Compression::kZlib, Compression::kZstd};

std::string Compressed(const std::string& bytes, Compression compression, size_t piece) {
  std::string out;
  absl::StatusOr<std::unique_ptr<ByteSink>> sink =
      CompressingSink(std::make_unique<StringSink>(&out), compression);
  EXPECT_THAT(sink, IsOk());
  for (size_t at = 0; at < bytes.size(); at += piece) {
    EXPECT_THAT((*sink)->Append(absl::string_view(bytes).substr(at, piece)), IsOk());
  }
  EXPECT_THAT((*sink)->Close(), IsOk());
  EXPECT_THAT((*sink)->Close(), StatusIs(absl::StatusCode::kFailedPrecondition, testing::_));
  return out;
}

std::string Decompressed(const std::string& bytes, Compression compression) {
  const TempFolder folder;
  absl::StatusOr<std::unique_ptr<ByteSource>> file = OpenStored(folder.Write("a", bytes));
  std::string note;
  // A cache this small refuses a Zstandard file that is one large frame.
  const auto source = DecompressedSource::Open(*std::move(file),
                                               {.compression = compression,
                                                .restart_path = folder / "r",
                                                .chunks = std::make_shared<ChunkCache>(1 << 20)},
                                               &note);
  EXPECT_THAT(source, IsOk());
  EXPECT_EQ(note, "");
  std::string out((*source)->Size().value(), '\0');
  EXPECT_THAT((*source)->ReadAt(0, absl::MakeSpan(out)), IsOkAndHolds(out.size()));
  return out;
}

TEST(CompressingSinkTest, OutputDecompressesToTheInputAndDoesNotDependOnAppendSizes) {
  for (const Compression compression : kKinds) {
    SCOPED_TRACE(std::string(CompressionName(compression)));
    for (const size_t size : {size_t{0}, size_t{1}, size_t{256 << 10}, size_t{2'500'000}}) {
      const std::string bytes = MixedBytes(size, 9);
      const std::string whole = Compressed(bytes, compression, size + 1);
      EXPECT_EQ(CompressionOf(whole), compression);
      EXPECT_TRUE(Decompressed(whole, compression) == bytes) << size;
      EXPECT_TRUE(Compressed(bytes, compression, 10'007) == whole) << size;
    }
  }
}

TEST(CompressingSinkTest, WithoutCompressionBytesPassThroughUnchanged) {
  EXPECT_EQ(Compressed("abc", Compression::kNone, 2), "abc");
}

}  // namespace
}  // namespace systole
