// Recordings of arrivals (client/emulator/timing/arrivals.h) as files.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_ARRIVALS_FILE_H_
#define SYSTOLE_CLIENT_CLI_ARRIVALS_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/emulator/timing/arrivals.h"

namespace systole {

// Some three million steps of eight cores.
inline constexpr int64_t kMaxArrivalsBytes = int64_t{256} << 20;

// Errors of FileSource::Open and ParseArrivals.
//   ResourceExhausted  the file is larger than kMaxArrivalsBytes.
absl::StatusOr<emulator::Arrivals> LoadArrivals(const std::string& path);

// The file is whole or not there. Errors of FileSink.
absl::Status SaveArrivals(const std::string& path, const emulator::Arrivals& arrivals);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_ARRIVALS_FILE_H_
