// All that the search for credentials takes from the process and the machine. A test can replace
// each part.
//
// Thread-compatible: a value. Several threads may call its functions at the same time, except
// `draw`, which one thread at a time calls.
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

// The firmware's text about this machine in /sys/class/dmi/id/NAME. "" if this file cannot be read,
// as on some virtual machines and in some containers.
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
  // A random number, uniform in [0, 1), for the length of waits. Null: WithDraws() sets a generator
  // whose numbers differ from process to process. Called by one thread at a time.
  std::function<double()> draw = {};
  // Timeouts for a server of this machine or of its network link (169.254.x.x). If there is no such
  // server, the process may notice this only after link_connect_timeout.
  absl::Duration link_connect_timeout = absl::Seconds(1);
  absl::Duration link_timeout = absl::Seconds(5);
  // How many times, at most, a process that starts looks for a metadata server. There are several
  // looks because Kubernetes may start a pod some seconds before its metadata server. The process
  // looks only once if another maker made the machine (IsMachineOfOther()) and no variable has the
  // server's address.
  int first_looks = 3;
  // The time from the beginning of one look to the beginning of the next look.
  absl::Duration link_pause = absl::Milliseconds(1500);
  // The timeout of a request to a server on the internet, for all attempts together.
  absl::Duration service_timeout = absl::Minutes(1);
  // The server that gives a container its credentials. The path of the request is in
  // AWS_CONTAINER_CREDENTIALS_RELATIVE_URI.
  std::string container_server = "http://169.254.170.2";
  // Google's metadata server, if GCE_METADATA_HOST is not set.
  std::string google_metadata_host = "metadata.google.internal";
};

// Returns `given`. If its `draw` is null, sets `draw` to a generator.
CredentialSurroundings WithDraws(CredentialSurroundings given);

// Whether the firmware says that a maker other than `maker` ("amazon", "google") made this machine.
// Also false if the firmware says nothing.
bool IsMachineOfOther(const CredentialSurroundings& surroundings, absl::string_view maker);

// Whether `variable`, one of Systole's own variables, is set to 1. FailedPrecondition if it is set
// to anything but 0 or 1.
absl::StatusOr<bool> IsSwitchedOn(const CredentialSurroundings& surroundings, const char* variable);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_SURROUNDINGS_H_
