#include "core/compression/compression.h"

#include "gtest/gtest.h"
#include "tests/core/compression/compressed_bytes.h"

namespace systole {
namespace {

TEST(CompressionTest, CompressionIsDetectedFromTheFirstBytes) {
  for (int level = 0; level <= 9; ++level) {
    EXPECT_EQ(CompressionOf(Deflate("abc", kGzipStream, level)), Compression::kGzip);
    EXPECT_EQ(CompressionOf(Deflate("abc", kZlibStream, level)), Compression::kZlib);
  }
  EXPECT_EQ(CompressionOf(Zstd("abc")), Compression::kZstd);
  EXPECT_EQ(CompressionOf(""), Compression::kNone);
  EXPECT_EQ(CompressionOf("\x1f"), Compression::kNone);
  EXPECT_EQ(CompressionOf("x"), Compression::kNone);
  EXPECT_EQ(CompressionOf("\xff\xd8\xff"), Compression::kNone);
}

TEST(CompressionTest, CompressionNamesParseBackIgnoringCase) {
  for (const absl::string_view name : CompressionNames()) {
    EXPECT_EQ(CompressionName(CompressionNamed(name).value()), name);
  }
  EXPECT_EQ(CompressionNamed("GZIP"), Compression::kGzip);
  EXPECT_EQ(CompressionNamed("lz4"), std::nullopt);
}

}  // namespace
}  // namespace systole
