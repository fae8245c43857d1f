#include "core/record/tfrecord/record_format.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/crc32c.h"

namespace systole {
namespace {

// A payload of `length` bytes and its CRC should follow, but only `left` bytes are there. Returns
// how many bytes are missing. REQUIRES: `left` is less than the bytes of payload and CRC together.
uint64_t MissingBytes(uint64_t length, uint64_t left) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();  // The length may be anything.
  return (length > kMost - kRecordFooterBytes ? kMost : length + kRecordFooterBytes) - left;
}

}  // namespace

std::string HeaderCrcCause(const char* header) {
  return absl::StrFormat("CRC of the length field is 0x%08x, stored is 0x%08x",
                         MaskCrc32c(Crc32cOfU64(LoadU64Le(header))),
                         LoadU32Le(header + kLengthBytes));
}

std::string PayloadCrcCause(uint32_t computed_footer, uint32_t stored_footer) {
  return absl::StrFormat("CRC of the payload is 0x%08x, stored is 0x%08x", computed_footer,
                         stored_footer);
}

std::string TooLongCause(uint64_t length, uint64_t left) {
  return absl::StrCat("cut short, or its length is wrong: the header announces ", length,
                      " bytes of payload and 4 of CRC, ", left,
                      " bytes are left; if it is cut, 1 record or more is lost, at least ",
                      MissingBytes(length, left), " bytes");
}

std::string NoHeaderCause(uint64_t left) {
  return absl::StrCat("cut short: ", left, " bytes are left, a header has ", kRecordHeaderBytes,
                      "; 1 record or more is lost, at least ", kRecordFramingBytes - left,
                      " bytes");
}

std::string FramingCause(const char* header, uint64_t frame_bytes) {
  if (frame_bytes < kRecordHeaderBytes) return NoHeaderCause(frame_bytes);
  const std::optional<uint64_t> length = DecodeRecordHeader(header);
  if (!length.has_value()) return HeaderCrcCause(header);
  const uint64_t left = frame_bytes - kRecordHeaderBytes;
  if (left < kRecordFooterBytes || *length > left - kRecordFooterBytes) {
    return TooLongCause(*length, left);
  }
  if (*length == left - kRecordFooterBytes) return "";
  return absl::StrCat("the header announces ", *length, " bytes of payload, but the index says ",
                      left - kRecordFooterBytes, "; delete the index file");
}

void EncodeRecordHeader(uint64_t length, char* header) {
  StoreU64Le(length, header);
  StoreU32Le(MaskCrc32c(Crc32cOfU64(length)), header + kLengthBytes);
}

}  // namespace systole
