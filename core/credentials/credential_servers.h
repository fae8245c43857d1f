// Sends requests to the servers that give credentials, through a small HttpClient of its own.
#ifndef SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_SERVERS_H_
#define SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_SERVERS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/credentials/credential_cache.h"
#include "core/credentials/credential_surroundings.h"
#include "core/http/http_client.h"
#include "core/http/http_message.h"
#include "core/http/http_retry.h"

namespace systole {

// A GET request to a server of this machine or of its network link (169.254.x.x). The answer may
// have at most 64 KiB. No proxy is used, and no redirect is followed. `called` is the name of the
// answer in messages. Messages do not show the address, because it may be a secret.
HttpRequest LinkRequest(const CredentialSurroundings& surroundings, std::string url,
                        std::string called);

// A POST request that sends a form to a service on the internet. This function percent-encodes the
// names and values of the form.
HttpRequest FormRequest(const CredentialSurroundings& surroundings, std::string url,
                        std::string called,
                        const std::vector<std::pair<std::string, std::string>>& fields);

// Returns InvalidArgument if `url` is not a web address, or if it is http to another machine, where
// somebody could read the request on its way.
absl::Status CheckSecretAddress(absl::string_view url);

// Thread-safe. The client is made at the first request, so a process that needs no server has no
// client thread.
class CredentialServers {
 public:
  // If the surroundings have no options for the client, the options are those of
  // HttpOptionsOfEnvironment(first_ca_variable).
  explicit CredentialServers(const CredentialSurroundings& surroundings,
                             const char* first_ca_variable = nullptr);

  // No request goes on after `deadline`, a time of the surroundings' clock. The deadline holds
  // until this function is called again.
  void SetDeadline(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_);

  // Sends the request once. Returns the errors of HttpClient::Create() and HttpClient::Fetch(), and
  // DeadlineExceeded if the deadline has passed.
  absl::StatusOr<HttpResponse> Fetch(const HttpRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  // Sends the request, up to three times if the server fails. Returns the body of an answer with
  // status 2xx. If the server refuses, the message ends with `remedy`, which says what to do. Also
  // returns the errors of Fetch().
  //   PermissionDenied   the server refuses.
  //   Unavailable        the server fails.
  absl::StatusOr<std::string> Ask(const HttpRequest& request, absl::string_view remedy);
  // The error that Ask() returns for an answer that is not 2xx.
  static absl::Status Refusal(const HttpRequest& request, int status, absl::string_view remedy);

  // Calls `ask` up to `times` times, until its result is not an IsNoServer() error, and returns the
  // last result. The repetition is for a metadata service that starts later than this process.
  absl::Status AskUntilSomebodyIsThere(int times, absl::FunctionRef<absl::Status()> ask);

  // The functions for a CredentialCache: the clock and the random numbers of the surroundings, and
  // the sleep of this object's HttpClient. The result must not outlive this object.
  CacheSurroundings ForCache();

  // As HttpClient::End(). Requests fail from now on. Does nothing in a child of fork().
  void End() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::StatusOr<HttpClient*> Client() ABSL_LOCKS_EXCLUDED(mu_);
  // The time until the deadline. Records that `called` is being requested.
  absl::Duration TimeFor(const std::string& called) ABSL_LOCKS_EXCLUDED(mu_);

  const CredentialSurroundings surroundings_;  // `draw` is not null.
  const char* const first_ca_variable_;
  const pid_t process_;
  HttpRetrier retrier_;

  Mutex mu_;
  absl::Duration deadline_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  std::string called_ ABSL_GUARDED_BY(mu_) = "credentials";  // The last request's name.
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<HttpClient> client_ ABSL_GUARDED_BY(mu_);  // Made once.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_SERVERS_H_
