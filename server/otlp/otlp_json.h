// Spans as OTLP's ExportTraceServiceRequest in JSON: names in camelCase, ids in hex, 64-bit numbers
// as strings, enumerations as numbers.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_OTLP_OTLP_JSON_H_
#define SYSTOLE_SERVER_OTLP_OTLP_JSON_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/otlp/span.h"

namespace systole {

// `resource` says which process sends the spans. `version` is this program's.
std::string OtlpJsonOf(const std::vector<Span>& spans, const std::vector<SpanAttribute>& resource,
                       absl::string_view version);

}  // namespace systole

#endif  // SYSTOLE_SERVER_OTLP_OTLP_JSON_H_
