#include "server/otlp/otlp_options.h"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/http/http_url.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "core/text/percent_text.h"

namespace systole {
namespace {

constexpr size_t kMaxPairs = 64;
constexpr size_t kMaxPairsBytes = 8 << 10;
constexpr char kTracesPath[] = "/v1/traces";
constexpr char kServiceName[] = "service.name";

struct Setting {
  std::string value;
  const char* variable = nullptr;  // Null: no variable is set.
};

// The first of the variables `names` that is set and not empty.
Setting FirstOf(const Variables& variables, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = variables(name); !value.empty()) return {std::move(value), name};
  }
  return {};
}

absl::Status Bad(absl::string_view source, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(source, ": ", why));
}

// The address to which spans are sent if `base` is the endpoint for all of OTLP: `base`/v1/traces.
absl::StatusOr<std::string> UrlUnder(absl::string_view source, absl::string_view base) {
  const absl::StatusOr<HttpUrl> url = ParseHttpUrl(base);
  if (!url.ok()) return Bad(source, url.status().message());
  if (url->target.find('?') != std::string::npos) {
    return Bad(source,
               "want an address without a query, such as http://localhost:4318; put a whole "
               "address into OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, and a secret into "
               "OTEL_EXPORTER_OTLP_HEADERS");
  }
  std::string text = url->Text();
  while (!text.empty() && text.back() == '/') text.pop_back();
  return absl::StrCat(text, kTracesPath);
}

// Sets the address. Leaves the address empty if neither the flag nor a variable names one.
absl::Status SetUrl(absl::string_view endpoint, const Variables& variables, OtlpOptions& options) {
  if (!endpoint.empty()) {
    SYSTOLE_ASSIGN_OR_RETURN(options.url, UrlUnder("--otlp-endpoint", endpoint));
    return absl::OkStatus();
  }
  if (absl::EqualsIgnoreCase(variables("OTEL_SDK_DISABLED"), "true")) return absl::OkStatus();
  const Setting found =
      FirstOf(variables, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"});
  if (found.variable == nullptr) return absl::OkStatus();
  const Setting protocol =
      FirstOf(variables, {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"});
  if (protocol.variable != nullptr && protocol.value != "http/json" &&
      protocol.value != "http/protobuf") {
    return Bad(protocol.variable,
               absl::StrCat("it is '", ForeignName(protocol.value), "', so ", found.variable,
                            " names an endpoint of this protocol, but this server sends spans only "
                            "as http/json; name the collector's port for HTTP (usually 4318) by "
                            "--otlp-endpoint"));
  }
  if (found.variable == absl::string_view("OTEL_EXPORTER_OTLP_ENDPOINT")) {
    SYSTOLE_ASSIGN_OR_RETURN(options.url, UrlUnder(found.variable, found.value));
    return absl::OkStatus();
  }
  const absl::StatusOr<HttpUrl> url = ParseHttpUrl(found.value);
  if (!url.ok()) return Bad(found.variable, url.status().message());
  options.url = url->Text();
  return absl::OkStatus();
}

absl::Status SetHeaders(const Variables& variables, OtlpOptions& options) {
  const Setting found =
      FirstOf(variables, {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"});
  if (found.variable == nullptr) return absl::OkStatus();
  auto pairs = ParseOtelPairs(found.value);
  if (!pairs.ok()) return Bad(found.variable, pairs.status().message());
  for (auto& [name, value] : *pairs) {
    const std::string lower = absl::AsciiStrToLower(name);
    if (!IsSendableHeader(lower, value) || lower == "content-type" || lower == "content-length" ||
        lower == "host" || lower == "transfer-encoding") {
      return Bad(found.variable,
                 "one of its headers cannot be sent; want names such as x-api-key, and values of "
                 "printable ASCII");
    }
    options.headers.emplace_back(lower, std::move(value));
  }
  return absl::OkStatus();
}

absl::Status SetTimeout(const Variables& variables, OtlpOptions& options) {
  const Setting found =
      FirstOf(variables, {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"});
  if (found.variable == nullptr) return absl::OkStatus();
  constexpr int64_t kMost = 60'000;
  int64_t milliseconds = 0;
  if (!absl::SimpleAtoi(found.value, &milliseconds) || milliseconds < 1 || milliseconds > kMost) {
    return Bad(found.variable, absl::StrCat("it is '", ForeignName(found.value),
                                            "', want a number of milliseconds from 1 to ", kMost));
  }
  options.timeout = absl::Milliseconds(milliseconds);
  return absl::OkStatus();
}

std::string HostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

absl::Status SetResource(const Variables& variables, OtlpOptions& options) {
  std::string service = variables("OTEL_SERVICE_NAME");
  const std::string text = variables("OTEL_RESOURCE_ATTRIBUTES");
  std::vector<std::pair<std::string, std::string>> pairs;
  if (!text.empty()) {
    auto parsed = ParseOtelPairs(text);
    if (!parsed.ok()) return Bad("OTEL_RESOURCE_ATTRIBUTES", parsed.status().message());
    pairs = *std::move(parsed);
  }
  bool has_host = false;
  for (auto& [key, value] : pairs) {
    has_host = has_host || key == "host.name";
    if (key != kServiceName) continue;
    if (service.empty()) service = value;
  }
  if (service.empty()) service = "systole-server";
  options.resource.push_back({kServiceName, ForeignName(service)});
  if (!has_host) options.resource.push_back({"host.name", ForeignName(HostName())});
  options.resource.push_back({"process.pid", int64_t{::getpid()}});
  options.resource.push_back({"service.version", options.version});
  for (auto& [key, value] : pairs) {
    if (key == kServiceName || key == "process.pid" || key == "service.version") continue;
    options.resource.push_back({ForeignName(key), ForeignText(value)});
  }
  return absl::OkStatus();
}

}  // namespace

std::string VariableOfServer(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<std::optional<OtlpOptions>> OtlpOptionsOf(absl::string_view endpoint,
                                                         absl::string_view version,
                                                         const Variables& variables) {
  OtlpOptions options;
  options.version = std::string(version);
  SYSTOLE_RETURN_IF_ERROR(SetUrl(endpoint, variables, options));
  if (options.url.empty()) return std::optional<OtlpOptions>();
  SYSTOLE_RETURN_IF_ERROR(SetHeaders(variables, options));
  SYSTOLE_RETURN_IF_ERROR(SetTimeout(variables, options));
  SYSTOLE_RETURN_IF_ERROR(SetResource(variables, options));
  options.http = HttpOptionsOfEnvironment("OTEL_EXPORTER_OTLP_CERTIFICATE");
  options.http.max_connections = 1;
  options.http.max_connections_per_origin = 1;
  return options;
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseOtelPairs(
    absl::string_view text) {
  const auto refuse = [](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("want KEY=VALUE,KEY=VALUE with percent-encoded values, ", why));
  };
  if (text.size() > kMaxPairsBytes) return refuse("at most 8 KiB in all");
  std::vector<std::pair<std::string, std::string>> pairs;
  for (absl::string_view pair : absl::StrSplit(text, ',')) {
    pair = absl::StripAsciiWhitespace(pair);
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    if (equals == absl::string_view::npos) return refuse("and one of them has no '='");
    const absl::string_view key = absl::StripAsciiWhitespace(pair.substr(0, equals));
    if (key.empty()) return refuse("and one of them has no key");
    if (pairs.size() == kMaxPairs) return refuse(absl::StrCat("at most ", kMaxPairs, " of them"));
    pairs.emplace_back(std::string(key),
                       PercentDecoded(absl::StripAsciiWhitespace(pair.substr(equals + 1))));
  }
  return pairs;
}

}  // namespace systole
