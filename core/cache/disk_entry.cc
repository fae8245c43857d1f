#include "core/cache/disk_entry.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "core/checksum/xxh3.h"
#include "core/memory/little_endian.h"

namespace systole {
namespace {

// The last digit is the version of the file's format.
constexpr absl::string_view kMagic = "systole cache 1\n";
constexpr size_t kKeyAt = 16;
constexpr size_t kSizeAt = 32;
constexpr size_t kHashAt = 40;

}  // namespace

std::string DiskEntryHeader(const CacheKey& key, absl::string_view value) {
  std::string header(kDiskEntryHeaderBytes, '\0');
  kMagic.copy(header.data(), kMagic.size());
  StoreU64Le(key.high, &header[kKeyAt]);
  StoreU64Le(key.low, &header[kKeyAt + 8]);
  StoreU64Le(value.size(), &header[kSizeAt]);
  StoreU64Le(Xxh3(value), &header[kHashAt]);
  return header;
}

absl::Status CheckDiskEntry(const CacheKey& key, absl::string_view header,
                            absl::string_view value) {
  if (header.size() != kDiskEntryHeaderBytes || header.substr(0, kMagic.size()) != kMagic) {
    return absl::DataLossError("it is not a cache file of this version");
  }
  if (LoadU64Le(&header[kKeyAt]) != key.high || LoadU64Le(&header[kKeyAt + 8]) != key.low) {
    return absl::DataLossError("it is the value of another key");
  }
  if (LoadU64Le(&header[kSizeAt]) != value.size()) {
    return absl::DataLossError("its size differs from the size in its header");
  }
  if (LoadU64Le(&header[kHashAt]) != Xxh3(value)) {
    return absl::DataLossError("its hash does not match");
  }
  return absl::OkStatus();
}

std::string DiskEntryName(const CacheKey& key) {
  return absl::StrFormat("%016x%016x", key.high, key.low);
}

bool ParseDiskEntryName(absl::string_view name, CacheKey& key) {
  if (name.size() != 32) return false;
  for (const char c : name) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c)) && (c < 'a' || c > 'f')) return false;
  }
  return absl::SimpleHexAtoi(name.substr(0, 16), &key.high) &&
         absl::SimpleHexAtoi(name.substr(16), &key.low);
}

}  // namespace systole
