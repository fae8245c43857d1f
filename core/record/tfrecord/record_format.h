// The framing of a TFRecord shard: records one after the other, with nothing before, between or
// after.
//   record := length:u64le  masked_crc32c(length):u32le  payload  masked_crc32c(payload):u32le
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_TFRECORD_RECORD_FORMAT_H_
#define SYSTOLE_CORE_RECORD_TFRECORD_RECORD_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "core/checksum/crc32c.h"
#include "core/memory/little_endian.h"

namespace systole {

inline constexpr uint64_t kLengthBytes = 8;
inline constexpr uint64_t kRecordHeaderBytes = 12;  // Length and its CRC.
inline constexpr uint64_t kRecordFooterBytes = 4;   // CRC of the payload.
inline constexpr uint64_t kRecordFramingBytes = kRecordHeaderBytes + kRecordFooterBytes;

// The payload length in the kRecordHeaderBytes bytes at `header`, or nullopt if the length's CRC
// does not match. A length whose CRC matches may still be larger than the shard.
inline std::optional<uint64_t> DecodeRecordHeader(const char* header) {
  const uint64_t length = LoadU64Le(header);
  if (MaskCrc32c(Crc32cOfU64(length)) != LoadU32Le(header + kLengthBytes)) return std::nullopt;
  return length;
}

// These functions return the text that says why a record cannot be read. RecordReader, scan and
// random access use the same texts. A text does not name the shard, record or offset.
std::string HeaderCrcCause(const char* header);
std::string PayloadCrcCause(uint32_t computed_footer, uint32_t stored_footer);
// For a good header, if payload and footer do not fit into the `left` bytes after the header. What
// lay behind the end of a cut shard is not known, so the text gives the least number of lost bytes.
std::string TooLongCause(uint64_t length, uint64_t left);
// If only `left` bytes are left, fewer than a header has.
std::string NoHeaderCause(uint64_t left);

// The fault in the framing of a record that has `frame_bytes` bytes according to an index. `header`
// points to the first kRecordHeaderBytes bytes of the record, or to all its bytes if it has fewer.
// Empty: nothing is wrong.
std::string FramingCause(const char* header, uint64_t frame_bytes);

// Writes kRecordHeaderBytes bytes to `header`.
void EncodeRecordHeader(uint64_t length, char* header);

// The footer of this payload.
inline uint32_t PayloadFooter(absl::string_view payload) { return MaskCrc32c(Crc32c(payload)); }

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_TFRECORD_RECORD_FORMAT_H_
