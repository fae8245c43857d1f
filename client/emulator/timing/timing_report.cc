#include "client/emulator/timing/timing_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace systole::emulator {
namespace {

double Ms(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }

// A line with the mean value, the largest value, and the core that has the largest value. Lines for
// all cores of a pod would fill a page.
std::string CoreLine(const char* what, const std::vector<CoreBooks>& cores,
                     absl::Duration CoreBooks::*field) {
  size_t longest = 0;
  absl::Duration sum;
  for (size_t core = 0; core < cores.size(); ++core) {
    sum += cores[core].*field;
    if (cores[core].*field > cores[longest].*field) longest = core;
  }
  return absl::StrFormat("%s  mean over cores %.3f s, most %.3f s (core %d)\n", what,
                         absl::ToDoubleSeconds(sum) / static_cast<double>(cores.size()),
                         absl::ToDoubleSeconds(cores[longest].*field), longest);
}

std::string UtilisationText(const Utilisation& used) {
  if (!used.au.has_value()) {
    return "AU              not known: the first step does not count, and no step came after it\n";
  }
  if (!used.infeed.has_value()) {
    return absl::StrFormat("AU              0.00 %%: no step came in %.3f s after the first one\n",
                           absl::ToDoubleSeconds(used.total));
  }
  return absl::StrFormat(
             "AU              %.2f %% (%s)\n"
             "infeed          %.2f %% of a step on average (%.2f to %.2f): %s\n"
             "time            compute %.3f s of %.3f s, %d steps, the first left out\n",
             100 * *used.au, AuVerdict(*used.au), 100 * used.infeed->average,
             100 * used.infeed->min, 100 * used.infeed->max, InfeedVerdict(used.infeed->average),
             absl::ToDoubleSeconds(used.compute), absl::ToDoubleSeconds(used.total), used.steps) +
         CoreLine("infeed stall  ", used.cores, &CoreBooks::infeed_stall) +
         CoreLine("barrier       ", used.cores, &CoreBooks::barrier) +
         (used.open_wait > absl::ZeroDuration()
              ? absl::StrFormat("open wait       %.3f s, when the run ended\n",
                                absl::ToDoubleSeconds(used.open_wait))
              : "");
}

}  // namespace

std::string PercentilesText(const LatencyHistogram& latencies) {
  std::string text;
  for (const auto& [name, fraction] : kReportedPercentiles) {
    absl::StrAppendFormat(&text, "%s %.3f ms, ", name, Ms(latencies.Percentile(fraction)));
  }
  absl::StrAppendFormat(&text, "max %.3f ms", Ms(latencies.max()));
  return text;
}

std::string CoresText(const TimedCores& cores) {
  return absl::StrFormat(
      "cores           %d x %d examples%s%s, steps of %.3f ms, infeed of %d steps\n"
      "slice           %.1f MB a core, %.1f MB as the chip stores it, %.3f ms over its link\n",
      cores.infeed.num_cores, cores.per_core_batch,
      cores.model.empty() ? "" : absl::StrCat(", ", cores.model),
      cores.slice.empty() ? "" : absl::StrCat(" on ", cores.slice), Ms(cores.infeed.step_time),
      cores.infeed.queue_depth, static_cast<double>(cores.slice_bytes) / 1e6,
      static_cast<double>(cores.padded_slice_bytes) / 1e6, Ms(cores.infeed.transfer_time));
}

std::string TimingReport::ToText() const {
  std::string text = absl::StrCat("mode            ", overhead.has_value() ? "paced" : "replay",
                                  "\n", CoresText(cores), UtilisationText(books.utilisation()));
  if (books.waits().count() > 0) {
    absl::StrAppend(&text, "step arrival    ", PercentilesText(books.waits()),
                    " after it was wanted\n");
  }
  absl::StrAppendFormat(&text, "first step      after %.3f s\n",
                        absl::ToDoubleSeconds(books.first_wait()));
  if (overhead.has_value() && books.steps() > 0) {
    const auto steps = static_cast<double>(books.steps());
    absl::StrAppendFormat(&text,
                          "emulator        noticed a step after %.1f us (at most %.1f), worked "
                          "%.1f us a step, at most %.1f us late; clock moved on by %.3f s\n",
                          Ms(overhead->noticing) * 1e3 / steps, Ms(overhead->max_noticing) * 1e3,
                          Ms(overhead->work) * 1e3 / steps, Ms(overhead->max_late) * 1e3,
                          absl::ToDoubleSeconds(books.utilisation().overhead));
  }
  if (wall_au.has_value()) {
    absl::StrAppendFormat(&text, "AU, wall clock  %.2f %%, the emulator's own time included\n",
                          100 * *wall_au);
  }
  for (const std::string& note : notes) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

}  // namespace systole::emulator
