#include "core/log/log_line.h"

#include <iterator>

#include "absl/strings/str_format.h"
#include "core/json/json_writer.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

struct CauseNames {
  absl::string_view name;  // In JSON.
  absl::string_view plural;
};

constexpr CauseNames kCauses[] = {
    {"program", "lines of the program"},
    {"index", "messages about indexes"},
    {"damage", "damaged records"},
    {"planned", "feeds planned"},
    {"stream_opened", "streams opened"},
    {"stream_ended", "streams ended"},
    {"refused", "requests refused"},
    {"not_shared", "reasons not to share memory"},
    {"connections", "connections turned away"},
    {"grpc", "lines of gRPC"},
    {"server_lost", "losses of servers"},
    {"step_late", "late steps"},
    {"server_list", "messages about the list of servers"},
    {"spans", "messages about the collector of traces"},
};
static_assert(std::size(kCauses) == kNumLogCauses);

const CauseNames& NamesOf(LogCause cause) { return kCauses[static_cast<size_t>(cause)]; }

void AppendName(absl::string_view key, const std::string& name, JsonWriter& json) {
  if (!name.empty()) json.Field(key, ForeignName(name));
}

void AppendNumber(absl::string_view key, const std::optional<int64_t>& number, JsonWriter& json) {
  if (number.has_value()) json.Field(key, *number);
}

}  // namespace

std::string TextOf(const LogLine& line) { return ForeignText(line.text); }

std::string JsonOf(const LogLine& line, absl::Time time) {
  const LogFields& fields = line.fields;
  JsonWriter json;
  json.BeginObject();
  json.Field("time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()));
  json.Field("level", kLogLevelNames[static_cast<size_t>(line.level)]);
  json.Field("cause", NamesOf(line.cause).name).Field("message", TextOf(line));
  if (fields.feed.has_value()) json.Field("feed", absl::StrFormat("%016x", *fields.feed));
  AppendName("client", fields.client, json);
  AppendName("identity", fields.identity, json);
  AppendName("server", fields.server, json);
  AppendName("dataset", fields.dataset, json);
  AppendNumber("step", fields.step, json);
  AppendName("shard", fields.shard, json);
  AppendNumber("record", fields.record, json);
  AppendName("trace", fields.trace, json);
  AppendNumber("left_out", line.left_out, json);
  return json.EndObject().text();
}

absl::string_view PluralOf(LogCause cause) { return NamesOf(cause).plural; }

}  // namespace systole
