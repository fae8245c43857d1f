// Reads any bytes as a table of restart points. The chunks of an accepted table are in order
// and have at most 500 bytes each. Writing the table gives the bytes that were read. The test puts
// a good checksum and identity into the bytes, because otherwise no table would be accepted.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/checksum/xxh3.h"
#include "core/compression/restart_points.h"
#include "core/memory/little_endian.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(restart_table, const uint8_t* data, size_t size) {
  using namespace systole;
  constexpr size_t kHashAndMagic = 16;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const StoredState file = {.size_bytes = 1000, .identity = "1000 7"};
  (void)ParseRestartTable(bytes, file, Compression::kGzip, 500);
  if (bytes.size() < kRestartTrailerBytes) return 0;
  const size_t hashed = bytes.size() - kHashAndMagic;
  StoreU64Le(Xxh3(file.identity), &bytes[bytes.size() - kRestartTrailerBytes + 8]);
  StoreU64Le(Xxh3(absl::string_view(bytes).substr(0, hashed)), &bytes[hashed]);
  const absl::StatusOr<RestartPoints> parsed =
      ParseRestartTable(bytes, file, Compression::kGzip, 500);
  if (!parsed.ok()) return 0;
  SYSTOLE_CHECK(parsed->largest_chunk_bytes() <= 500);
  for (size_t i = 0; i < parsed->chunks(); ++i) {
    SYSTOLE_CHECK(parsed->chunk_bytes(i) > 0 || parsed->size_bytes == 0);
    SYSTOLE_CHECK(parsed->size_bytes == 0 || parsed->ChunkAt(parsed->points[i].offset) == i);
  }
  SYSTOLE_CHECK(RestartTableBytes(file, Compression::kGzip, *parsed) == bytes);
  return 0;
}
