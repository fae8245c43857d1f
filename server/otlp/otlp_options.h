// Where and how spans are sent. The address comes from the flag --otlp-endpoint, or from the
// environment variables that OpenTelemetry's tools read.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_OTLP_OTLP_OPTIONS_H_
#define SYSTOLE_SERVER_OTLP_OTLP_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/http/http_client_options.h"
#include "core/http/http_headers.h"
#include "core/http/http_retry.h"
#include "server/otlp/span.h"

namespace systole {

struct OtlpOptions {
  // The address that spans are posted to, with its path.
  std::string url;
  // Headers of each request. They are secrets: no message and no page shows them.
  HttpHeaders headers = {};
  // Says which process sends the spans.
  std::vector<SpanAttribute> resource = {};
  // The version of this program.
  std::string version = {};

  // Spans are sent as soon as this many of them wait, and after each `interval` even if fewer wait.
  // The defaults are those of OpenTelemetry's own batches.
  size_t max_batch = 512;
  absl::Duration interval = absl::Seconds(5);
  // The most spans that wait to be sent. Further spans are dropped. A span has at most 2 KiB.
  size_t max_waiting = 2048;
  // The most time for one request, and for all attempts to send one batch.
  absl::Duration timeout = absl::Seconds(10);
  absl::Duration batch_timeout = absl::Seconds(30);
  RetryOptions retry = {
      .max_attempts = 5, .first_backoff = absl::Seconds(1), .max_backoff = absl::Seconds(5)};
  HttpClientOptions http = {};
};

// The value of a variable, "" if it is not set.
using Variables = std::function<std::string(const char* name)>;
std::string VariableOfServer(const char* name);

// `version` is this program's. `endpoint` is the flag's value, or empty if there is no flag. The
// flag takes precedence over the variables. "/v1/traces" is added to the flag's value and to the
// value of OTEL_EXPORTER_OTLP_ENDPOINT. The result is nullopt if there is no flag and the variables
// name no endpoint or switch OpenTelemetry off.
//   InvalidArgument  * the endpoint is no address, or
//                    * a variable that is used has no valid value, or
//                    * the variables name the endpoint and a protocol other than http/json and
//                      http/protobuf.
//                    Messages name the flag or the variable. They show no value that may be a
//                    secret.
absl::StatusOr<std::optional<OtlpOptions>> OtlpOptionsOf(absl::string_view endpoint,
                                                         absl::string_view version,
                                                         const Variables& variables);

// "KEY=VALUE,KEY=VALUE" with percent-encoded values, at most 64 pairs and 8 KiB. Any other
// text is InvalidArgument. The message describes the format, and does not show the text.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseOtelPairs(
    absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_SERVER_OTLP_OTLP_OPTIONS_H_
