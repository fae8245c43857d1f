// Compressed files of many kinds, and functions that open and read them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_COMPRESSION_COMPRESSED_CASES_H_
#define SYSTOLE_TESTS_CORE_COMPRESSION_COMPRESSED_CASES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/compression/compression.h"
#include "core/compression/decompressed_source.h"
#include "core/storage/byte_source.h"
#include "gtest/gtest.h"
#include "tests/core/compression/compressed_bytes.h"
#include "tests/status_matchers.h"

namespace systole {

inline constexpr size_t kBytes = 3 << 20;

// A compressed file.
struct Case {
  std::string name;
  Compression compression = Compression::kGzip;
  std::string compressed;
};

// Divides `bytes`, which has kBytes bytes, into three equal parts. Returns part 0, 1 or 2.
inline std::string Part(const std::string& bytes, int part) {
  return bytes.substr(part * kBytes / 3, kBytes / 3);
}

// Compressed files with the content `bytes`, which has kBytes bytes.
inline std::vector<Case> Cases(const std::string& bytes) {
  const std::string members = Deflate(Part(bytes, 0), kGzipStream, 1) +
                              Deflate(Part(bytes, 1), kGzipStream, 0) + Deflate("", kGzipStream) +
                              Deflate(Part(bytes, 2), kGzipStream, 9);
  return {{"gzip", Compression::kGzip, Deflate(bytes, kGzipStream)},
          {"gzip stored", Compression::kGzip, Deflate(bytes, kGzipStream, 0)},
          {"gzip members", Compression::kGzip, members},
          {"gzip members, filled up", Compression::kGzip,
           Deflate(Part(bytes, 0), kGzipStream) + std::string(500, '\0') +
               Deflate(Part(bytes, 1) + Part(bytes, 2), kGzipStream)},
          {"zlib", Compression::kZlib, Deflate(bytes, kZlibStream)},
          {"zstd one frame", Compression::kZstd, Zstd(bytes)},
          {"zstd frames", Compression::kZstd, Zstd(bytes, 100'000)},
          {"zstd tiny frames", Compression::kZstd, Zstd(bytes, 5'000)}};
}

// The result of DecompressedSource::Open().
struct Opened {
  absl::StatusOr<std::unique_ptr<DecompressedSource>> source = absl::UnknownError("not opened");
  std::string note;
};

// The bytes at `offset`, fewer at the end.
inline std::string Read(const ByteSource& source, uint64_t offset, size_t bytes) {
  std::string out(bytes, '?');
  const absl::StatusOr<size_t> read = source.ReadAt(offset, absl::MakeSpan(out));
  EXPECT_THAT(read, IsOk());
  out.resize(read.value_or(0));
  return out;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_COMPRESSION_COMPRESSED_CASES_H_
