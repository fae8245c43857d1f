// Reads a chip's data, checks every field and computes numbers that follow from the fields. The
// data is a v1::Chip. proto/systole/v1/chip.proto says what each field means.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_CHIP_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_CHIP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "systole/v1/chip.pb.h"

namespace systole::emulator {

// `name_or_file`: a shipped chip ("v3") or the path of a textproto; see shipped_files.h.
//   NotFound         no shipped chip and no file has this name.
//   InvalidArgument  the text is not a v1::Chip, or CheckChip() refuses it. The message names the
//                    file and the field.
absl::StatusOr<v1::Chip> LoadChip(const std::string& name_or_file);

// Like LoadChip(), from a text. `file` is for messages only.
absl::StatusOr<v1::Chip> ParseChip(absl::string_view text, absl::string_view file);

// InvalidArgument if a number is out of range or not finite, if two slices have the same name, or
// if a measurement names a slice that does not exist. The message names the field.
absl::Status CheckChip(const v1::Chip& chip);

// The functions below need a chip that has passed CheckChip().

// The floating-point operations that all matrix units of the chip can do in a second. A
// multiply-accumulate counts as two.
double PeakFlops(const v1::Chip& chip);
// The floating-point operations per byte of memory traffic at which matrix units and memory take
// the same time. With more operations per byte, the matrix units are the limit. With fewer, the
// memory is the limit.
double RidgeFlopsPerByte(const v1::Chip& chip);

// The slice called `name`, or the first one if `name` is empty. The slice lives as long as `chip`.
// NotFound, which lists the names that exist, if the chip has no such slice.
absl::StatusOr<const v1::Slice*> FindSlice(const v1::Chip& chip, absl::string_view name);
int64_t ChipsOf(const v1::Slice& slice);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_CHIP_H_
