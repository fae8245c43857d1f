// All that the search for credentials takes from the process and the machine. A test can replace
// each part.
//
// Thread-compatible: a value. Many threads call its functions at a time; only `draw` is called by
// one thread at a time.
#ifndef SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_SURROUNDINGS_H_
#define SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_SURROUNDINGS_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/wall_clock.h"
#include "core/http/http_client_options.h"

namespace systole {

// The value of a variable of this process's environment, "" if it is not set.
std::string VariableOfProcess(const char* name);

// The firmware's text about this machine in /sys/class/dmi/id/NAME. "" if it cannot be read, as on
// some virtual machines and in some containers.
std::string FactOfMachine(const char* name);

struct CredentialSurroundings {
  std::function<std::string(const char* name)> variable = &VariableOfProcess;
  std::function<std::string(const char* name)> machine_fact = &FactOfMachine;
  // The options of the client that sends requests to servers of credentials. Nullopt:
  // HttpOptionsOfEnvironment(), called at the first request.
  std::optional<HttpClientOptions> client = {};
  MonotonicClock now = SteadyClock();
  // Used only to compare with the dates at which credentials expire, and to date signatures.
  WallClock time_of_day = SystemWallClock();
  // A random number, uniform in [0, 1), for the length of waits. Null: a generator whose numbers
  // differ from process to process. Called by one thread at a time.
  std::function<double()> draw = {};
  // Timeouts for a server of this machine or of its network link (169.254.x.x). If there is no such
  // server, the process finds this out only after the first timeout.
  absl::Duration link_connect_timeout = absl::Seconds(1);
  absl::Duration link_timeout = absl::Seconds(5);
  // first_looks: how many times, at most, a process looks for such a server at its start. It stops
  // when it has found a server. If IsMachineOfOther(), it looks only once. link_pause: the time
  // from the beginning of one look to the beginning of the next look. There are several looks
  // because Kubernetes may start a pod some seconds before its metadata server.
  int first_looks = 3;
  absl::Duration link_pause = absl::Milliseconds(1500);
  // The timeout of all attempts together for a server on the internet.
  absl::Duration service_timeout = absl::Minutes(1);
  // The server of a container's credentials, for the path in
  // AWS_CONTAINER_CREDENTIALS_RELATIVE_URI.
  std::string container_server = "http://169.254.170.2";
  // Google's metadata server, if GCE_METADATA_HOST is not set.
  std::string google_metadata_host = "metadata.google.internal";
};

// Returns `given`. If its `draw` is null, sets `draw` to a generator.
CredentialSurroundings WithDraws(CredentialSurroundings given);

// Whether the firmware says that a maker other than `maker` ("amazon", "google") made this machine.
// False also if the firmware says nothing.
bool IsMachineOfOther(const CredentialSurroundings& surroundings, absl::string_view maker);

// Whether `variable`, one of Systole's own variables, is 1. FailedPrecondition if it is set to
// anything but 0 or 1.
absl::StatusOr<bool> IsSwitchedOn(const CredentialSurroundings& surroundings, const char* variable);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_SURROUNDINGS_H_
