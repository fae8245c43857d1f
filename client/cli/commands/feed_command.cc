// `systole feed`: drains a feed, to see what is in it and how fast it comes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/feed_flags.h"
#include "client/cli/commands/open_feed.h"
#include "client/cli/commands/step_printer.h"
#include "client/cli/commands/waiting_text.h"
#include "client/cli/console/interrupt.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/pacing/missing_tally.h"
#include "client/cli/pacing/verdict_facts.h"
#include "client/emulator/report/run_report.h"
#include "client/feed/feed_client.h"
#include "client/step/feed_metrics.h"
#include "client/verdict/feed_verdict.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/json/json_writer.h"
#include "core/metrics/metric_text.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// What the feed has delivered so far.
struct FeedReport {
  int64_t first_step = 0;
  const SliceLayout* layout = nullptr;  // The client's.
  const v1::FeedSpec* spec = nullptr;
  int64_t steps = 0;
  int64_t examples = 0;  // Without padding and masked examples.
  double seconds = 0;
  // The next two fields are sums over the cores that are read. Their difference is the padding of
  // tiles.
  int64_t bytes_per_step = 0;
  int64_t useful_bytes_per_step = 0;
  bool nothing_to_finish = false;  // --finish client was given, and has no effect.
  FeedClientStats client;
  std::string token;

  double PerSecond(double amount) const { return seconds > 0 ? amount / seconds : 0; }
  double megabytes() const { return static_cast<double>(client.delivered_bytes) / 1e6; }

  std::string ToText() const {
    return absl::StrFormat(
               "%d steps, %d examples, %.1f MB in %.2f s: %.1f steps/s, %.0f examples/s, %.1f "
               "MB/s\n",
               steps, examples, megabytes(), seconds, PerSecond(static_cast<double>(steps)),
               PerSecond(static_cast<double>(examples)), PerSecond(megabytes())) +
           MetricsText(ReadFeedMetrics(client)) + LimitText() + TilesText() + FinishText() +
           NotSharedText() + MaskedText();
  }
  // What limits the feed. Empty if that is not known, as after a single step.
  std::string LimitText() const {
    const std::string text = VerdictText(client.waits.verdict, *layout, *spec);
    return text.empty() ? "" : absl::StrCat(text, "\n");
  }
  // Empty if nothing is masked.
  std::string MaskedText() const {
    if (client.masked_examples == 0) return "";
    return absl::StrCat("note: ", MissingTally(client).MaskedText(), "\n");
  }
  // Empty if no server is on this machine, or if all batches came through shared memory.
  std::string NotSharedText() const {
    if (client.not_shared.empty()) return "";
    return absl::StrCat("note: not all batches came through shared memory: ", client.not_shared,
                        "\n");
  }
  // Empty if no output is in tiles.
  std::string TilesText() const {
    if (useful_bytes_per_step == bytes_per_step) return "";
    return absl::StrFormat(
        "tiles (HWCN_TILED): %d of %d bytes a step are examples, %.1f %%; the rest pads channels "
        "to 8 and places to 128\n",
        useful_bytes_per_step, bytes_per_step,
        100.0 * static_cast<double>(useful_bytes_per_step) / static_cast<double>(bytes_per_step));
  }
  // Empty unless --finish client was given and has no effect.
  std::string FinishText() const {
    if (!nothing_to_finish) return "";
    return "note: --finish client: no output of this spec can travel as uint8; resized pixels can "
           "if they have round_to_uint8, a float dtype and no tiles\n";
  }
  std::string ToJson() const {
    JsonWriter json;
    json.BeginObject().Field("first_step", first_step).Field("steps", steps);
    json.Field("examples", examples).Field("seconds", seconds);
    json.Field("steps_per_second", PerSecond(static_cast<double>(steps)));
    json.Field("examples_per_second", PerSecond(static_cast<double>(examples)));
    json.Field("megabytes_per_second", PerSecond(megabytes()));
    json.Field("bytes_per_step", bytes_per_step);
    json.Field("useful_bytes_per_step", useful_bytes_per_step);
    json.Field("not_shared", client.not_shared);
    json.Key("metrics").BeginObject();
    AppendMetrics(ReadFeedMetrics(client), json);
    json.EndObject();
    MissingTally(client).AppendRecordsTo(json);
    emulator::AppendFacts(VerdictFacts(client.waits.verdict, *layout, *spec), json);
    return json.Field("token", token).EndObject().text();
  }
};

int64_t ValidExamples(const Step& step) {
  int64_t valid = 0;
  for (int core = step.core_begin(); core < step.core_end(); ++core) {
    for (const uint8_t place : step.Tensor(core, step.layout().valid_index()).bytes()) {
      valid += place != 0 ? 1 : 0;
    }
  }
  return valid;
}

class FeedCommand final : public Command {
 public:
  std::string name() const override { return "feed"; }
  std::string summary() const override {
    return "Read a feed as fast as it comes; show its rate and what is in it";
  }
  std::string example() const override {
    return "systole feed --server 127.0.0.1:8470 --spec deploy/specs/flowers.textproto --steps 20";
  }

  void Declare(OptionList& options) override {
    flags_.Declare(options);
    options.Required("--spec", "FILE", &spec_, "The feed spec: textproto, or JSON if named .json");
    options.Optional("--first-step", "K", &first_step_, "The first step wanted");
    options.Optional(
        "--resume", "TOKEN", &resume_,
        "Go on from this token, which an earlier run printed; instead of --first-step");
    options.Optional("--steps", "N", &steps_,
                     "Steps wanted; 0 = to the end of the feed. Default: one epoch");
    options.Optional("--cores", "A:B", &cores_, "Only cores A .. B-1. Default: all");
    options.FlagWithValue("--digest", "core", &digest_,
                          "Print one line for each slice and nothing else: `step core hex`; with "
                          "--digest=example, one for each example: `step core slot hex`");
    options.Optional(
        "--print", "OUTPUT", &print_,
        "Print lines of this output and nothing else: `step core values..`; - stands for an "
        "example that is padding or masked");
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(const StepPrinting printing, Printing());
    if (first_step_.value_or(0) < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--first-step ", *first_step_, ": want 0 or more"));
    }
    if (steps_.value_or(0) < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--steps ", *steps_, ": want 1 or more, or 0 for the rest of the feed"));
    }
    if (console.json && printing != StepPrinting::kNothing) {
      return absl::InvalidArgumentError(
          "--json does not go with --digest or --print: each needs stdout for itself");
    }
    SYSTOLE_ASSIGN_OR_RETURN(const v1::FeedSpec spec, LoadSpec(spec_));
    SYSTOLE_ASSIGN_OR_RETURN(FeedClientOptions options, flags_.ToOptions(console));
    SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FeedClient> client,
                             Connect(spec, options, console));
    const bool finishes = options.finish == "client";
    SYSTOLE_ASSIGN_OR_RETURN(const StepPrinter printer,
                             StepPrinter::Create(printing, print_, client->layout()));
    const int64_t cores = client->core_end() - client->core_begin();
    FeedReport report = {.first_step = client->next_step(),
                         .layout = &client->layout(),
                         .spec = &spec,
                         .bytes_per_step = client->layout().payload_bytes() * cores,
                         .useful_bytes_per_step = client->layout().useful_bytes() * cores,
                         .nothing_to_finish = finishes && !client->can_be_compact()};
    const ProgressBarOptions bar = {
        .label = "feeding",
        .total = client->has_end() ? std::make_optional(client->end_step() - client->next_step())
                                   : std::nullopt,
        .remark =
            [&client, &spec] {
              return VerdictRemark(client->stats().waits.recent, client->layout(), spec);
            },
        .notice = WaitingNotice(options.watch)};
    const absl::Status status = Drain(*client, printer, bar, console, report);
    report.client = client->stats();
    report.token = client->Token().Encode();
    if (!status.ok()) {
      console.err << "after " << report.steps << " steps; to go on there, give --resume "
                  << report.token << "\n";
      console.err << report.MaskedText();
      return status;
    }
    if (console.json) {
      console.out << report.ToJson() << "\n";
      return absl::OkStatus();
    }
    std::ostream& remarks = printing == StepPrinting::kNothing ? console.out : console.err;
    remarks << report.ToText();
    console.err << "--resume " << report.token << "\n";
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<StepPrinting> Printing() const {
    if (!digest_.empty() && !print_.empty()) {
      return absl::InvalidArgumentError(
          "--digest does not go with --print: each needs stdout for itself");
    }
    if (!print_.empty()) return StepPrinting::kValues;
    if (digest_.empty()) return StepPrinting::kNothing;
    if (digest_ == "core") return StepPrinting::kDigest;
    if (digest_ == "example") return StepPrinting::kExampleDigests;
    return absl::InvalidArgumentError(
        absl::StrCat("--digest=", digest_, ": want --digest or --digest=example"));
  }

  absl::StatusOr<std::unique_ptr<FeedClient>> Connect(const v1::FeedSpec& spec,
                                                      FeedClientOptions options,
                                                      const Console& console) const {
    SYSTOLE_RETURN_IF_ERROR(ParseCores(cores_, options));
    if (steps_.has_value()) {
      options.steps = *steps_;
    } else {
      options.epochs = 1;
    }
    if (resume_.empty()) {
      options.first_step = first_step_.value_or(0);
      return OpenFeed(spec, options, console);
    }
    if (first_step_.has_value()) {
      return absl::InvalidArgumentError(
          "--resume does not go with --first-step: the token says where to begin");
    }
    SYSTOLE_ASSIGN_OR_RETURN(const ResumeToken token, ResumeToken::Decode(resume_));
    return OpenFeed(spec, options, console, token);
  }

  // After an error, `report` has the counts up to the error.
  static absl::Status Drain(FeedClient& client, const StepPrinter& printer,
                            const ProgressBarOptions& bar_options, const Console& console,
                            FeedReport& report) {
    const MonotonicClock clock = SteadyClock();
    const absl::Duration begin = clock();
    const InterruptCallback interrupt(console.interrupt, [&client] { client.Cancel(); });
    ProgressBar bar(console, bar_options);
    while (true) {
      absl::StatusOr<std::optional<Step>> step = client.Next();
      report.seconds = absl::ToDoubleSeconds(clock() - begin);
      if (interrupt.requested() && absl::IsCancelled(step.status())) {
        return absl::CancelledError("interrupted");
      }
      SYSTOLE_RETURN_IF_ERROR(step.status());
      if (!step->has_value()) return absl::OkStatus();
      ++report.steps;
      report.examples += ValidExamples(**step);
      printer.Print(**step, console.out);
      // A reader of the output sees each step as soon as it is printed.
      console.out.flush();
      if (!console.out) return absl::InternalError("cannot write to stdout");
      bar.Add(1);
    }
  }

  FeedFlags flags_;
  std::string spec_;
  std::optional<int64_t> first_step_;
  std::string resume_;
  std::optional<int64_t> steps_;
  std::string cores_;
  std::string digest_;
  std::string print_;
};

}  // namespace

std::unique_ptr<Command> MakeFeedCommand() { return std::make_unique<FeedCommand>(); }

}  // namespace systole
