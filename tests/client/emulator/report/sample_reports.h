// Reports with invented numbers, for tests that draw them: a training run, a paced run and a load
// test.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CLIENT_EMULATOR_REPORT_SAMPLE_REPORTS_H_
#define SYSTOLE_TESTS_CLIENT_EMULATOR_REPORT_SAMPLE_REPORTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/emulator/report/run_report.h"
#include "client/emulator/report/training_run.h"

namespace systole::emulator {

// A training run of `epochs` epochs of `epoch_steps` steps on 8 cores. The loss falls, but not
// evenly.
inline RunReport SampleTraining(const std::string& model, int64_t epochs, int64_t epoch_steps) {
  TrainingReport training;
  training.model = model;
  training.num_cores = 8;
  training.per_core_batch = 16;
  training.training_time = absl::Seconds(26.125);
  training.first_step_wait = absl::Milliseconds(412);
  StepHistory steps;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (int64_t step = 0; step < epoch_steps; ++step) {
      const int64_t s = epoch * epoch_steps + step;
      const double progress = static_cast<double>(s) / static_cast<double>(epochs * epoch_steps);
      const double ripple = static_cast<double>(s * 7919 % 101) / 101 - 0.5;
      steps.Add(EntryOf({.epoch = epoch,
                         .step = step,
                         .steps_per_epoch = epoch_steps,
                         .loss = 1.7 / (1 + 6 * progress) + 0.2 * ripple,
                         .accuracy = 0.3 + 0.6 * progress + 0.08 * ripple,
                         .learning_rate = progress < 0.1 ? progress : 0.1 * (1 - progress),
                         .start = absl::Milliseconds(80 * s),
                         .infeed_stall = absl::Milliseconds(s % 9 == 5 ? 25 : 0),
                         .compute = absl::Milliseconds(60 + 8 * (s % 3))}));
    }
    EpochReport report;
    report.steps = epoch_steps;
    const double progress = static_cast<double>(epoch + 1) / static_cast<double>(epochs);
    report.training = {.examples = 128 * epoch_steps,
                       .loss = 1.7 / (1 + 6 * progress),
                       .accuracy = 0.3 + 0.6 * progress};
    report.validation =
        Score{.examples = 725, .loss = 0.2 + 1 / (1 + 4 * progress), .accuracy = 0.8 * progress};
    report.duration = absl::Milliseconds(80 * epoch_steps);
    report.compute = absl::Milliseconds(68 * epoch_steps);
    report.bytes_received = 3146752 * epoch_steps;
    for (int core = 0; core < 8; ++core) {
      report.infeed_stall.push_back(absl::Milliseconds(11 * (core + 1) * (epoch + 1)));
    }
    training.epochs.push_back(report);
  }
  return ReportOf(training, steps,
                  {{"seed", "Seed of the weights", uint64_t{18446744073709551615u}},
                   {"dataset", "Dataset", std::string("flowers")}});
}

// A paced run of `steps` steps of ResNet-50 on `cores` cores of v3 chips. In some steps the cores
// wait for data.
inline RunReport SamplePaced(int64_t cores, int64_t steps) {
  RunReport report = {
      .mode = RunMode::kPaced,
      .verdict = {.text = "moderately input-bound: waiting for data 5.17 % of the time",
                  .grade = Verdict::Grade::kFair}};
  report.facts = {{"dataset", "Dataset", std::string("photos")},
                  {"spec", "Feed spec", std::string("resnet50.textproto")},
                  {"servers", "Servers", std::string("10.0.0.1:8470, 10.0.0.2:8470")},
                  {"date", "Date", std::string("2026-11-22T05:03:10Z")},
                  {"model", "Model", std::string("resnet50")},
                  {"chip", "Chip", std::string("v3")},
                  {"slice", "Slice", std::string("v3-8")},
                  {"num_cores", "Cores", cores, Unit::kCount},
                  {"per_core_batch", "Batch per core", int64_t{128}, Unit::kCount}};
  report.results = {
      {"accelerator_utilization", "Accelerator utilization", 0.9418, Unit::kFraction, true},
      {"infeed.average", "Infeed, of step time", 0.0517, Unit::kFraction, true},
      {"images_per_second", "Images per second", 6688.25, Unit::kCount, true},
      {"step_seconds", "Step of the chip", 0.1442, Unit::kSeconds},
      {"bytes_per_second", "Asked of the feed", 2.0133e9, Unit::kBytesPerSecond}};
  for (int64_t step = 0; step < steps; ++step) {
    const int late = step % 17 == 3 ? 40 : step % 5 == 1 ? 6 : 0;
    report.steps.Add({.step = step,
                      .start = absl::Milliseconds(153 * step),
                      .infeed_stall = absl::Milliseconds(late),
                      .compute = absl::Microseconds(144200),
                      .barrier = absl::Milliseconds(late > 0 ? 9 : 0)});
  }
  for (int64_t core = 0; core < cores; ++core) {
    report.cores.push_back({.infeed_stall = absl::Milliseconds(300 + 97 * (core * 5 % 8)),
                            .barrier = absl::Milliseconds(700 - 80 * (core * 5 % 8))});
  }
  report.roofline = Roofline{.peak_flops_per_second = 61.6e12,
                             .bytes_per_second = 450e9,
                             .layers = {{"conv1", 30.2e9, 0.45e9, 1.4e-3, Bound::kMemory},
                                        {"stage2/3x3", 29.6e9, 0.103e9, 0.71e-3, Bound::kMatrix},
                                        {"stage3/3x3", 29.6e9, 0.052e9, 0.55e-3, Bound::kMatrix},
                                        {"stage4/1x1", 13.2e9, 0.064e9, 0.31e-3, Bound::kMatrix},
                                        {"stage5/1x1", 13.2e9, 0.11e9, 0.42e-3, Bound::kMemory},
                                        {"batch norm", 0.41e9, 0.41e9, 0.95e-3, Bound::kVector},
                                        {"flatten", 0, 0, 0, Bound::kMatrix},
                                        {"fc", 0.52e9, 0.0052e9, 0.03e-3, Bound::kMemory}}};
  return report;
}

// A load test with 1, 2, 4 and 3 trainers, in the order of a search. The servers can feed 1 and 2
// trainers, but not 3 or 4.
inline RunReport SampleLoad() {
  RunReport report = {
      .mode = RunMode::kLoad,
      .verdict = {.text = "2 of 4 trainers are fed", .grade = Verdict::Grade::kFair}};
  report.facts = {{"dataset", "Dataset", std::string("photos")}, {"model", "Model", std::string()}};
  report.results = {{"largest_fed", "Trainers that are fed", int64_t{2}, Unit::kCount, true}};
  for (const int64_t trainers : {1, 2, 4, 3}) {
    const auto wanted = static_cast<double>(10 * trainers);
    LevelReport level = {.trainers = trainers,
                         .fed = trainers <= 2,
                         .lowest_au = trainers <= 2 ? 0.98 : 0.7,
                         .window = absl::Seconds(20),
                         .steps_per_second = trainers <= 2 ? wanted * 0.9 : 21,
                         .wanted_steps_per_second = wanted,
                         .examples_per_second = 1280,
                         .retries = trainers - 1,
                         .server_cpus_busy = 1.5 * static_cast<double>(trainers),
                         .server_cpus = 8,
                         .server_resident_bytes = 250'000'000 * trainers,
                         .cores_fed_per_server_cpu = 0.25};
    for (int step = 0; step < 200; ++step) {
      level.waits.Add(absl::Milliseconds((step + 30) * trainers));
    }
    level.waits.Add(absl::Milliseconds(400 * trainers));
    report.levels.push_back(level);
  }
  return report;
}

}  // namespace systole::emulator

#endif  // SYSTOLE_TESTS_CLIENT_EMULATOR_REPORT_SAMPLE_REPORTS_H_
