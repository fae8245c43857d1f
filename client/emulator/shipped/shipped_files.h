// The chips and models that come with Systole (deploy/chips, deploy/models). Their texts are
// compiled in, so that `--chip v3` and `--model resnet50` work wherever the program runs.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_SHIPPED_SHIPPED_FILES_H_
#define SYSTOLE_CLIENT_EMULATOR_SHIPPED_SHIPPED_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "systole/v1/chip.pb.h"
#include "systole/v1/model.pb.h"

namespace systole::emulator {

struct ShippedFile {
  absl::string_view name;  // "v3": the file's name without ".textproto".
  absl::string_view text;
};

// Sorted by name, byte by byte.
absl::Span<const ShippedFile> ShippedChips();
absl::Span<const ShippedFile> ShippedModels();

// Reads the shipped file of this name or, if there is none, the file at that path. (To read a file
// that has the name of a shipped one, write "./v3".) The values in the file are not checked.
//   NotFound         no shipped file and no other file has this name. The message lists the
//                    shipped names.
//   InvalidArgument, ResourceExhausted  the cases of LoadMessage.
absl::Status ReadChip(const std::string& name_or_file, v1::Chip& chip);
absl::Status ReadModel(const std::string& name_or_file, v1::Model& model);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_SHIPPED_SHIPPED_FILES_H_
