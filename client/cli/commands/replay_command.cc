// `systole replay`: records once when a feed's slices arrive, and computes from the recording how
// busy any chip would have been.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/endless_feed.h"
#include "client/cli/commands/feed_flags.h"
#include "client/cli/commands/report_flags.h"
#include "client/cli/commands/timing_flags.h"
#include "client/cli/commands/timing_output.h"
#include "client/cli/commands/waiting_text.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/pacing/core_queues.h"
#include "client/cli/pacing/missing_tally.h"
#include "client/cli/pacing/paced_feed.h"
#include "client/cli/pacing/saved_arrivals.h"
#include "client/emulator/timing/replay.h"
#include "client/emulator/timing/timing_report.h"
#include "client/feed/feed_client.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/json/json_writer.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"

namespace systole {
namespace {

constexpr char kDrainNote[] =
    "the arrivals were recorded by a reader that never waits. A client of a slower chip would stop "
    "when its window is full, so a stall of its servers could cost more than shown: AU is an upper "
    "bound";
constexpr char kPacedNote[] =
    "the arrivals were recorded in a paced run, whose feed waited for its chip: they say nothing "
    "about a faster chip";

class ReplayCommand final : public Command {
 public:
  std::string name() const override { return "replay"; }
  std::string summary() const override {
    return "Record a feed's arrivals once, compute any chip's utilization from them";
  }
  std::string example() const override {
    return "systole replay --server 127.0.0.1:8470 --spec deploy/specs/resnet50.textproto "
           "--steps 20 --save-arrivals photos.arrivals && "
           "systole replay --arrivals photos.arrivals --model resnet50 --slice v2-8";
  }

  void Declare(OptionList& options) override {
    flags_.DeclareOptional(options);
    options.Optional("--spec", "FILE", &spec_,
                     "The feed spec to record. Its `epochs` is ignored: the feed has no end");
    options.Optional("--steps", "N", &steps_, "Steps to record. Default: 100");
    options.Optional(
        "--save-arrivals", "FILE", &save_arrivals_,
        "Record a feed here, as fast as it can be read: slices are taken as they come, so the "
        "utilization computed for a slower chip is an upper bound");
    options.Optional("--arrivals", "FILE", &arrivals_, "Replay this recording");
    timing_.Declare(options);
    report_.Declare(options);
  }

  absl::Status Run(const Console& console) override {
    const bool record = flags_.has_servers() && !spec_.empty() && !save_arrivals_.empty();
    const bool replay = !arrivals_.empty();
    const bool any_record =
        flags_.has_servers() || !spec_.empty() || !save_arrivals_.empty() || steps_.has_value();
    if (record == replay || (replay && any_record)) {
      return absl::InvalidArgumentError(
          "want --server, --spec and --save-arrivals to record, or --arrivals to replay");
    }
    return record ? Record(console) : Replay(console);
  }

 private:
  absl::Status Record(const Console& console) const {
    SYSTOLE_RETURN_IF_ERROR(timing_.CheckRecordsOnly());
    if (!report_.empty()) {
      return absl::InvalidArgumentError(
          "a recording has no report: give --report or --report-json with --arrivals");
    }
    SYSTOLE_ASSIGN_OR_RETURN(const int64_t queue_depth, timing_.QueueDepth());
    const int64_t steps = steps_.value_or(100);
    if (steps < 1) {
      return absl::InvalidArgumentError(absl::StrCat("--steps ", steps, ": want 1 or more"));
    }
    SYSTOLE_RETURN_IF_ERROR(CheckWritable(save_arrivals_));
    SYSTOLE_ASSIGN_OR_RETURN(FeedClientOptions options, flags_.ToOptions(console));
    options.steps = steps;
    SYSTOLE_ASSIGN_OR_RETURN(EndlessFeed feed, OpenEndlessFeed(spec_, options, console));
    emulator::Arrivals arrivals = std::move(feed.arrivals);
    SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<CoreQueues> queues,
                             CoreQueues::Create(std::move(feed.client), queue_depth));
    const emulator::PopArrival pop =
        emulator::Recording(ArrivalsOf(*queues), SteadyClock(), arrivals);
    {
      ProgressBar bar(
          console, {.label = "recording", .total = steps, .notice = WaitingNotice(options.watch)});
      while (true) {
        SYSTOLE_ASSIGN_OR_RETURN(const std::optional<emulator::StepArrival> step,
                                 emulator::PopStep(pop, arrivals.num_cores));
        if (!step.has_value()) break;
        bar.Add(1);
      }
    }
    SYSTOLE_RETURN_IF_ERROR(SaveArrivals(save_arrivals_, arrivals, console.version));
    const MissingTally missing(queues->client().stats());
    const double seconds = arrivals.ns.empty() ? 0 : static_cast<double>(arrivals.ns.back()) * 1e-9;
    if (console.json) {
      JsonWriter json;
      json.BeginObject().Field("mode", "replay").Field("recorded_steps", arrivals.steps());
      json.Field("cores", arrivals.num_cores).Field("per_core_batch", arrivals.per_core_batch());
      json.Field("last_arrival_seconds", seconds).Field("arrivals", save_arrivals_);
      missing.AppendTo(json);
      console.out << json.EndObject().text() << "\n";
    } else {
      console.out << absl::StrFormat(
          "mode            replay\nrecorded        %d steps of %d x %d examples, the last after "
          "%.3f s\n",
          arrivals.steps(), arrivals.num_cores, arrivals.per_core_batch(), seconds);
      if (!missing.MaskedText().empty()) console.out << "note: " << missing.MaskedText() << "\n";
    }
    return absl::OkStatus();
  }

  absl::Status Replay(const Console& console) const {
    SYSTOLE_ASSIGN_OR_RETURN(const TimedSteps timed, timing_.Load());
    SYSTOLE_RETURN_IF_ERROR(report_.Check());
    SYSTOLE_ASSIGN_OR_RETURN(const emulator::Arrivals arrivals, LoadArrivals(arrivals_));
    SYSTOLE_ASSIGN_OR_RETURN(const TimedFeed feed,
                             timed.FeedFor(arrivals.tensors, arrivals.num_cores));
    emulator::StepHistory steps;
    SYSTOLE_ASSIGN_OR_RETURN(
        emulator::TimingBooks books,
        emulator::Replay(arrivals, feed.cores.infeed, [&steps](const emulator::StepRecord& record) {
          AddCounted(record, steps);
        }));
    const bool drained = arrivals.recorded_by == emulator::RecordedBy::kDrain;
    return PrintTimingReport(arrivals.origin,
                             {.cores = feed.cores,
                              .books = std::move(books),
                              .notes = {drained ? kDrainNote : kPacedNote}},
                             steps, feed.program, /*more_results=*/{}, report_, console);
  }

  FeedFlags flags_;
  TimingFlags timing_;
  std::string spec_;
  std::optional<int64_t> steps_;
  std::string save_arrivals_;
  std::string arrivals_;
  ReportFlags report_;
};

}  // namespace

std::unique_ptr<Command> MakeReplayCommand() { return std::make_unique<ReplayCommand>(); }

}  // namespace systole
