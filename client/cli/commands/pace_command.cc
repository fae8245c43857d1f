// `systole pace`: would this feed keep that chip busy? Reads the feed at the chip's rate.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/endless_feed.h"
#include "client/cli/commands/feed_flags.h"
#include "client/cli/commands/report_flags.h"
#include "client/cli/commands/timing_flags.h"
#include "client/cli/commands/timing_output.h"
#include "client/cli/commands/waiting_text.h"
#include "client/cli/console/interrupt.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/pacing/core_queues.h"
#include "client/cli/pacing/missing_tally.h"
#include "client/cli/pacing/paced_feed.h"
#include "client/cli/pacing/saved_arrivals.h"
#include "client/emulator/timing/paced_run.h"
#include "client/emulator/timing/replay.h"
#include "client/emulator/timing/timing_report.h"
#include "client/feed/feed_client.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"
#include "core/text/duration_text.h"

namespace systole {
namespace {

class PaceCommand final : public Command {
 public:
  std::string name() const override { return "pace"; }
  std::string summary() const override {
    return "Read a feed at a chip's rate; report accelerator utilization and stalls";
  }
  std::string example() const override {
    return "systole pace --server 127.0.0.1:8470 --spec deploy/specs/resnet50.textproto "
           "--model resnet50 --slice v3-8 --duration 60s";
  }

  void Declare(OptionList& options) override {
    flags_.Declare(options);
    options.Required("--spec", "FILE", &spec_,
                     "The feed spec. Its `epochs` is ignored: the feed has no end");
    timing_.Declare(options);
    options.Optional("--steps", "N", &steps_, "Steps to take");
    options.Optional("--duration", &duration_,
                     "Take steps for this long after the first one. Default, without --steps: 60s");
    options.Optional("--save-arrivals", "FILE", &save_arrivals_,
                     "Also write when each slice arrived, for `systole replay`");
    report_.Declare(options);
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(emulator::PacedOptions options, Length());
    SYSTOLE_ASSIGN_OR_RETURN(const TimedSteps timed, timing_.Load());
    SYSTOLE_RETURN_IF_ERROR(report_.Check());
    if (!save_arrivals_.empty()) SYSTOLE_RETURN_IF_ERROR(CheckWritable(save_arrivals_));
    SYSTOLE_ASSIGN_OR_RETURN(const FeedClientOptions client_options, flags_.ToOptions(console));
    SYSTOLE_ASSIGN_OR_RETURN(EndlessFeed opened, OpenEndlessFeed(spec_, client_options, console));
    emulator::Arrivals arrivals = std::move(opened.arrivals);
    arrivals.recorded_by = emulator::RecordedBy::kPaced;
    SYSTOLE_ASSIGN_OR_RETURN(const TimedFeed feed,
                             timed.FeedFor(arrivals.tensors, arrivals.num_cores));
    options.infeed = feed.cores.infeed;
    SYSTOLE_ASSIGN_OR_RETURN(
        const std::unique_ptr<CoreQueues> queues,
        CoreQueues::Create(std::move(opened.client), options.infeed.queue_depth));
    emulator::PopArrival pop = ArrivalsOf(*queues);
    if (!save_arrivals_.empty()) {
      pop = emulator::Recording(std::move(pop), SteadyClock(), arrivals);
    }
    emulator::StepHistory steps;
    const InterruptCallback interrupt(console.interrupt, [&queues] { queues->Cancel(); });
    SYSTOLE_ASSIGN_OR_RETURN(
        const emulator::PacedResult result,
        Pace(pop, std::move(options), WaitingNotice(client_options.watch), steps, console));
    if (interrupt.requested() && result.books.steps() == 0) {
      return absl::CancelledError("interrupted before the first step");
    }
    const MissingTally missing(queues->client().stats());
    std::vector<std::string> notes = PacingNotes(client_options.servers, {result});
    if (!missing.MaskedText().empty()) notes.push_back(missing.MaskedText());
    SYSTOLE_RETURN_IF_ERROR(PrintTimingReport(arrivals.origin,
                                              {.cores = feed.cores,
                                               .books = result.books,
                                               .overhead = result.overhead,
                                               .wall_au = result.wall_au,
                                               .notes = std::move(notes)},
                                              steps, feed.program, missing.Facts(), report_,
                                              console));
    if (!save_arrivals_.empty()) {
      SYSTOLE_RETURN_IF_ERROR(SaveArrivals(save_arrivals_, arrivals, console.version));
    }
    if (!interrupt.requested()) return absl::OkStatus();
    return absl::CancelledError(absl::StrCat("interrupted after ", result.books.steps(),
                                             " steps: the report covers these"));
  }

 private:
  // How long to run.
  absl::StatusOr<emulator::PacedOptions> Length() const {
    emulator::PacedOptions options;
    if (steps_.has_value()) {
      if (*steps_ < 1) {
        return absl::InvalidArgumentError(absl::StrCat("--steps ", *steps_, ": want 1 or more"));
      }
      options.max_steps = *steps_;
    }
    if (duration_.has_value() || !steps_.has_value()) {
      options.max_duration = duration_.value_or(absl::Minutes(1));
      SYSTOLE_RETURN_IF_ERROR(CheckDuration("--duration", options.max_duration,
                                            absl::Milliseconds(1), absl::Hours(24 * 365)));
    }
    return options;
  }

  // Runs the feed at the chip's pace. A bar shows how far the run is, in steps or in seconds.
  static absl::StatusOr<emulator::PacedResult> Pace(const emulator::PopArrival& pop,
                                                    emulator::PacedOptions options,
                                                    std::function<std::string()> notice,
                                                    emulator::StepHistory& steps,
                                                    const Console& console) {
    const bool by_steps = options.max_duration == absl::InfiniteDuration();
    ProgressBar bar(console, {.label = "pacing",
                              .total = by_steps ? options.max_steps
                                                : absl::ToInt64Milliseconds(options.max_duration),
                              .unit = by_steps ? ProgressUnit::kItems : ProgressUnit::kMilliseconds,
                              .notice = std::move(notice)});
    int64_t shown = 0;
    options.on_step = [&](const emulator::StepRecord& record, absl::Duration elapsed) {
      const int64_t done = by_steps ? record.step + 1 : absl::ToInt64Milliseconds(elapsed);
      bar.Add(done - std::exchange(shown, done));
      AddCounted(record, steps);
    };
    return emulator::RunPaced(pop, options);
  }

  FeedFlags flags_;
  TimingFlags timing_;
  std::string spec_;
  std::optional<int64_t> steps_;
  std::optional<absl::Duration> duration_;
  std::string save_arrivals_;
  ReportFlags report_;
};

}  // namespace

std::unique_ptr<Command> MakePaceCommand() { return std::make_unique<PaceCommand>(); }

}  // namespace systole
