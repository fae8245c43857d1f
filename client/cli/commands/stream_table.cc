#include "client/cli/commands/stream_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/framing/trainer_report.h"

namespace systole {
namespace {

using StreamsByNumber = std::map<int64_t, const v1::StreamStatus*>;

StreamsByNumber StreamsOf(const v1::ServerStatusResponse* answer) {
  StreamsByNumber streams;
  if (answer == nullptr) return streams;
  for (const v1::StreamStatus& stream : answer->streams()) streams[stream.stream()] = &stream;
  return streams;
}

struct Rates {
  double steps = 0;
  double bytes = 0;
};

Rates RatesOf(const v1::StreamStatus& now, const StreamsByNumber& earlier) {
  v1::StreamStatus begin;
  const auto known = earlier.find(now.stream());
  // A restarted server counts streams anew, so the same number may belong to another stream.
  if (known != earlier.end() && known->second->client() == now.client() &&
      known->second->seconds() < now.seconds() && known->second->steps() <= now.steps() &&
      known->second->payload_bytes() <= now.payload_bytes()) {
    begin = *known->second;
  }
  const double seconds = now.seconds() - begin.seconds();
  if (!(seconds > 0)) return {};
  const auto grown = [](int64_t from, int64_t to) {
    return static_cast<double>(to) - static_cast<double>(from);  // Doubles cannot overflow here.
  };
  return {.steps = grown(begin.steps(), now.steps()) / seconds,
          .bytes = grown(begin.payload_bytes(), now.payload_bytes()) / seconds};
}

std::string WaitsText(const TrainerReport& trainer) {
  if (!trainer.waits.has_value()) return "not known";
  return absl::StrFormat("%.0f %%", 100 * *trainer.waits);
}

std::string LimitText(const TrainerReport& trainer, const std::string& output) {
  if (!trainer.waits.has_value()) return "";
  return absl::StrCat(LimitName(trainer.limit),
                      output.empty() ? "" : absl::StrCat(" (output ", output, ")"));
}

}  // namespace

void PrintStreams(const v1::ServerStatusResponse& now, const v1::ServerStatusResponse* before,
                  std::ostream& out) {
  using Row = std::array<std::string, 7>;
  if (now.streams().empty()) return;
  std::vector<Row> rows = {
      {"stream", "dataset", "steps/s", "MB/s", "trainer waits", "limit", "client"}};
  const StreamsByNumber earlier = StreamsOf(before);
  for (const v1::StreamStatus& stream : now.streams()) {
    const Rates rates = RatesOf(stream, earlier);
    const TrainerReport trainer = ReportOf(stream.trainer());
    rows.push_back({absl::StrCat(stream.stream()), stream.dataset(),
                    absl::StrFormat("%.1f", rates.steps),
                    absl::StrFormat("%.1f", rates.bytes * 1e-6), WaitsText(trainer),
                    LimitText(trainer, stream.output()), stream.client()});
  }
  std::array<size_t, std::tuple_size_v<Row>> widths = {};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    // The last column needs no blanks after it.
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      out << "  " << row[i] << std::string(widths[i] - row[i].size(), ' ');
    }
    out << "  " << row.back() << "\n";
  }
  if (now.streams_left_out() > 0) {
    out << "  and " << now.streams_left_out() << " more, whose trainers wait less\n";
  }
}

void AppendStreams(const v1::ServerStatusResponse& now, const v1::ServerStatusResponse* before,
                   JsonWriter& json) {
  const StreamsByNumber earlier = StreamsOf(before);
  json.Key("streams").BeginArray();
  for (const v1::StreamStatus& stream : now.streams()) {
    const Rates rates = RatesOf(stream, earlier);
    json.BeginObject().Field("stream", stream.stream()).Field("client", stream.client());
    json.Field("dataset", stream.dataset()).Field("feed", absl::StrFormat("%016x", stream.feed()));
    json.Field("seconds", stream.seconds()).Field("steps", stream.steps());
    json.Field("payload_bytes", stream.payload_bytes());
    json.Field("steps_per_second", rates.steps).Field("bytes_per_second", rates.bytes);
    const TrainerReport trainer = ReportOf(stream.trainer());
    if (trainer.waits.has_value()) {
      json.Key("trainer").BeginObject().Field("wait_ratio", *trainer.waits);
      json.Field("steps_per_second", trainer.steps_per_second);
      json.Field("limit", LimitName(trainer.limit)).Field("output", stream.output());
      json.EndObject();
    }
    json.EndObject();
  }
  json.EndArray().Field("streams_left_out", now.streams_left_out());
}

}  // namespace systole
