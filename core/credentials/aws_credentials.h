// The credentials that this process has for S3, from the places where AWS's own tools look.
#ifndef SYSTOLE_CORE_CREDENTIALS_AWS_CREDENTIALS_H_
#define SYSTOLE_CORE_CREDENTIALS_AWS_CREDENTIALS_H_

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/credential_surroundings.h"

namespace systole {

// Thread-safe.
class AwsCredentialSource {
 public:
  virtual ~AwsCredentialSource() = default;

  // The credentials to sign with now. They are renewed first if they expire soon. Nullopt: this
  // process has no credentials anywhere, so its requests go unsigned. May wait for the network, for
  // at most `timeout`.
  //   Unavailable         the server of credentials cannot be reached or fails; a retry may help.
  //   DeadlineExceeded    the server does not answer in time. The message names the server.
  //   PermissionDenied    the server refuses, or a file may not be read.
  //   FailedPrecondition  a variable, a file or a profile is half filled in, or of a kind that is
  //                       not supported.
  //   DataLoss            an answer or a file is damaged.
  //   ResourceExhausted   an answer or a file is too large; no memory or thread.
  //   Cancelled           InterruptRequested(), or End() was called.
  // Messages are for the person who runs the process. They name variables, files and servers, and
  // say what to do. They never hold a secret.
  virtual absl::StatusOr<std::optional<AwsCredentials>> Get(absl::Duration timeout) = 0;

  // Call this after a server has refused a request that was signed by `used`, or a request without
  // a signature (nullopt). The credentials may have expired early. After a request without a
  // signature, there may be credentials now. The next Get() looks for new credentials, at most
  // every ten seconds. If the source of `used` cannot have other keys before these expire, Get()
  // looks only once. If Get() cannot get new credentials, it returns the error, and not the old
  // value.
  virtual void Refused(const std::optional<AwsCredentials>& used) = 0;

  // Ends the connections. Call it for a source that is never destroyed. See HttpClient::End().
  virtual void End() = 0;
};

// A source that looks in the usual places. Reads nothing until the first Get(). The README has the
// variables.
std::unique_ptr<AwsCredentialSource> AwsCredentialsOfEnvironment(
    const CredentialSurroundings& surroundings = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_AWS_CREDENTIALS_H_
