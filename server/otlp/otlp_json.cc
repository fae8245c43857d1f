#include "server/otlp/otlp_json.h"

#include <cstdint>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/json/json_writer.h"

namespace systole {
namespace {

// Values of opentelemetry.proto.trace.v1.Span.SpanKind and Status.StatusCode.
constexpr int kKindInternal = 1;
constexpr int kKindServer = 2;
constexpr int kStatusError = 2;
// Values of SpanFlags. Every span has kSampled, because only sampled traces have spans.
constexpr int kSampled = 0x1;
constexpr int kKnowsWhetherRemote = 0x100;
constexpr int kParentIsRemote = 0x200;

void AppendAttributes(const std::vector<SpanAttribute>& attributes, JsonWriter& json) {
  json.Key("attributes").BeginArray();
  for (const SpanAttribute& attribute : attributes) {
    json.BeginObject().Field("key", attribute.key).Key("value").BeginObject();
    if (const auto* const text = std::get_if<std::string>(&attribute.value)) {
      json.Field("stringValue", *text);
    } else if (const auto* const whole = std::get_if<int64_t>(&attribute.value)) {
      json.Field("intValue", absl::StrCat(*whole));
    } else {
      json.Field("doubleValue", std::get<double>(attribute.value));
    }
    json.EndObject().EndObject();
  }
  json.EndArray();
}

void AppendSpan(const Span& span, JsonWriter& json) {
  json.BeginObject().Field("traceId", HexOf(span.trace)).Field("spanId", HexOf(span.span));
  if (!span.trace_state.empty()) json.Field("traceState", span.trace_state);
  if (span.parent != 0) json.Field("parentSpanId", HexOf(span.parent));
  json.Field("flags",
             kSampled | kKnowsWhetherRemote | (span.parent_is_remote ? kParentIsRemote : 0));
  json.Field("name", span.name).Field("kind", span.is_call ? kKindServer : kKindInternal);
  json.Field("startTimeUnixNano", absl::StrCat(absl::ToUnixNanos(span.begin)));
  json.Field("endTimeUnixNano", absl::StrCat(absl::ToUnixNanos(span.end)));
  AppendAttributes(span.attributes, json);
  if (!span.error.empty()) {
    json.Key("status").BeginObject().Field("message", span.error);
    json.Field("code", kStatusError).EndObject();
  }
  json.EndObject();
}

}  // namespace

std::string OtlpJsonOf(const std::vector<Span>& spans, const std::vector<SpanAttribute>& resource,
                       absl::string_view version) {
  JsonWriter json;
  json.BeginObject().Key("resourceSpans").BeginArray().BeginObject();
  json.Key("resource").BeginObject();
  AppendAttributes(resource, json);
  json.EndObject().Key("scopeSpans").BeginArray().BeginObject();
  json.Key("scope").BeginObject().Field("name", "systole").Field("version", version).EndObject();
  json.Key("spans").BeginArray();
  for (const Span& span : spans) AppendSpan(span, json);
  json.EndArray().EndObject().EndArray().EndObject().EndArray().EndObject();
  return json.text();
}

}  // namespace systole
