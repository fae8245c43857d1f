// Reads and writes the headers of W3C Trace Context, which say to which trace a call belongs:
//   traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//   tracestate:  vendor=value,other=value
// Other programs write both texts, so any bytes may be passed to the functions that parse them.
//
// Thread-safe: no state. Values are thread-compatible.
#ifndef SYSTOLE_CORE_TRACE_TRACE_CONTEXT_H_
#define SYSTOLE_CORE_TRACE_TRACE_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// The keys of the two texts in a call's metadata.
inline constexpr char kTraceParentKey[] = "traceparent";
inline constexpr char kTraceStateKey[] = "tracestate";

// The most bytes of a tracestate. A longer tracestate is dropped.
inline constexpr size_t kMaxTraceStateBytes = 512;

struct TraceId {
  uint64_t high = 0;
  uint64_t low = 0;

  // An id of 0 means no trace.
  bool is_set() const { return high != 0 || low != 0; }
  friend bool operator==(const TraceId&, const TraceId&) = default;
};

struct TraceContext {
  TraceId trace;      // Not 0.
  uint64_t span = 0;  // The caller's part of the trace. Not 0.
  // Whether the caller records this trace.
  bool sampled = false;
  // The tracestate, which is passed on as it came. Empty: there is none.
  std::string state = {};

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// The id of a trace as 32 lower-case hex digits, and the id of a span as 16.
std::string HexOf(const TraceId& trace);
std::string HexOf(uint64_t span);

// Parses the value of a traceparent. Nullopt for any text that W3C's rules refuse, for example for
// a wrong length or separator, upper-case digits, version ff, or an id of zeros. If the version is
// higher than 00, only the fields of version 00 are read.
std::optional<TraceContext> ParseTraceParent(absl::string_view text);

// The traceparent of `context`, in version 00.
std::string TraceParentOf(const TraceContext& context);

// Whether `text` is a tracestate: 1 to 32 members KEY=VALUE, separated by commas. No two members
// have the same key, and `text` has at most kMaxTraceStateBytes.
bool IsTraceState(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_TRACE_TRACE_CONTEXT_H_
