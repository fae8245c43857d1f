#include "core/record/record_format.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/crc32c.h"

namespace systole {

static_assert(std::endian::native == std::endian::little, "Loads and stores below copy bytes");

uint32_t LoadU32Le(const char* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

uint64_t LoadU64Le(const char* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

void StoreU32Le(uint32_t value, char* p) { std::memcpy(p, &value, sizeof(value)); }

void StoreU64Le(uint64_t value, char* p) { std::memcpy(p, &value, sizeof(value)); }

std::optional<uint64_t> DecodeRecordHeader(const char* header) {
  const uint32_t crc = Crc32c(absl::string_view(header, kLengthBytes));
  if (MaskCrc32c(crc) != LoadU32Le(header + kLengthBytes)) return std::nullopt;
  return LoadU64Le(header);
}

std::string HeaderCrcCause(const char* header) {
  return absl::StrFormat("CRC of the length field is 0x%08x, stored is 0x%08x",
                         PayloadFooter(absl::string_view(header, kLengthBytes)),
                         LoadU32Le(header + kLengthBytes));
}

std::string PayloadCrcCause(uint32_t computed_footer, uint32_t stored_footer) {
  return absl::StrFormat("CRC of the payload is 0x%08x, stored is 0x%08x", computed_footer,
                         stored_footer);
}

std::string TooLongCause(uint64_t length, uint64_t left) {
  return absl::StrCat("cut short, or its length is wrong: the header announces ", length,
                      " bytes of payload and 4 of CRC, ", left, " bytes are left");
}

std::string NoHeaderCause(uint64_t left) {
  return absl::StrCat("cut short: ", left, " bytes are left, a header has ", kRecordHeaderBytes);
}

void EncodeRecordHeader(uint64_t length, char* header) {
  StoreU64Le(length, header);
  StoreU32Le(MaskCrc32c(Crc32c(absl::string_view(header, kLengthBytes))), header + kLengthBytes);
}

uint32_t PayloadFooter(absl::string_view payload) { return MaskCrc32c(Crc32c(payload)); }

}  // namespace systole
