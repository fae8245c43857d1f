#include "core/credentials/credential_servers.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/credentials/credential_json.h"
#include "core/http/http_url.h"
#include "core/http/no_server.h"
#include "core/status/status_macros.h"
#include "core/text/loopback_host.h"

namespace systole {
namespace {

constexpr RetryOptions kRetries = {.max_attempts = 3, .max_backoff = absl::Seconds(2)};

std::string PercentEncoded(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      encoded += c;
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace

HttpRequest LinkRequest(const CredentialSurroundings& surroundings, std::string url,
                        std::string called) {
  return {.url = std::move(url),
          .timeout = surroundings.link_timeout,
          .connect_timeout = surroundings.link_connect_timeout,
          .max_body_bytes = kMaxJsonBytes,
          .redirects = Redirects::kRefuse,
          .uses_proxies = false,
          .called = std::move(called)};
}

HttpRequest FormRequest(const CredentialSurroundings& surroundings, std::string url,
                        std::string called,
                        const std::vector<std::pair<std::string, std::string>>& fields) {
  HttpRequest request = {.method = HttpMethod::kPost,
                         .url = std::move(url),
                         .headers = {{"content-type", "application/x-www-form-urlencoded"}},
                         .timeout = surroundings.service_timeout,
                         .max_body_bytes = kMaxJsonBytes,
                         .called = std::move(called)};
  std::string body;
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&body, body.empty() ? "" : "&", PercentEncoded(name), "=",
                    PercentEncoded(value));
  }
  request.body = HttpBody(std::move(body));
  return request;
}

absl::Status CheckSecretAddress(absl::string_view text) {
  const absl::StatusOr<HttpUrl> url = ParseHttpUrl(text);
  if (!url.ok()) return absl::InvalidArgumentError("is not a web address");
  if (url->scheme == "https" || IsLoopbackHost(url->host)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "is not encrypted, and secrets are sent there; want https, or a server of this machine");
}

CredentialServers::CredentialServers(const CredentialSurroundings& surroundings,
                                     const char* first_ca_variable)
    : surroundings_(WithDraws(surroundings)),
      first_ca_variable_(first_ca_variable),
      process_(::getpid()),
      retrier_(kRetries, {.now = surroundings_.now,
                          .sleep = [this](absl::Duration time) -> absl::Status {
                            SYSTOLE_ASSIGN_OR_RETURN(HttpClient* const client, Client());
                            return client->SleepFor(time);
                          },
                          .draw = surroundings_.draw}) {}

absl::StatusOr<HttpClient*> CredentialServers::Client() {
  MutexLock lock(mu_);
  if (ended_) return absl::CancelledError("the process no longer requests credentials");
  if (client_ == nullptr) {
    HttpClientOptions options = surroundings_.client.has_value()
                                    ? *surroundings_.client
                                    : HttpOptionsOfEnvironment(first_ca_variable_);
    // One thread asks at a time, so few connections are enough.
    options.max_connections = options.max_connections_per_origin = 2;
    SYSTOLE_ASSIGN_OR_RETURN(client_, HttpClient::Create(options));
  }
  return client_.get();
}

absl::StatusOr<HttpResponse> CredentialServers::Fetch(const HttpRequest& request) {
  SYSTOLE_ASSIGN_OR_RETURN(HttpClient* const client, Client());
  HttpRequest bounded = request;
  bounded.timeout = std::min(request.timeout, TimeFor(request.called));
  if (bounded.timeout > absl::ZeroDuration()) return client->Fetch(bounded);
  return absl::DeadlineExceededError(
      absl::StrCat(request.called, ": no time is left to wait for the answer; try again"));
}

void CredentialServers::SetDeadline(absl::Duration deadline) {
  MutexLock lock(mu_);
  deadline_ = deadline;
}

absl::Duration CredentialServers::TimeFor(const std::string& called) {
  MutexLock lock(mu_);
  called_ = called;
  return deadline_ - surroundings_.now();
}

absl::Status CredentialServers::AskUntilSomebodyIsThere(int times,
                                                        absl::FunctionRef<absl::Status()> ask) {
  absl::Duration begin = surroundings_.now();
  for (int time = 1;; ++time) {
    absl::Status outcome = ask();
    if (!IsNoServer(outcome) || time >= times) return outcome;
    // The pause counts from the beginning of a call of `ask`, because a call that finds no service
    // may take longer than the pause.
    begin += surroundings_.link_pause;
    absl::Duration pause = begin - surroundings_.now();
    {
      MutexLock lock(mu_);
      pause = std::min(pause, deadline_ - surroundings_.now());
    }
    if (pause <= absl::ZeroDuration()) continue;
    SYSTOLE_ASSIGN_OR_RETURN(HttpClient* const client, Client());
    SYSTOLE_RETURN_IF_ERROR(client->SleepFor(pause));
  }
}

absl::Status CredentialServers::Refusal(const HttpRequest& request, int status,
                                        absl::string_view remedy) {
  if (status == 408 || status == 429 || status >= 500) {
    return absl::UnavailableError(
        absl::StrCat(request.called, ": the server fails (status ", status, "); try again"));
  }
  return absl::PermissionDeniedError(
      absl::StrCat(request.called, ": the server refuses (status ", status, "); ", remedy));
}

absl::StatusOr<std::string> CredentialServers::Ask(const HttpRequest& request,
                                                   absl::string_view remedy) {
  HttpRequest bounded = request;
  bounded.timeout = std::min(request.timeout, TimeFor(request.called));
  SYSTOLE_ASSIGN_OR_RETURN(
      HttpResponse response,
      retrier_.Fetch(bounded, [this](const HttpRequest& each) { return Fetch(each); }));
  if (response.status >= 300) return Refusal(request, response.status, remedy);
  return std::move(response.body);
}

CacheSurroundings CredentialServers::ForCache() {
  return {
      .now = surroundings_.now,
      .draw = surroundings_.draw,
      .sleep_while = [this](absl::FunctionRef<bool()> waits, absl::Duration time) -> absl::Status {
        SYSTOLE_ASSIGN_OR_RETURN(HttpClient* const client, Client());
        return client->SleepWhile(waits, time);
      },
      .wake =
          [this] {
            HttpClient* client = nullptr;
            {
              MutexLock lock(mu_);
              client = client_.get();
            }
            if (client != nullptr) client->WakeSleepers();
          },
      .asked =
          [this] {
            MutexLock lock(mu_);
            return called_;
          }};
}

void CredentialServers::End() {
  // In a child of fork() the lock may be locked for ever: another thread may have held it at the
  // fork.
  if (::getpid() != process_) return;
  MutexLock lock(mu_);
  ended_ = true;
  if (client_ != nullptr) client_->End();
}

}  // namespace systole
