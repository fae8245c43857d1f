// A checkpoint as a file. proto/systole/v1/checkpoint.proto says which messages the file has, and
// in which order. The values are written and read piece by piece. Besides the checkpoint itself,
// this takes memory for two pieces of a tensor (2 MiB).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_CHECKPOINT_FILE_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_CHECKPOINT_FILE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/emulator/training/checkpoint.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"

namespace systole::emulator {

// Writes and closes the file. `systole_version` is the version of this program. Returns the sink's
// errors.
absl::Status WriteCheckpoint(const Checkpoint& checkpoint, absl::string_view systole_version,
                             std::unique_ptr<ByteSink> sink);

// Reads only what WriteCheckpoint() writes. A size in the file leads to an allocation only if the
// file has that many bytes.
//   InvalidArgument  the file is not a checkpoint, or is of another version.
//   DataLoss         the file is cut short or damaged, or its numbers do not fit each other. The
//                    message names the field.
absl::StatusOr<Checkpoint> ReadCheckpoint(const ByteSource& source);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_CHECKPOINT_FILE_H_
