// Builds the bytes of a TFRecord shard, good or damaged on purpose, without the code under test
// (except for the checksum).
//
//   ShardBuilder().Add("abc").Add("defg").Build()
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_RECORD_TFRECORD_SHARD_BUILDER_H_
#define SYSTOLE_TESTS_CORE_RECORD_TFRECORD_SHARD_BUILDER_H_

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/strings/string_view.h"
#include "core/checksum/crc32c.h"
#include "core/status/check.h"

namespace systole {

class ShardBuilder {
 public:
  // Appends one good record.
  ShardBuilder& Add(absl::string_view payload) {
    AddHeader(payload.size());
    bytes_.append(payload.data(), payload.size());
    AppendLe(MaskCrc32c(Crc32c(payload)), 4);
    return *this;
  }

  // Appends only a header, which says that `length` bytes follow. Its CRC is right.
  ShardBuilder& AddHeader(uint64_t length) {
    const size_t begin = bytes_.size();
    AppendLe(length, 8);
    AppendLe(MaskCrc32c(Crc32c(absl::string_view(bytes_).substr(begin, 8))), 4);
    return *this;
  }

  // Appends bytes as they are.
  ShardBuilder& AddRaw(absl::string_view bytes) {
    bytes_.append(bytes.data(), bytes.size());
    return *this;
  }

  uint64_t size() const { return bytes_.size(); }
  std::string Build() const { return bytes_; }

  // Writes the bytes to the file `path`, in place (the inode stays).
  void WriteTo(const std::string& path) const {
    std::ofstream out(path, std::ios::binary);
    out << bytes_;
    out.close();
    SYSTOLE_CHECK(out.good());
  }

 private:
  void AppendLe(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }

  std::string bytes_;
};

// Returns `bytes` with one bit flipped. Bit 0 is the lowest of byte 0.
inline std::string WithFlippedBit(std::string bytes, uint64_t bit) {
  SYSTOLE_CHECK(bit / 8 < bytes.size());
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  return bytes;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_RECORD_TFRECORD_SHARD_BUILDER_H_
