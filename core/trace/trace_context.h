// Says to which trace a call belongs, in the form of W3C Trace Context:
//   traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//   tracestate:  vendor=value,other=value
// Other programs write both texts, so each parser accepts any bytes as its input.
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

// The names in a call's metadata.
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

// 32 and 16 lower-case hex digits.
std::string HexOf(const TraceId& trace);
std::string HexOf(uint64_t span);

// Parses the value of a traceparent. Nullopt for any text that W3C's rules refuse: a wrong length
// or separator, upper-case digits, version ff, an id of zeros. If the version is higher than 00,
// reads only the fields that version 00 also has.
std::optional<TraceContext> ParseTraceParent(absl::string_view text);

// The traceparent of `context`, in version 00.
std::string TraceParentOf(const TraceContext& context);

// Whether `text` is a tracestate: 1 to 32 members KEY=VALUE, separated by commas. No two members
// have the same key, and `text` has at most kMaxTraceStateBytes.
bool IsTraceState(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_TRACE_TRACE_CONTEXT_H_
