// A piece of work with a begin and an end, as a collector of traces gets it.
//
// Thread-compatible value types.
#ifndef SYSTOLE_SERVER_OTLP_SPAN_H_
#define SYSTOLE_SERVER_OTLP_SPAN_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "core/trace/trace_context.h"

namespace systole {

// The key is a word of this program or of the operator. Texts of peers are escaped and cut before
// they become a value.
struct SpanAttribute {
  std::string key;
  std::variant<std::string, int64_t, double> value;
};

struct Span {
  TraceId trace;
  uint64_t span = 0;
  uint64_t parent = 0;  // 0: this span is the first of its trace.
  // Whether the parent is a span of the caller, in another process.
  bool parent_is_remote = false;
  std::string trace_state = {};
  std::string name;
  // Whether the span is the server's side of a call. Otherwise it is a part of a call.
  bool is_call = false;
  absl::Time begin;
  absl::Time end;
  std::vector<SpanAttribute> attributes = {};
  // Why the work failed. Empty: the work did not fail.
  std::string error = {};
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_OTLP_SPAN_H_
