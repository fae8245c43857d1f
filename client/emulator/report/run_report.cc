#include "client/emulator/report/run_report.h"

#include <algorithm>
#include <limits>

namespace systole::emulator {
namespace {

// The name of the fact's inner object: "infeed" for "infeed.average". Empty for a field of the
// outer object.
absl::string_view ObjectOf(const Fact& fact) {
  const size_t dot = fact.key.find('.');
  return dot == std::string::npos ? "" : absl::string_view(fact.key).substr(0, dot);
}

void WriteScore(JsonWriter& json, const char* key, const Score& score) {
  json.Key(key).BeginObject().Field("examples", score.examples).Field("loss", score.loss);
  json.Field("accuracy", score.accuracy).EndObject();
}

void WriteSeconds(JsonWriter& json, const char* key, const std::vector<absl::Duration>& times) {
  json.Key(key).BeginArray();
  for (const absl::Duration time : times) json.Double(absl::ToDoubleSeconds(time));
  json.EndArray();
}

void WriteEpoch(JsonWriter& json, const EpochReport& epoch) {
  json.BeginObject().Field("steps", epoch.steps);
  WriteScore(json, "training", epoch.training);
  if (epoch.validation.has_value()) WriteScore(json, "validation", *epoch.validation);
  json.Field("seconds", absl::ToDoubleSeconds(epoch.duration));
  json.Field("compute_seconds", absl::ToDoubleSeconds(epoch.compute));
  json.Field("images_per_second", epoch.images_per_second());
  json.Field("mean_step_seconds", absl::ToDoubleSeconds(epoch.mean_step()));
  WriteSeconds(json, "infeed_stall_seconds", epoch.infeed_stall);
  json.Field("bytes_received", epoch.bytes_received).EndObject();
}

// A column of numbers, one for each row of the history.
template <typename ValueOf>
void WriteColumn(JsonWriter& json, const char* key, const std::vector<StepRow>& rows,
                 ValueOf value_of) {
  json.Key(key).BeginArray();
  for (const StepRow& row : rows) json.Double(value_of(row));
  json.EndArray();
}

void WriteSpread(JsonWriter& json, const char* key, const std::vector<StepRow>& rows,
                 Spread StepRow::*member) {
  json.Key(key).BeginObject();
  WriteColumn(json, "mean", rows, [&](const StepRow& row) { return (row.*member).mean; });
  WriteColumn(json, "min", rows, [&](const StepRow& row) { return (row.*member).min; });
  WriteColumn(json, "max", rows, [&](const StepRow& row) { return (row.*member).max; });
  json.EndObject();
}

void WriteHistory(JsonWriter& json, const RunReport& report) {
  const std::vector<StepRow>& rows = report.steps.rows();
  const StepRow total = report.steps.Total();
  json.Key("history").BeginObject().Field("first_step", total.first_step);
  json.Field("steps", total.steps);
  json.Field("total_compute_seconds", absl::ToDoubleSeconds(total.compute));
  json.Field("total_infeed_stall_seconds", absl::ToDoubleSeconds(total.infeed_stall));
  if (report.has_barrier()) {
    json.Field("total_barrier_seconds", absl::ToDoubleSeconds(total.barrier));
  }
  json.Field("longest_step_seconds", absl::ToDoubleSeconds(total.longest));
  json.Field("steps_per_row", report.steps.steps_per_row());
  WriteColumn(json, "start_seconds", rows,
              [](const StepRow& row) { return absl::ToDoubleSeconds(row.start); });
  const auto mean = [&](const char* key, absl::Duration StepRow::*member) {
    WriteColumn(json, key, rows, [member](const StepRow& row) {
      return absl::ToDoubleSeconds(row.*member) / static_cast<double>(row.steps);
    });
  };
  mean("mean_compute_seconds", &StepRow::compute);
  mean("mean_infeed_stall_seconds", &StepRow::infeed_stall);
  if (report.has_barrier()) mean("mean_barrier_seconds", &StepRow::barrier);
  WriteColumn(json, "longest_seconds", rows,
              [](const StepRow& row) { return absl::ToDoubleSeconds(row.longest); });
  if (report.has_scores()) {
    WriteSpread(json, "loss", rows, &StepRow::loss);
    WriteSpread(json, "accuracy", rows, &StepRow::accuracy);
    WriteColumn(json, "learning_rate", rows, [](const StepRow& row) { return row.learning_rate; });
  }
  json.EndObject();
}

void WriteRoofline(JsonWriter& json, const Roofline& roofline) {
  json.Key("roofline").BeginObject();
  json.Field("peak_flops_per_second", roofline.peak_flops_per_second);
  json.Field("bytes_per_second", roofline.bytes_per_second).Key("layers").BeginArray();
  for (const LayerPoint& layer : roofline.layers) {
    json.BeginObject().Field("name", layer.name).Field("flops", layer.flops);
    json.Field("bytes", layer.bytes).Field("seconds", layer.seconds);
    json.Field("flops_per_byte", layer.flops_per_byte());
    json.Field("flops_per_second", layer.flops_per_second());
    json.Field("bound_by", BoundName(layer.bound)).EndObject();
  }
  json.EndArray().EndObject();
}

void WriteNumbers(JsonWriter& json, const char* key, const std::vector<double>& numbers) {
  json.Key(key).BeginArray();
  for (const double number : numbers) json.Double(number);
  json.EndArray();
}

void WriteLevel(JsonWriter& json, const LevelReport& level) {
  json.BeginObject().Field("trainers", level.trainers).Field("fed", level.fed);
  json.Field("lowest_au", level.lowest_au).Field("lowest_wall_au", level.lowest_wall_au);
  WriteNumbers(json, "au", level.au);
  WriteNumbers(json, "wall_au", level.wall_au);
  json.Field("window_seconds", absl::ToDoubleSeconds(level.window));
  json.Field("steps_per_second", level.steps_per_second);
  json.Field("wanted_steps_per_second", level.wanted_steps_per_second);
  json.Field("examples_per_second", level.examples_per_second);
  json.Field("cores_worth", level.cores_worth).Field("cores_busy", level.cores_busy);
  json.Field("retries", level.retries);
  json.Field("server_cpu_seconds", level.server_cpu_seconds);
  json.Field("server_cpus_busy", level.server_cpus_busy);
  json.Field("server_cpus", level.server_cpus).Key("server_resident_bytes");
  if (level.server_resident_bytes.has_value()) {
    json.Int(*level.server_resident_bytes);
  } else {
    json.Double(std::numeric_limits<double>::quiet_NaN());
  }
  json.Field("cores_fed_per_server_cpu", level.cores_fed_per_server_cpu);
  json.Key("step_arrival_seconds").BeginObject();
  for (const auto& [name, fraction] : kReportedPercentiles) {
    json.Field(name, absl::ToDoubleSeconds(level.waits.Percentile(fraction)));
  }
  json.Field("max", absl::ToDoubleSeconds(level.waits.max())).EndObject().EndObject();
}

}  // namespace

const char* RunModeName(RunMode mode) {
  switch (mode) {
    case RunMode::kFunctional:
      return "functional";
    case RunMode::kPaced:
      return "paced";
    case RunMode::kReplay:
      return "replay";
    case RunMode::kLoad:
      return "load";
  }
  return "";
}

void AppendFacts(absl::Span<const Fact> facts, JsonWriter& json) {
  const auto append = [&json](const Fact& fact, size_t name_at) {
    std::visit([&](const auto& value) { json.Field(fact.key.substr(name_at), value); }, fact.value);
  };
  std::vector<absl::string_view> written;
  for (const Fact& fact : facts) {
    const absl::string_view object = ObjectOf(fact);
    if (object.empty()) {
      append(fact, 0);
      continue;
    }
    if (std::find(written.begin(), written.end(), object) != written.end()) continue;
    written.push_back(object);
    json.Key(object).BeginObject();
    for (const Fact& other : facts) {
      if (ObjectOf(other) == object) append(other, object.size() + 1);
    }
    json.EndObject();
  }
}

std::string ToJson(const RunReport& report) {
  JsonWriter json;
  json.BeginObject().Field("mode", RunModeName(report.mode));
  if (!report.verdict.text.empty()) json.Field("verdict", report.verdict.text);
  AppendFacts(report.facts, json);
  AppendFacts(report.results, json);
  if (!report.epochs.empty()) {
    json.Key("epochs").BeginArray();
    for (const EpochReport& epoch : report.epochs) WriteEpoch(json, epoch);
    json.EndArray();
  }
  if (!report.cores.empty()) {
    std::vector<absl::Duration> stall, barrier;
    for (const CoreTimes& core : report.cores) {
      stall.push_back(core.infeed_stall);
      barrier.push_back(core.barrier);
    }
    WriteSeconds(json, "infeed_stall_seconds", stall);
    if (report.has_barrier()) WriteSeconds(json, "barrier_seconds", barrier);
  }
  if (report.steps.steps() > 0) WriteHistory(json, report);
  if (report.roofline.has_value()) WriteRoofline(json, *report.roofline);
  if (!report.levels.empty()) {
    json.Key("levels").BeginArray();
    for (const LevelReport& level : report.levels) WriteLevel(json, level);
    json.EndArray();
  }
  if (!report.masked_records.empty()) {
    json.Key("masked_records").BeginArray();
    for (const int64_t record : report.masked_records) json.Int(record);
    json.EndArray();
  }
  if (!report.notes.empty()) {
    json.Key("notes").BeginArray();
    for (const std::string& note : report.notes) json.String(note);
    json.EndArray();
  }
  return json.EndObject().text();
}

}  // namespace systole::emulator
