// `systole load`: how many trainers, each with a slice of a chip, do these servers keep busy?

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/feed_flags.h"
#include "client/cli/commands/open_feed.h"
#include "client/cli/commands/report_flags.h"
#include "client/cli/commands/timing_flags.h"
#include "client/cli/commands/waiting_text.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/pacing/feed_origin.h"
#include "client/cli/pacing/load_level.h"
#include "client/cli/pacing/load_report.h"
#include "client/cli/pacing/paced_feed.h"
#include "client/emulator/report/feed_facts.h"
#include "client/emulator/report/run_report.h"
#include "client/feed/feed_client.h"
#include "core/status/status_macros.h"
#include "core/text/duration_text.h"

namespace systole {
namespace {

constexpr int64_t kMaxTrainers = 1024;
// Fewer steps than this say little about a rate.
constexpr int kLeastSteps = 10;

class LoadCommand final : public Command {
 public:
  std::string name() const override { return "load"; }
  std::string summary() const override {
    return "Find how many paced trainers the servers keep busy, and what that costs them";
  }
  std::string example() const override {
    return "systole load --server 127.0.0.1:8470 --spec deploy/specs/resnet50.textproto "
           "--trainers 4 --model resnet50 --slice v3-8 --duration 60s";
  }

  void Declare(OptionList& options) override {
    flags_.Declare(options);
    options.Required(
        "--spec", "FILE", &spec_,
        "The feed spec. Its `epochs` is ignored: the feed has no end. Each trainer adds its "
        "number to the seed");
    options.Optional(
        "--trainers", "N", &trainers_,
        "The most trainers to try. Tries 1, 2, 4 .. N, then searches between the largest number "
        "that was fed and the smallest that was not. Each trainer needs memory for at least two "
        "steps");
    timing_.Declare(options);
    options.Optional("--duration", &duration_, "How long each number of trainers runs");
    options.Flag(
        "--ramp", &ramp_,
        "Run 1, 2, 4 .. N trainers, fed or not, to see how waits and the servers' load grow");
    report_.Declare(options);
  }

  absl::Status Run(const Console& console) override {
    if (trainers_ < 1 || trainers_ > kMaxTrainers) {
      return absl::InvalidArgumentError(
          absl::StrCat("--trainers ", trainers_, ": want 1 to ", kMaxTrainers));
    }
    SYSTOLE_ASSIGN_OR_RETURN(const TimedSteps timed, timing_.Load());
    SYSTOLE_RETURN_IF_ERROR(report_.Check());
    LoadOptions options;
    SYSTOLE_RETURN_IF_ERROR(
        CheckDuration("--duration", duration_, absl::Milliseconds(1), absl::Hours(24 * 365)));
    options.duration = duration_;
    SYSTOLE_ASSIGN_OR_RETURN(options.spec, LoadSpec(spec_));
    options.spec.set_epochs(0);
    SYSTOLE_ASSIGN_OR_RETURN(options.client, flags_.ToOptions(console));
    LoadReport report = {.most_trainers = static_cast<int>(trainers_), .ramp = ramp_};
    SYSTOLE_ASSIGN_OR_RETURN(options.cores, CoresOf(timed, options, console, report.facts));
    if (options.cores.infeed.step_time * kLeastSteps > options.duration) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--duration ", absl::FormatDuration(duration_), ": want at least ", kLeastSteps,
          " steps of ", absl::FormatDuration(options.cores.infeed.step_time)));
    }
    SYSTOLE_RETURN_IF_ERROR(Search(options, console, report));
    const emulator::RunReport as_run = ReportOf(report);
    console.out << (console.json ? emulator::ToJson(as_run) + "\n" : report.ToText());
    return report_.Write(as_run);
  }

 private:
  // Asks a server which tensors the spec yields, and computes how long a step of them takes on the
  // chip. Stores in `facts` what a report says about the feed.
  absl::StatusOr<emulator::TimedCores> CoresOf(const TimedSteps& timed, const LoadOptions& options,
                                               const Console& console,
                                               std::vector<emulator::Fact>& facts) const {
    SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FeedClient> client,
                             OpenFeed(options.spec, options.client, console));
    facts =
        emulator::FactsOf(OriginOf(spec_, options.spec, options.client.servers, client->info()));
    facts.push_back({"systole_version", "Systole", std::string(console.version)});
    SYSTOLE_ASSIGN_OR_RETURN(TimedFeed feed,
                             timed.FeedFor(TensorsOf(client->layout()), client->core_end()));
    return std::move(feed.cores);
  }

  absl::Status Search(const LoadOptions& options, const Console& console,
                      LoadReport& report) const {
    std::vector<emulator::PacedResult> all;
    const auto run = [&](int trainers) -> absl::StatusOr<bool> {
      ProgressBar bar(console, {.label = absl::StrCat("trainers ", trainers),
                                .total = absl::ToInt64Milliseconds(options.duration),
                                .unit = ProgressUnit::kMilliseconds,
                                .notice = WaitingNotice(options.client.watch)});
      int64_t shown = 0;
      SYSTOLE_ASSIGN_OR_RETURN(LoadLevel level,
                               RunLoadLevel(options, trainers, [&](absl::Duration passed) {
                                 const int64_t now = absl::ToInt64Milliseconds(passed);
                                 bar.Add(now - std::exchange(shown, now));
                               }));
      all.insert(all.end(), level.trainers.begin(), level.trainers.end());
      report.levels.push_back(std::move(level));
      return report.levels.back().fed();
    };
    SYSTOLE_ASSIGN_OR_RETURN(report.largest_fed, ramp_ ? RampUp(report.most_trainers, run)
                                                       : LargestFed(report.most_trainers, run));
    report.notes = PacingNotes(options.client.servers, all);
    if (std::string text = WindowsText(report.headline_level()); !text.empty()) {
      report.notes.push_back(std::move(text));
    }
    for (const LoadLevel& level : report.levels) report.missing.Merge(level.missing);
    if (!report.missing.MaskedText().empty()) report.notes.push_back(report.missing.MaskedText());
    return absl::OkStatus();
  }

  FeedFlags flags_;
  TimingFlags timing_;
  std::string spec_;
  int64_t trainers_ = 1;
  absl::Duration duration_ = absl::Minutes(1);
  bool ramp_ = false;
  ReportFlags report_;
};

}  // namespace

std::unique_ptr<Command> MakeLoadCommand() { return std::make_unique<LoadCommand>(); }

}  // namespace systole
