// Reads any bytes as a file of the disk cache. An accepted entry is written back equal. The bytes
// are also tried with a good hash, because otherwise almost nothing would be accepted.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/cache/disk_entry.h"
#include "core/checksum/xxh3.h"
#include "core/memory/little_endian.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(cache_entry, const uint8_t* data, size_t size) {
  using namespace systole;
  std::string file(reinterpret_cast<const char*>(data), size);
  const CacheKey key = {.high = 0x1122334455667788, .low = 0x99aabbccddeeff00};
  const auto check = [&] {
    const absl::string_view header = absl::string_view(file).substr(0, kDiskEntryHeaderBytes);
    const absl::string_view value = absl::string_view(file).substr(header.size());
    if (!CheckDiskEntry(key, header, value).ok()) return;
    SYSTOLE_CHECK(DiskEntryHeader(key, value) + std::string(value) == file);
  };
  check();
  CacheKey named;
  if (ParseDiskEntryName(file, named)) SYSTOLE_CHECK(DiskEntryName(named) == file);
  if (file.size() < kDiskEntryHeaderBytes) return 0;
  StoreU64Le(Xxh3(absl::string_view(file).substr(kDiskEntryHeaderBytes)),
             &file[kDiskEntryHeaderBytes - 8]);
  check();
  return 0;
}
