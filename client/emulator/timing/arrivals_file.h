// A recording as a file. proto/systole/v1/arrivals.proto says which messages the file has, and in
// which order.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_ARRIVALS_FILE_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_ARRIVALS_FILE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/emulator/timing/arrivals.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"

namespace systole::emulator {

// Writes and closes the file. `systole_version` is the version of this program. Returns the errors
// of the sink and of CheckArrivals(). After an error of CheckArrivals(), nothing was written.
absl::Status WriteArrivals(const Arrivals& arrivals, absl::string_view systole_version,
                           std::unique_ptr<ByteSink> sink);

// Reads what WriteArrivals() wrote. Takes up to twice the memory of the times in the file.
//   InvalidArgument  the file is not a recording, is of another version, or fails CheckArrivals().
//   DataLoss         the file is cut short or damaged.
absl::StatusOr<Arrivals> ReadArrivals(const ByteSource& source);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_ARRIVALS_FILE_H_
