#include "client/emulator/training/training_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace systole::emulator {
namespace {

double PerSecond(int64_t count, absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

double EpochReport::images_per_second() const { return PerSecond(training.examples, duration); }

absl::Duration EpochReport::mean_step() const {
  return steps > 0 ? duration / steps : absl::ZeroDuration();
}

int64_t TrainingReport::bytes_received() const {
  int64_t bytes = 0;
  for (const EpochReport& epoch : epochs) bytes += epoch.bytes_received;
  return bytes;
}

std::vector<absl::Duration> TrainingReport::infeed_stall() const {
  std::vector<absl::Duration> stall(static_cast<size_t>(num_cores));
  for (const EpochReport& epoch : epochs) {
    for (size_t core = 0; core < std::min(stall.size(), epoch.infeed_stall.size()); ++core) {
      stall[core] += epoch.infeed_stall[core];
    }
  }
  return stall;
}

double TrainingReport::images_per_second() const {
  int64_t images = 0;
  absl::Duration time;
  for (const EpochReport& epoch : epochs) {
    images += epoch.training.examples;
    time += epoch.duration;
  }
  return PerSecond(images, time);
}

std::string TrainingReport::ToText(absl::string_view about_feed) const {
  std::string text = absl::StrFormat(
      "functional mode, model %s, %d cores x %d examples, numerics %s\n"
      "epoch  steps     loss  accuracy  val loss  val accuracy  images/s  step ms\n",
      model, num_cores, per_core_batch, numerics);
  for (size_t i = 0; i < epochs.size(); ++i) {
    const EpochReport& e = epochs[i];
    const std::string validation =
        e.validation ? absl::StrFormat("%8.4f  %12.3f", e.validation->loss, e.validation->accuracy)
                     : absl::StrFormat("%8s  %12s", "-", "-");
    absl::StrAppendFormat(&text, "%5d  %5d  %7.4f  %8.3f  %s  %8.0f  %7.2f\n", i + 1, e.steps,
                          e.training.loss, e.training.accuracy, validation, e.images_per_second(),
                          absl::ToDoubleMilliseconds(e.mean_step()));
  }
  absl::StrAppendFormat(&text, "first step after %.2f s; infeed stall per core, s:",
                        absl::ToDoubleSeconds(first_step_wait));
  for (const absl::Duration stall : infeed_stall()) {
    absl::StrAppendFormat(&text, " %.2f", absl::ToDoubleSeconds(stall));
  }
  absl::StrAppendFormat(&text, "\n%.1f MB received, %.0f images/s, training took %.1f s\n",
                        static_cast<double>(bytes_received()) / 1e6, images_per_second(),
                        absl::ToDoubleSeconds(training_time));
  if (!about_feed.empty()) absl::StrAppend(&text, about_feed, "\n");
  if (!epochs.empty() && epochs.back().validation) {
    absl::StrAppendFormat(&text, "validation accuracy %.3f\n", epochs.back().validation->accuracy);
  }
  return text;
}

}  // namespace systole::emulator
