// A file of arrivals is input like any other: whatever it says, it is refused, or it is written
// again as it was and replays with books that add up.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "client/emulator/timing/arrivals.h"
#include "client/emulator/timing/replay.h"
#include "core/status/check.h"

using systole::emulator::Arrivals;
using systole::emulator::TimingBooks;
using systole::emulator::Utilisation;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Arrivals> arrivals = systole::emulator::ParseArrivals(text, "fuzz");
  if (!arrivals.ok()) return 0;
  const absl::StatusOr<Arrivals> again =
      systole::emulator::ParseArrivals(systole::emulator::ArrivalsText(*arrivals), "again");
  SYSTOLE_CHECK(again.ok() && *again == *arrivals);
  const absl::StatusOr<TimingBooks> books =
      systole::emulator::Replay(*arrivals, {.cores_per_chip = 2,
                                            .step_time = absl::Microseconds(375),
                                            .transfer_time = absl::Microseconds(50)});
  SYSTOLE_CHECK(books.ok() && books->steps() == arrivals->steps());
  const Utilisation used = books->utilisation();
  for (const systole::emulator::CoreBooks& core : used.cores) {
    SYSTOLE_CHECK(used.compute + core.infeed_stall + core.barrier == used.total);
  }
  return 0;
}
