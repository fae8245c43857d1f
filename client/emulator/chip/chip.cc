#include "client/emulator/chip/chip.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/emulator/model/value_range.h"
#include "client/emulator/shipped/shipped_files.h"
#include "core/status/status_macros.h"
#include "core/textproto/message_text.h"

namespace systole::emulator {
namespace {

// The limits of the numbers in a chip's file. No real chip comes near these limits. They are low
// enough that no sum overflows.
constexpr int64_t kMostUnits = 1 << 10;
constexpr int64_t kLongestEdge = 1 << 16;
constexpr int64_t kMostChips = 1 << 20;
constexpr int64_t kMostBytes = int64_t{1} << 50;
constexpr int64_t kLargestBatch = 1 << 20;
// How many slices and measurements a file may have. There is a limit because the model is compiled
// once for every measurement.
constexpr int kMostSlices = 256, kMostMeasurements = 256;
constexpr double kLargestRate = 1e21;

// Like CheckRange() for floats, but `largest` itself is in range. A NaN is out of range.
absl::Status CheckQuantity(absl::string_view field, double value, double smallest, double largest) {
  if (value >= smallest && value <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", want ", smallest, " to ", largest));
}

absl::Status CheckCore(const v1::Chip& chip) {
  SYSTOLE_RETURN_IF_ERROR(CheckRange("cores", chip.cores(), 1, kMostUnits));
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("matrix_units_per_core", chip.matrix_units_per_core(), 1, kMostUnits));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("array_rows", chip.array_rows(), 1, kLongestEdge));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("array_columns", chip.array_columns(), 1, kLongestEdge));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("macs_per_place", chip.macs_per_place(), 0, kMostUnits));
  SYSTOLE_RETURN_IF_ERROR(CheckQuantity("clock_hz", chip.clock_hz(), 1.0, 1e15));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("vector_lanes", chip.vector_lanes(), 1, kLongestEdge));
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("vector_units_per_lane", chip.vector_units_per_lane(), 1, kMostUnits));
  return CheckRange("vector_memory_bytes_per_core", chip.vector_memory_bytes_per_core(), 0,
                    kMostBytes);
}

absl::Status CheckRates(const v1::Chip& chip) {
  if (chip.published_peak_flops() != 0) {
    SYSTOLE_RETURN_IF_ERROR(
        CheckQuantity("published_peak_flops", chip.published_peak_flops(), 1.0, kLargestRate));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckRange("memory_bytes", chip.memory_bytes(), 1, kMostBytes));
  SYSTOLE_RETURN_IF_ERROR(
      CheckQuantity("memory_bytes_per_s", chip.memory_bytes_per_s(), 1.0, kLargestRate));
  SYSTOLE_RETURN_IF_ERROR(
      CheckQuantity("link_bytes_per_s", chip.link_bytes_per_s(), 1.0, kLargestRate));
  SYSTOLE_RETURN_IF_ERROR(CheckQuantity("hop_s", chip.hop_s(), 0.0, 1.0));
  SYSTOLE_RETURN_IF_ERROR(
      CheckQuantity("host_bytes_per_s", chip.host_bytes_per_s(), 1.0, kLargestRate));
  return CheckQuantity("overlap", chip.overlap(), 0.0, 1.0);
}

absl::Status CheckSlice(const v1::Slice& slice, const std::string& field) {
  SYSTOLE_RETURN_IF_ERROR(CheckName(absl::StrCat(field, ".name"), slice.name()));
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange(absl::StrCat("the number of ", field, ".axes"), int64_t{slice.axes_size()}, 1, 3));
  int64_t chips = 1;
  for (const v1::Axis& axis : slice.axes()) {
    SYSTOLE_RETURN_IF_ERROR(
        CheckRange(absl::StrCat("chips of an axis of ", field), axis.chips(), 1, kMostChips));
    chips *= axis.chips();  // At most 2^60.
  }
  return CheckRange(absl::StrCat("the product of the axes of ", field), chips, 1, kMostChips);
}

absl::Status CheckSlices(const v1::Chip& chip) {
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("the number of slices", int64_t{chip.slices_size()}, 1, kMostSlices));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("the number of measurements",
                                     int64_t{chip.measurements_size()}, 0, kMostMeasurements));
  std::set<absl::string_view> names;
  for (int i = 0; i < chip.slices_size(); ++i) {
    const std::string field = absl::StrCat("slices[", i, "]");
    SYSTOLE_RETURN_IF_ERROR(CheckSlice(chip.slices(i), field));
    if (!names.insert(chip.slices(i).name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(field, ".name is '", chip.slices(i).name(),
                                                     "', which an earlier slice has"));
    }
  }
  for (int i = 0; i < chip.measurements_size(); ++i) {
    const v1::Measurement& m = chip.measurements(i);
    const std::string field = absl::StrCat("measurements[", i, "]");
    SYSTOLE_RETURN_IF_ERROR(CheckName(absl::StrCat(field, ".model"), m.model()));
    if (names.count(m.slice()) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(field, ".slice is '",
                                                     absl::CHexEscape(m.slice()),
                                                     "', which is not the name of a slice"));
    }
    SYSTOLE_RETURN_IF_ERROR(CheckRange(absl::StrCat(field, ".per_core_batch"), m.per_core_batch(),
                                       int64_t{1}, kLargestBatch));
    SYSTOLE_RETURN_IF_ERROR(CheckQuantity(absl::StrCat(field, ".examples_per_s"),
                                          m.examples_per_s(), 1e-9, kLargestRate));
    // The source is printed as it is, so it must not have characters that control a terminal.
    if (m.source().empty() ||
        std::any_of(m.source().begin(), m.source().end(), absl::ascii_iscntrl)) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ".source is '", absl::CHexEscape(m.source()),
                       "', want where the number comes from, without control characters"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Chip> Checked(v1::Chip chip, absl::string_view file) {
  const absl::Status status = CheckChip(chip);
  if (status.ok()) return chip;
  return absl::Status(status.code(), absl::StrCat(file, ": ", status.message()));
}

}  // namespace

absl::Status CheckChip(const v1::Chip& chip) {
  SYSTOLE_RETURN_IF_ERROR(CheckName("name", chip.name()));
  SYSTOLE_RETURN_IF_ERROR(CheckCore(chip));
  SYSTOLE_RETURN_IF_ERROR(CheckRates(chip));
  return CheckSlices(chip);
}

absl::StatusOr<v1::Chip> ParseChip(absl::string_view text, absl::string_view file) {
  v1::Chip chip;
  SYSTOLE_RETURN_IF_ERROR(ParseTextproto(text, file, chip));
  return Checked(std::move(chip), file);
}

absl::StatusOr<v1::Chip> LoadChip(const std::string& name_or_file) {
  v1::Chip chip;
  SYSTOLE_RETURN_IF_ERROR(ReadChip(name_or_file, chip));
  return Checked(std::move(chip), name_or_file);
}

double PeakFlops(const v1::Chip& chip) {
  return 2.0 * static_cast<double>(chip.cores()) *
         static_cast<double>(chip.matrix_units_per_core()) *
         static_cast<double>(chip.array_rows()) * static_cast<double>(chip.array_columns()) *
         static_cast<double>(std::max<int64_t>(1, chip.macs_per_place())) * chip.clock_hz();
}

double RidgeFlopsPerByte(const v1::Chip& chip) {
  return PeakFlops(chip) / chip.memory_bytes_per_s();
}

absl::StatusOr<const v1::Slice*> FindSlice(const v1::Chip& chip, absl::string_view name) {
  if (name.empty()) return &chip.slices(0);
  for (const v1::Slice& slice : chip.slices()) {
    if (slice.name() == name) return &slice;
  }
  const auto append_name = [](std::string* out, const v1::Slice& slice) {
    absl::StrAppend(out, slice.name());
  };
  return absl::NotFoundError(absl::StrCat("chip ", chip.name(), " has no slice '", name,
                                          "'; it has ",
                                          absl::StrJoin(chip.slices(), ", ", append_name)));
}

int64_t ChipsOf(const v1::Slice& slice) {
  int64_t chips = 1;
  for (const v1::Axis& axis : slice.axes()) chips *= axis.chips();
  return chips;
}

}  // namespace systole::emulator
