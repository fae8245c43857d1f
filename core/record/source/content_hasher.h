// Computes RecordSource::content_hash() for records that follow each other in a file. The hash is
// XXH3-64 over two numbers for each record, in order: the record's size in the file (u64le) and a
// checksum of the record (u32le).
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_CONTENT_HASHER_H_
#define SYSTOLE_CORE_RECORD_SOURCE_CONTENT_HASHER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/checksum/xxh3.h"
#include "core/memory/little_endian.h"

namespace systole {

class ContentHasher {
 public:
  void Add(uint64_t bytes, uint32_t checksum) {
    if (entries_bytes_ == entries_.size()) Flush();
    StoreU64Le(bytes, &entries_[entries_bytes_]);
    StoreU32Le(checksum, &entries_[entries_bytes_ + 8]);
    entries_bytes_ += kEntryBytes;
  }
  uint64_t Digest() {
    Flush();
    return hasher_.Digest64();
  }

 private:
  static constexpr size_t kEntryBytes = 12;

  void Flush() {
    hasher_.Update(absl::string_view(entries_.data(), entries_bytes_));
    entries_bytes_ = 0;
  }

  Xxh3Hasher hasher_;
  // Many entries are hashed at once, because for a single entry the call costs more than the hash.
  std::array<char, 256 * kEntryBytes> entries_;
  size_t entries_bytes_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_CONTENT_HASHER_H_
