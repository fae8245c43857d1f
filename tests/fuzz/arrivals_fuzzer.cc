// Reads any bytes as a recording: once as they are, and once with the lengths and checksums of
// their records put right. An accepted recording is written back equal. The replay of a recording
// has all steps of the recording, and the times of each core add up to the replay's time.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "client/emulator/timing/arrivals_file.h"
#include "client/emulator/timing/replay.h"
#include "core/status/check.h"
#include "core/storage/byte_sink.h"
#include "core/storage/memory_source.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/resealed_records.h"

using systole::MemorySource;
using systole::StringSink;
using systole::emulator::Arrivals;
using systole::emulator::TimingBooks;
using systole::emulator::Utilisation;

namespace {

void ExpectWrittenAlike(const Arrivals& arrivals) {
  std::string bytes;
  SYSTOLE_CHECK(
      systole::emulator::WriteArrivals(arrivals, "fuzz", std::make_unique<StringSink>(&bytes))
          .ok());
  const absl::StatusOr<Arrivals> again = systole::emulator::ReadArrivals(MemorySource(bytes));
  SYSTOLE_CHECK(again.ok() && *again == arrivals);
}

void Read(const std::string& bytes) {
  const absl::StatusOr<Arrivals> arrivals = systole::emulator::ReadArrivals(MemorySource(bytes));
  if (!arrivals.ok()) return;
  ExpectWrittenAlike(*arrivals);
  const absl::StatusOr<TimingBooks> books =
      systole::emulator::Replay(*arrivals, {.cores_per_chip = 2,
                                            .step_time = absl::Microseconds(375),
                                            .transfer_time = absl::Microseconds(50)});
  SYSTOLE_CHECK(books.ok() && books->steps() == arrivals->steps());
  const Utilisation used = books->utilisation();
  for (const systole::emulator::CoreBooks& core : used.cores) {
    SYSTOLE_CHECK(used.compute + core.infeed_stall + core.barrier == used.total);
  }
}

}  // namespace

SYSTOLE_FUZZER(arrivals, const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Read(bytes);
  Read(systole::ResealedRecords(bytes));
  return 0;
}
