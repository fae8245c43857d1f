// Reads and writes recordings of arrivals (client/emulator/timing/arrivals_file.h) at a path.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_PACING_SAVED_ARRIVALS_H_
#define SYSTOLE_CLIENT_CLI_PACING_SAVED_ARRIVALS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/emulator/timing/arrivals.h"

namespace systole {

// Errors of FileSource::Open and emulator::ReadArrivals, with the path in front.
absl::StatusOr<emulator::Arrivals> LoadArrivals(const std::string& path);

// Writes the whole file or, after an error, no file. `version` is the program's version. Errors of
// emulator::WriteArrivals.
absl::Status SaveArrivals(const std::string& path, const emulator::Arrivals& arrivals,
                          absl::string_view version);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACING_SAVED_ARRIVALS_H_
