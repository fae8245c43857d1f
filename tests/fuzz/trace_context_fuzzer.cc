// Reads any bytes as a traceparent and as a tracestate. An accepted traceparent stays the same
// when it is written and read again. An accepted tracestate may stand in a call's metadata.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "core/trace/trace_context.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(trace_context, const uint8_t* data, size_t size) {
  using namespace systole;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (const std::optional<TraceContext> context = ParseTraceParent(text); context.has_value()) {
    SYSTOLE_CHECK(context->trace.is_set() && context->span != 0 && context->state.empty());
    const std::string written = TraceParentOf(*context);
    SYSTOLE_CHECK(ParseTraceParent(written) == context);
    // Only the version, the flags and what follows the flags may differ.
    SYSTOLE_CHECK(written.substr(2, 51) == text.substr(2, 51));
    SYSTOLE_CHECK(text.substr(0, 2) != "ff");
    SYSTOLE_CHECK(size == written.size() || text.substr(0, 2) != "00");
  }
  if (IsTraceState(text)) {
    SYSTOLE_CHECK(size <= kMaxTraceStateBytes);
    for (const char c : text) SYSTOLE_CHECK(c == '\t' || (c >= ' ' && c <= '~'));
    SYSTOLE_CHECK(text.find('=') != absl::string_view::npos);
  }
  return 0;
}
