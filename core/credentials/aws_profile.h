// The profile that this process uses, from AWS's configuration files.
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
  std::string name;  // AWS_PROFILE, else AWS_DEFAULT_PROFILE, else "default".
  // The profile's settings from both files. If both files have the same setting, the value in the
  // credentials file counts. If the credentials file has aws_access_key_id, aws_secret_access_key
  // or aws_session_token, all three are ignored in the configuration file.
  IniSection settings;

  // The value of a setting; "" if there is none.
  std::string Get(absl::string_view key) const;
  // The profile for messages, such as: profile 'a' of '/etc/aws/config' or '/etc/aws/credentials'.
  std::string Shown() const;

  // The section [services NAME] of the configuration file, where NAME is the setting `services`.
  // Empty: there is no such section. The section has a key for each service, such as s3. Systole
  // does not read the settings under these keys.
  IniSection services = {};

  // The paths of the two files. Empty: no variable names the file, and HOME is not set.
  std::string credentials_path = {};
  std::string config_path = {};
};

// Reads the files that AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name; by default
// ~/.aws/credentials and ~/.aws/config. A default file that does not exist counts as empty.
//   FailedPrecondition  a file or a profile that a variable names does not exist, or a file is not
//                       a regular file.
//   PermissionDenied    a file may not be read.
//   DataLoss            a line is malformed.
//   ResourceExhausted   a file is too large.
//   Unavailable         a file cannot be read now.
absl::StatusOr<AwsProfile> ReadAwsProfile(const CredentialSurroundings& surroundings);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_AWS_PROFILE_H_
