#include "client/cli/pacing/load_report.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/emulator/report/run_report.h"
#include "client/emulator/report/timed_run.h"
#include "client/emulator/timing/timing_report.h"

namespace systole {
namespace {

double OrNull(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

std::string OrDash(const std::optional<double>& value) {
  return value.has_value() ? absl::StrFormat("%.3f", *value) : "-";
}

std::string LevelText(const LoadLevel& level) {
  const std::string memory =
      level.server_resident_bytes.has_value()
          ? absl::StrFormat("%.0f", static_cast<double>(*level.server_resident_bytes) / 1e6)
          : "-";
  return absl::StrFormat(
      "%8d  %7.2f %%  %7.2f %%  %10.1f  %7.1f  %11.1f  %16s  %9s  %7d  %8s  %s\n",
      level.trainers.size(), 100 * level.lowest_au(), 100 * level.lowest_wall_au(),
      level.cores_busy(), level.steps_per_s(), level.examples_per_s(),
      OrDash(level.server_cpus_busy()), memory, level.retries,
      OrDash(level.cores_fed_per_server_cpu()), emulator::PercentilesText(level.waits()));
}

// The AU of each trainer, or of the first kMost trainers if there are more.
std::string TrainersText(const LoadLevel& level) {
  constexpr size_t kMost = 12;
  std::string text = "AU per trainer ";
  for (size_t i = 0; i < std::min(kMost, level.trainers.size()); ++i) {
    const std::optional<double> au = level.trainers[i].books.utilisation().au;
    text += au.has_value() ? absl::StrFormat(" %.2f %%", 100 * *au) : " -";
  }
  return text + (level.trainers.size() > kMost ? " ..\n" : "\n");
}

// Why larger numbers of trainers were not tried; empty if the number of --trainers was tried.
std::string StopText(const LoadReport& report) {
  if (report.ramp || report.largest_fed == report.most_trainers) return "";
  const auto starved = std::min_element(
      report.levels.begin(), report.levels.end(), [](const LoadLevel& a, const LoadLevel& b) {
        return std::pair(a.fed(), a.trainers.size()) < std::pair(b.fed(), b.trainers.size());
      });
  if (starved->fed() || static_cast<int>(starved->trainers.size()) == report.most_trainers) {
    return "";
  }
  const bool here = starved->lowest_au() >= emulator::kHighAu;
  return absl::StrFormat(
      "stopped         %d %s at AU %.2f %%, below 90 %%: %s, and more trainers would need more "
      "data. "
      "With --ramp, larger numbers of trainers, up to %d, are tried all the same\n",
      starved->trainers.size(), starved->trainers.size() == 1 ? "trainer was" : "trainers were",
      100 * std::min(starved->lowest_au(), starved->lowest_wall_au()),
      here ? "this machine cannot pace them" : "the servers do not feed them",
      report.most_trainers);
}

emulator::LevelReport ReportOf(const LoadLevel& level) {
  emulator::LevelReport report = {
      .trainers = static_cast<int64_t>(level.trainers.size()),
      .fed = level.fed(),
      .lowest_au = level.lowest_au(),
      .lowest_wall_au = level.lowest_wall_au(),
      .window = level.window,
      .steps_per_second = level.steps_per_s(),
      .wanted_steps_per_second = level.wanted_steps_per_s(),
      .examples_per_second = level.examples_per_s(),
      .cores_worth = level.cores_worth(),
      .cores_busy = level.cores_busy(),
      .retries = level.retries,
      .server_cpu_seconds = OrNull(level.server_cpu_seconds),
      .server_cpus_busy = OrNull(level.server_cpus_busy()),
      .server_cpus = level.server_cpus,
      .server_resident_bytes = level.server_resident_bytes,
      .cores_fed_per_server_cpu = OrNull(level.cores_fed_per_server_cpu()),
      .waits = level.waits()};
  for (const emulator::PacedResult& trainer : level.trainers) {
    report.au.push_back(OrNull(trainer.books.utilisation().au));
    report.wall_au.push_back(OrNull(trainer.wall_au));
  }
  return report;
}

emulator::Verdict VerdictOf(const LoadReport& report) {
  using Grade = emulator::Verdict::Grade;
  if (report.largest_fed == 0) {
    return {.text = "not even 1 trainer is fed at AU >= 90 %", .grade = Grade::kBad};
  }
  const bool all = report.largest_fed == report.most_trainers;
  return {.text = absl::StrCat(report.largest_fed, " of ", report.most_trainers,
                               " trainers are fed at AU >= 90 %"),
          .grade = all ? Grade::kGood : Grade::kFair};
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
  std::string text =
      absl::StrCat("mode            load\n", emulator::CoresText(headline.cores),
                   absl::StrFormat("demand          %.1f examples/s a core\n",
                                   headline.cores.core_examples_per_s()),
                   "trainers  lowest AU   by clock  cores busy  steps/s   examples/s  "
                   "server CPUs busy  server MB  retries   fed/CPU  step arrival\n");
  for (const LoadLevel& level : levels) absl::StrAppend(&text, LevelText(level));
  if (largest_fed > 0) {
    absl::StrAppendFormat(&text, "fed             %d %s at AU >= 90 %%, by the wall clock too%s\n",
                          largest_fed, largest_fed == 1 ? "trainer" : "trainers",
                          largest_fed == most_trainers ? ", the most tried" : "");
  } else {
    text += "fed             not even 1 trainer at AU >= 90 %\n";
  }
  text += StopText(*this);
  text += TrainersText(headline);
  const std::optional<double> per_cpu = headline.cores_fed_per_server_cpu();
  if (per_cpu.has_value()) {
    absl::StrAppendFormat(&text,
                          "cores fed per server CPU %.3f: %.1f examples/s arrived, enough for %.2f "
                          "cores, with %.3f server CPUs busy (%d %s)\n",
                          *per_cpu, headline.examples_per_s(), headline.cores_worth(),
                          *headline.server_cpus_busy(), headline.trainers.size(),
                          headline.trainers.size() == 1 ? "trainer" : "trainers");
  } else {
    text += "cores fed per server CPU not known: a server does not report its processor time\n";
  }
  for (const std::string& note : notes) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

std::string WindowsText(const LoadLevel& level) {
  constexpr double kClearly = 1.1;
  if (level.steps_per_s() <= kClearly * level.wanted_steps_per_s()) return "";
  return absl::StrFormat(
      "%.1f steps/s arrived, and the trainers take %.1f: the clients also filled their windows "
      "(--prefetch-bytes). With a longer --duration, the steps in these windows matter less",
      level.steps_per_s(), level.wanted_steps_per_s());
}

emulator::RunReport ReportOf(const LoadReport& load) {
  const LoadLevel& headline = load.headline_level();
  emulator::RunReport report = {
      .mode = emulator::RunMode::kLoad,
      .verdict = VerdictOf(load),
      .facts = load.facts,
      .masked_records = {load.missing.records().begin(), load.missing.records().end()},
      .notes = load.notes};
  const std::vector<emulator::Fact> cores = emulator::FactsOf(headline.cores);
  report.facts.insert(report.facts.end(), cores.begin(), cores.end());
  report.results = {{"largest_fed", "Trainers that are fed", int64_t{load.largest_fed},
                     emulator::Unit::kCount, true},
                    {"most_trainers", "Most trainers tried", int64_t{load.most_trainers},
                     emulator::Unit::kCount, true},
                    {"cores_fed_per_server_cpu", "Cores fed per server CPU",
                     OrNull(headline.cores_fed_per_server_cpu()), emulator::Unit::kCount, true}};
  for (const emulator::Fact& fact : load.missing.Facts()) report.results.push_back(fact);
  for (const LoadLevel& level : load.levels) report.levels.push_back(ReportOf(level));
  return report;
}

}  // namespace systole
