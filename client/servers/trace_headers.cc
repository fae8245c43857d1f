#include "client/servers/trace_headers.h"

#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"
#include "core/trace/trace_context.h"

namespace systole {
namespace {

absl::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void TraceHeaders::AddTo(grpc::ClientContext& context) const {
  if (!parent.empty()) context.AddMetadata(kTraceParentKey, parent);
  if (!state.empty()) context.AddMetadata(kTraceStateKey, state);
}

absl::Status CheckTraceParent(absl::string_view traceparent) {
  if (traceparent.empty() || ParseTraceParent(traceparent).has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", ForeignName(traceparent),
                   "', want a traceparent of W3C Trace Context, such as "
                   "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
}

TraceHeaders TraceHeadersOf(absl::string_view traceparent) {
  const bool is_given = !traceparent.empty();
  const std::optional<TraceContext> context =
      ParseTraceParent(is_given ? traceparent : Variable("TRACEPARENT"));
  TraceHeaders headers;
  if (!context.has_value()) return headers;
  headers.parent = TraceParentOf(*context);
  if (const absl::string_view state = Variable("TRACESTATE"); !is_given && IsTraceState(state)) {
    headers.state = std::string(state);
  }
  return headers;
}

}  // namespace systole
