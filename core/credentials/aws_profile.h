// The profile of AWS's configuration files that this process uses.
#ifndef SYSTOLE_CORE_CREDENTIALS_AWS_PROFILE_H_
#define SYSTOLE_CORE_CREDENTIALS_AWS_PROFILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/credentials/credential_surroundings.h"
#include "core/credentials/ini_file.h"

namespace systole {

// Thread-compatible: a value.
struct AwsProfile {
  std::string name;  // AWS_PROFILE, AWS_DEFAULT_PROFILE, or "default".
  // The settings of both files together. If both files have the same setting, the value in the
  // credentials file counts. If the credentials file has any of the keys, the keys in the
  // configuration file do not count.
  IniSection settings;

  // The value of a setting; "" if there is none.
  std::string Get(absl::string_view key) const;
  // For messages: profile 'a' of ~/.aws/config or ~/.aws/credentials.
  std::string Shown() const;

  // The section of services that the setting `services` names, in the configuration file; empty if
  // there is none. The section has a key for each service. The settings under these keys are not
  // read.
  IniSection services = {};

  std::string credentials_path = {};  // Empty: there is no home folder.
  std::string config_path = {};
};

// Reads AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and AWS_CONFIG_FILE (~/.aws/config). A
// default file that does not exist is empty.
//   FailedPrecondition  a file or a profile that a variable names does not exist; a file is not a
//                       regular one.
//   PermissionDenied    a file may not be read.
//   DataLoss            a line is malformed.
//   ResourceExhausted   a file is too large.
//   Unavailable         a file cannot be read now.
absl::StatusOr<AwsProfile> ReadAwsProfile(const CredentialSurroundings& surroundings);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_AWS_PROFILE_H_
