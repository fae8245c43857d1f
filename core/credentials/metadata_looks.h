// Sends requests to the machine's metadata service, and decides after how many failed attempts the
// machine has no such service. These rules are the same for every cloud, but each cloud passes a
// request of its own.
#ifndef SYSTOLE_CORE_CREDENTIALS_METADATA_LOOKS_H_
#define SYSTOLE_CORE_CREDENTIALS_METADATA_LOOKS_H_

#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/credentials/credential_cache.h"
#include "core/credentials/credential_servers.h"
#include "core/credentials/credential_surroundings.h"
#include "core/http/no_server.h"
#include "core/status/status_macros.h"

namespace systole {

// Thread-compatible. Borrows both arguments of the constructor.
template <typename Value>
class MetadataLooks {
 public:
  // The result of one look. Nullopt: the service answers, but has no value.
  using Found = absl::StatusOr<std::optional<CredentialLease<Value>>>;

  // `maker` is the maker of the cloud's machines, as in IsMachineOfOther(). `variable` is the
  // environment variable that says where the service is.
  MetadataLooks(const CredentialSurroundings& surroundings, CredentialServers& servers,
                const char* maker, const char* variable)
      : surroundings_(surroundings), servers_(servers), maker_(maker), variable_(variable) {}

  // Looks once: calls `ask`, and returns its result. The first look repeats `ask` a few times while
  // the error is IsNoServer(), because the service may start later than this process. On a machine
  // of another maker, if the variable is not set, the first look does not repeat `ask`. If the last
  // error is IsNoServer(), returns nullopt. But if the service gave a value before, or if
  // `must_be_there`, returns this error instead. Returns other errors of `ask`.
  Found Ask(bool must_be_there, absl::FunctionRef<Found()> ask) {
    std::optional<CredentialLease<Value>> given;
    const absl::Status outcome = servers_.AskUntilSomebodyIsThere(Times(), [&] {
      Found once = ask();
      SYSTOLE_RETURN_IF_ERROR(once.status());
      given = *std::move(once);
      return absl::OkStatus();
    });
    if (IsNoServer(outcome)) {
      has_looked_ = true;
      if (!has_given_ && !must_be_there) return std::nullopt;
    }
    SYSTOLE_RETURN_IF_ERROR(outcome);
    if (given.has_value()) has_given_ = true;
    return given;
  }

  // Whether a look has ever found something.
  bool has_given() const { return has_given_; }

 private:
  int Times() const {
    if (has_looked_) return 1;
    const bool is_elsewhere =
        IsMachineOfOther(surroundings_, maker_) && surroundings_.variable(variable_).empty();
    return is_elsewhere ? 1 : surroundings_.first_looks;
  }

  const CredentialSurroundings& surroundings_;
  CredentialServers& servers_;
  const char* const maker_;
  const char* const variable_;
  bool has_given_ = false;
  bool has_looked_ = false;  // Whether a look has found no service. Later looks ask only once.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_METADATA_LOOKS_H_
