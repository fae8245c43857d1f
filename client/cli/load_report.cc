#include "client/cli/load_report.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/emulator/report/run_report.h"
#include "client/emulator/report/timed_run.h"
#include "client/emulator/timing/timing_report.h"
#include "core/json/json_writer.h"

namespace systole {
namespace {

double OrNull(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

std::string OrDash(const std::optional<double>& value) {
  return value.has_value() ? absl::StrFormat("%.3f", *value) : "-";
}

std::string LevelText(const LoadLevel& level) {
  return absl::StrFormat("%8d  %7.2f %%  %7.2f %%  %10.1f  %11.1f  %16s  %8s  %s\n",
                         level.trainers.size(), 100 * level.lowest_au(),
                         100 * level.lowest_wall_au(), level.cores_busy(), level.examples_per_s(),
                         OrDash(level.server_cpus_busy()), OrDash(level.cores_fed_per_server_cpu()),
                         emulator::PercentilesText(level.waits()));
}

// Of each trainer, as far as a line holds them.
std::string TrainersText(const LoadLevel& level) {
  constexpr size_t kMost = 12;
  std::string text = "AU per trainer ";
  for (size_t i = 0; i < std::min(kMost, level.trainers.size()); ++i) {
    const std::optional<double> au = level.trainers[i].books.utilisation().au;
    text += au.has_value() ? absl::StrFormat(" %.2f %%", 100 * *au) : " -";
  }
  return text + (level.trainers.size() > kMost ? " ..\n" : "\n");
}

void AppendLevel(const LoadLevel& level, JsonWriter& json) {
  json.BeginObject().Field("trainers", static_cast<int64_t>(level.trainers.size()));
  json.Field("fed", level.fed()).Field("lowest_au", level.lowest_au());
  json.Field("lowest_wall_au", level.lowest_wall_au());
  json.Key("au").BeginArray();
  for (const emulator::PacedResult& trainer : level.trainers) {
    json.Double(OrNull(trainer.books.utilisation().au));
  }
  json.EndArray().Key("wall_au").BeginArray();
  for (const emulator::PacedResult& trainer : level.trainers) json.Double(OrNull(trainer.wall_au));
  json.EndArray();
  json.Field("window_seconds", absl::ToDoubleSeconds(level.window));
  json.Field("examples_per_second", level.examples_per_s());
  json.Field("cores_worth", level.cores_worth());
  json.Field("cores_busy", level.cores_busy());
  json.Field("server_cpu_seconds", OrNull(level.server_cpu_seconds));
  json.Field("server_cpus", level.server_cpus);
  json.Field("server_cpus_busy", OrNull(level.server_cpus_busy()));
  json.Field("cores_fed_per_server_cpu", OrNull(level.cores_fed_per_server_cpu()));
  emulator::AppendFacts(
      emulator::PercentileFacts("step_arrival_seconds", "Step arrived late by", level.waits()),
      json);
  json.EndObject();
}

}  // namespace

const LoadLevel& LoadReport::headline_level() const {
  const size_t wanted = largest_fed > 0 ? static_cast<size_t>(largest_fed) : 1;
  for (const LoadLevel& level : levels) {
    if (level.trainers.size() == wanted) return level;
  }
  return levels.front();
}

std::string LoadReport::ToText() const {
  const LoadLevel& headline = headline_level();
  std::string text = absl::StrCat("mode            paced\n", emulator::CoresText(headline.cores),
                                  absl::StrFormat("demand          %.1f examples/s a core\n",
                                                  headline.cores.core_examples_per_s()),
                                  "trainers  lowest AU   by clock  cores busy   examples/s  server "
                                  "CPUs busy  fed/CPU   step arrival\n");
  for (const LoadLevel& level : levels) absl::StrAppend(&text, LevelText(level));
  if (largest_fed > 0) {
    absl::StrAppendFormat(&text, "fed             %d %s at AU >= 90 %%, by the wall clock too%s\n",
                          largest_fed, largest_fed == 1 ? "trainer" : "trainers",
                          largest_fed == most_trainers ? ", the most tried" : "");
  } else {
    text += "fed             not even 1 trainer at AU >= 90 %\n";
  }
  text += TrainersText(headline);
  const std::optional<double> per_cpu = headline.cores_fed_per_server_cpu();
  if (per_cpu.has_value()) {
    absl::StrAppendFormat(&text,
                          "cores fed per server CPU %.3f: %.1f examples/s arrived, as %.2f cores "
                          "take, for %.3f server "
                          "CPUs busy (%d %s)\n",
                          *per_cpu, headline.examples_per_s(), headline.cores_worth(),
                          *headline.server_cpus_busy(), headline.trainers.size(),
                          headline.trainers.size() == 1 ? "trainer" : "trainers");
  } else {
    text += "cores fed per server CPU not known: a server does not tell its processor time\n";
  }
  for (const std::string& note : notes) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

std::string LoadReport::ToJson() const {
  const LoadLevel& headline = headline_level();
  JsonWriter json;
  json.BeginObject().Field("mode", "paced");
  emulator::AppendFacts(emulator::FactsOf(headline.cores), json);
  json.Field("most_trainers", most_trainers).Field("largest_fed", largest_fed);
  json.Field("cores_fed_per_server_cpu", OrNull(headline.cores_fed_per_server_cpu()));
  json.Key("levels").BeginArray();
  for (const LoadLevel& level : levels) AppendLevel(level, json);
  json.EndArray();
  missing.AppendTo(json);
  json.Key("notes").BeginArray();
  for (const std::string& note : notes) json.String(note);
  return json.EndArray().EndObject().text();
}

}  // namespace systole
