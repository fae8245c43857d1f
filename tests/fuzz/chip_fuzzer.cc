// Reads any text as a chip. The text is refused with a message, or every number that follows from
// the chip is finite.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "client/emulator/chip/all_reduce_model.h"
#include "client/emulator/chip/chip.h"
#include "client/emulator/chip/compiler.h"
#include "client/emulator/shipped/shipped_files.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

using systole::emulator::AllReduceSeconds;
using systole::emulator::AllReduceShape;

SYSTOLE_FUZZER(chip, const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<systole::v1::Chip> chip = systole::emulator::ParseChip(text, "fuzz");
  if (!chip.ok()) {
    SYSTOLE_CHECK(!chip.status().message().empty());
    return 0;
  }
  SYSTOLE_CHECK(std::isfinite(systole::emulator::PeakFlops(*chip)));
  SYSTOLE_CHECK(std::isfinite(systole::emulator::RidgeFlopsPerByte(*chip)));
  for (const systole::v1::Slice& slice : chip->slices()) {
    SYSTOLE_CHECK(systole::emulator::FindSlice(*chip, slice.name()).ok());
    SYSTOLE_CHECK(systole::emulator::ChipsOf(slice) >= 1);
    AllReduceShape shape = {
        .bytes = 1e9, .link_bytes_per_s = chip->link_bytes_per_s(), .hop_s = chip->hop_s()};
    for (const systole::v1::Axis& axis : slice.axes()) {
      shape.axes.push_back({.chips = axis.chips(), .ring = axis.ring()});
    }
    const absl::StatusOr<double> seconds = AllReduceSeconds(shape);
    SYSTOLE_CHECK(seconds.ok() && std::isfinite(*seconds));
  }
  // The times of a compiled program must be finite, too.
  static const systole::emulator::Model* const model = [] {
    systole::v1::Model message;
    SYSTOLE_CHECK(systole::emulator::ReadModel("flowers-cnn", message).ok());
    absl::StatusOr<systole::emulator::Model> compiled = systole::emulator::CompileModel(message);
    SYSTOLE_CHECK(compiled.ok());
    return new systole::emulator::Model(*std::move(compiled));
  }();
  const absl::StatusOr<systole::emulator::ChipProgram> program =
      systole::emulator::CompileProgram(*model, *chip, {.per_core_batch = 16});
  SYSTOLE_CHECK(program.ok());
  SYSTOLE_CHECK(std::isfinite(program->step.seconds) && program->step.seconds > 0);
  SYSTOLE_CHECK(program->step.utilisation > 0 && program->step.utilisation <= 1);
  return 0;
}
