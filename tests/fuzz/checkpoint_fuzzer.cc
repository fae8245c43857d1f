// Reads any bytes as a checkpoint: once as they are, and once with the lengths and checksums of
// their records put right. An accepted checkpoint stays the same when it is written and read again.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "client/emulator/training/checkpoint_file.h"
#include "core/status/check.h"
#include "core/storage/byte_sink.h"
#include "core/storage/memory_source.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/resealed_records.h"

using systole::MemorySource;
using systole::StringSink;
using systole::emulator::Checkpoint;

namespace {

std::string Written(const Checkpoint& checkpoint) {
  std::string bytes;
  SYSTOLE_CHECK(
      systole::emulator::WriteCheckpoint(checkpoint, "fuzz", std::make_unique<StringSink>(&bytes))
          .ok());
  return bytes;
}

void Read(const std::string& bytes) {
  const auto checkpoint = systole::emulator::ReadCheckpoint(MemorySource(bytes));
  if (!checkpoint.ok()) return;
  const std::string written = Written(*checkpoint);
  const auto again = systole::emulator::ReadCheckpoint(MemorySource(written));
  SYSTOLE_CHECK(again.ok() && Written(*again) == written);
}

}  // namespace

SYSTOLE_FUZZER(checkpoint, const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Read(bytes);
  Read(systole::ResealedRecords(bytes));
  return 0;
}
