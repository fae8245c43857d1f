// Reads any bytes as a variable of OpenTelemetry with pairs of keys and values: headers of requests
// and attributes of a resource. Accepted pairs are bounded, and an error shows none of the bytes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "server/otlp/otlp_options.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(otel_pairs, const uint8_t* data, size_t size) {
  using namespace systole;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto pairs = ParseOtelPairs(text);
  if (!pairs.ok()) {
    // The message's own words may contain a short input by chance.
    SYSTOLE_CHECK(pairs.status().message().size() < 100);
    SYSTOLE_CHECK(size < 100 || !absl::StrContains(pairs.status().message(), text));
    return 0;
  }
  SYSTOLE_CHECK(pairs->size() <= 64);
  size_t bytes = 0;
  for (const auto& [key, value] : *pairs) {
    SYSTOLE_CHECK(!key.empty() && !absl::StrContains(key, '=') && !absl::StrContains(key, ','));
    bytes += key.size() + value.size();
  }
  SYSTOLE_CHECK(bytes <= size);
  // The same variable as headers and as attributes.
  const auto options =
      OtlpOptionsOf("http://localhost:4318", "1", [text](absl::string_view name) -> std::string {
        if (name == "OTEL_EXPORTER_OTLP_HEADERS" || name == "OTEL_RESOURCE_ATTRIBUTES") {
          return std::string(text.substr(0, text.find('\0')));
        }
        return "";
      });
  if (!options.ok()) return 0;
  for (const auto& [name, value] : (*options)->headers) {
    SYSTOLE_CHECK(IsSendableHeader(name, value));
  }
  return 0;
}
