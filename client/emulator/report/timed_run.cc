#include "client/emulator/report/timed_run.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace systole::emulator {
namespace {

// An unknown number becomes NaN, which is null in the JSON.
double OrUnknown(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

Fact Seconds(absl::string_view key, absl::string_view label, absl::Duration time) {
  return {std::string(key), std::string(label), absl::ToDoubleSeconds(time), Unit::kSeconds};
}

void Append(const std::vector<Fact>& more, std::vector<Fact>& facts) {
  facts.insert(facts.end(), more.begin(), more.end());
}

std::vector<Fact> UtilisationFacts(const TimingReport& timing, const Utilisation& used) {
  const std::optional<InfeedFraction>& infeed = used.infeed;
  const auto part = [&](double InfeedFraction::*member) {
    return infeed.has_value() ? (*infeed).*member : OrUnknown(std::nullopt);
  };
  const double images =
      static_cast<double>(used.steps * timing.cores.infeed.num_cores * timing.cores.per_core_batch);
  const double total_seconds = absl::ToDoubleSeconds(used.total);
  return {
      {"au", "Accelerator utilization (AU)", OrUnknown(used.au), Unit::kFraction, true},
      {"au_verdict", "AU is", std::string(used.au.has_value() ? AuVerdict(*used.au) : "not known")},
      {"infeed.average", "Infeed, average part of a step", part(&InfeedFraction::average),
       Unit::kFraction, true},
      {"infeed.min", "Infeed, smallest part of a step", part(&InfeedFraction::min),
       Unit::kFraction},
      {"infeed.max", "Infeed, largest part of a step", part(&InfeedFraction::max), Unit::kFraction},
      {"infeed.verdict", "The run is",
       std::string(infeed.has_value() ? InfeedVerdict(infeed->average) : "not known")},
      {"examples_per_second", "Examples per second",
       total_seconds > 0 ? images / total_seconds : OrUnknown(std::nullopt), Unit::kCount, true},
      {"compute_seconds", "Compute of each core", absl::ToDoubleSeconds(used.compute),
       Unit::kSeconds},
      {"total_seconds", "Counted time", total_seconds, Unit::kSeconds, true},
      Seconds("open_wait_seconds", "Wait when the run ended", used.open_wait),
  };
}

std::vector<Fact> OverheadFacts(const PacingOverhead& overhead, const Utilisation& used,
                                const std::optional<double>& wall_au) {
  return {
      Seconds("emulator.noticing_seconds",
              "Sum of the delays with which the emulator noticed steps", overhead.noticing),
      Seconds("emulator.max_noticing_seconds",
              "Longest delay with which the emulator noticed a step", overhead.max_noticing),
      Seconds("emulator.work_seconds", "Emulator's own work, in sum", overhead.work),
      Seconds("emulator.max_late_seconds", "Longest delay with which the emulator ended a step",
              overhead.max_late),
      Seconds("emulator.clock_moved_on_seconds", "Emulator moved the clock on by", used.overhead),
      {"emulator.wall_au", "AU with the emulator's time", OrUnknown(wall_au), Unit::kFraction}};
}

}  // namespace

StepEntry EntryOf(const StepRecord& record) {
  absl::Duration stall;
  for (const absl::Duration of_core : record.infeed_stall) stall += of_core;
  stall /= static_cast<int64_t>(record.infeed_stall.size());
  return {.step = record.step,
          .start = record.start - record.wait,
          .infeed_stall = stall,
          .compute = record.compute,
          .barrier = record.wait - stall};
}

std::vector<Fact> FactsOf(const TimedCores& cores) {
  return {
      {"model", "Model", cores.model},
      {"slice", "Slice", cores.slice},
      {"cores", "Cores", int64_t{cores.infeed.num_cores}, Unit::kCount},
      {"cores_per_chip", "Cores per chip", int64_t{cores.infeed.cores_per_chip}, Unit::kCount},
      {"per_core_batch", "Batch per core", cores.per_core_batch, Unit::kCount},
      Seconds("step_seconds", "Step of the chip", cores.infeed.step_time),
      Seconds("transfer_seconds", "Transfer of a slice", cores.infeed.transfer_time),
      {"queue_depth", "Infeed queue, steps", cores.infeed.queue_depth, Unit::kCount},
      {"slice_bytes", "Slice of one core and step", cores.slice_bytes, Unit::kBytes},
      {"padded_slice_bytes", "Slice as the chip stores it", cores.padded_slice_bytes, Unit::kBytes},
      {"core_demand_examples_per_second", "Examples per second a core takes",
       cores.core_examples_per_s(), Unit::kCount},
  };
}

std::vector<Fact> PercentileFacts(absl::string_view key, absl::string_view label,
                                  const LatencyHistogram& latencies) {
  std::vector<Fact> facts;
  for (const auto& [name, fraction] : kReportedPercentiles) {
    facts.push_back(Seconds(absl::StrCat(key, ".", name), absl::StrCat(label, ", ", name),
                            latencies.Percentile(fraction)));
  }
  facts.push_back(
      Seconds(absl::StrCat(key, ".max"), absl::StrCat(label, ", latest"), latencies.max()));
  return facts;
}

Verdict VerdictOf(const Utilisation& used) {
  using Grade = Verdict::Grade;
  if (!used.au.has_value()) {
    return {.text =
                "not known whether input-bound: the first step does not count, and no step "
                "came after it"};
  }
  if (!used.infeed.has_value()) {
    return {.text = "highly input-bound: no step came after the first one", .grade = Grade::kBad};
  }
  const double waiting = used.infeed->average;
  return {.text = absl::StrCat(InfeedVerdict(waiting), ": waiting for data ",
                               NumberText(waiting, Unit::kFraction), " of the time"),
          .grade = waiting < kModeratelyInputBound ? Grade::kGood
                   : waiting < kHighlyInputBound   ? Grade::kFair
                                                   : Grade::kBad};
}

Roofline RooflineOf(const ChipProgram& program) {
  Roofline roofline = {.peak_flops_per_second = program.peak_flops,
                       .bytes_per_second = program.memory_bytes_per_s};
  for (const LayerCost& layer : program.layers) {
    roofline.layers.push_back({.name = layer.name,
                               .flops = layer.flops,
                               .bytes = layer.memory_bytes,
                               .seconds = layer.seconds,
                               .bound = layer.bound});
  }
  return roofline;
}

RunReport ReportOf(const TimingReport& timing, const StepHistory& steps) {
  const Utilisation used = timing.books.utilisation();
  RunReport report = {.mode = timing.overhead.has_value() ? RunMode::kPaced : RunMode::kReplay,
                      .verdict = VerdictOf(used),
                      .facts = FactsOf(timing.cores),
                      .results = UtilisationFacts(timing, used),
                      .steps = steps,
                      .notes = timing.notes};
  report.results.push_back({"steps", "Steps", timing.books.steps(), Unit::kCount});
  report.results.push_back({"counted_steps", "Counted steps", used.steps, Unit::kCount, true});
  report.results.push_back(
      Seconds("first_step_wait_seconds", "Wait for the first step", timing.books.first_wait()));
  Append(PercentileFacts("step_arrival_seconds", "Step arrived late by", timing.books.waits()),
         report.results);
  if (timing.overhead.has_value()) {
    Append(OverheadFacts(*timing.overhead, used, timing.wall_au), report.results);
  }
  for (const CoreBooks& core : used.cores) {
    report.cores.push_back({.infeed_stall = core.infeed_stall, .barrier = core.barrier});
  }
  return report;
}

}  // namespace systole::emulator
