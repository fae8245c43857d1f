// Any bytes as a checkpoint, as they are and with the size and the checksum that would fit: what is
// accepted is written back alike.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "client/emulator/training/checkpoint.h"
#include "core/checksum/xxh3.h"
#include "core/status/check.h"

namespace {

void Read(absl::string_view bytes) {
  const auto checkpoint = systole::emulator::DecodeCheckpoint(bytes);
  if (checkpoint.ok()) SYSTOLE_CHECK(systole::emulator::EncodeCheckpoint(*checkpoint) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Read(bytes);
  if (size < 32) return 0;
  const uint64_t total = size;
  std::memcpy(bytes.data() + 16, &total, sizeof(total));
  const uint64_t checksum = systole::Xxh3(absl::string_view(bytes).substr(0, size - 8));
  std::memcpy(bytes.data() + size - 8, &checksum, sizeof(checksum));
  Read(bytes);
  return 0;
}
