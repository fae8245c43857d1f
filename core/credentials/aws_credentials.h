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

  // The credentials to sign with now. Get() renews them first if they expire soon. Nullopt: this
  // process has no credentials anywhere, so its requests go unsigned. May wait for the network, for
  // at most `timeout`.
  //   Unavailable         the server that gives credentials cannot be reached or fails, or a file
  //                       cannot be read now. A retry may help.
  //   DeadlineExceeded    the server does not answer in time. The message names the server.
  //   PermissionDenied    the server refuses, or a file may not be read.
  //   FailedPrecondition  a variable, a file or a profile is incomplete, names something that does
  //                       not exist, or is of a kind that is not supported.
  //   DataLoss            an answer or a file is malformed.
  //   ResourceExhausted   an answer or a file is too large, or no memory or thread is left.
  //   Cancelled           this thread was interrupted (InterruptRequested()), or End() was called.
  // Messages are for the person who runs the process. They name variables, files and servers, and
  // say what to do. They never hold a secret.
  virtual absl::StatusOr<std::optional<AwsCredentials>> Get(absl::Duration timeout) = 0;

  // Call this after S3 has refused a request that was signed with `used` (nullopt: a request
  // without a signature). The next Get() then looks for new credentials: `used` may have expired
  // early, or this process may have credentials now. If this search fails, Get() returns the error,
  // and not the old credentials. A call has no effect if it comes less than ten seconds after one
  // that had an effect. If the place of `used` cannot have other keys before `used` expires, only
  // the first call for `used` has an effect.
  virtual void Refused(const std::optional<AwsCredentials>& used) = 0;

  // Ends the connections. Call it for a source that is never destroyed. See HttpClient::End().
  virtual void End() = 0;
};

// A source that looks in the places that README.md lists. Reads nothing until the first Get().
std::unique_ptr<AwsCredentialSource> AwsCredentialsOfEnvironment(
    const CredentialSurroundings& surroundings = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_AWS_CREDENTIALS_H_
