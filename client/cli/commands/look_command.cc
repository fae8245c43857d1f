// `systole look`: the first examples of a feed as a page that a browser shows.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/feed_flags.h"
#include "client/cli/commands/open_feed.h"
#include "client/cli/commands/waiting_text.h"
#include "client/cli/console/interrupt.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/pacing/missing_tally.h"
#include "client/feed/feed_client.h"
#include "client/look/contact_sheet.h"
#include "core/json/json_writer.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"

namespace systole {
namespace {

class LookCommand final : public Command {
 public:
  std::string name() const override { return "look"; }
  std::string summary() const override {
    return "Show what the trainer gets: the examples of a feed as pictures on an HTML page";
  }
  std::string example() const override {
    return "systole look --server 127.0.0.1:8470 --spec deploy/specs/flowers.textproto "
           "--out page.html";
  }

  void Declare(OptionList& options) override {
    flags_.Declare(options);
    options.Required("--spec", "FILE", &spec_, "The feed spec: textproto, or JSON if named .json");
    options.Required("--out", "FILE", &out_, "Write the page here: one HTML file");
    options.Optional("--first-step", "K", &first_step_, "The first step shown");
    options.Optional("--examples", "N", &examples_,
                     "Examples shown, 1 to 1024. Padding and masked examples count, too");
  }

  absl::Status Run(const Console& console) override {
    if (first_step_ < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--first-step ", first_step_, ": want 0 or more"));
    }
    if (examples_ < 1 || examples_ > kMaxSheetExamples) {
      return absl::InvalidArgumentError(
          absl::StrCat("--examples ", examples_, ": want 1 to ", kMaxSheetExamples));
    }
    SYSTOLE_ASSIGN_OR_RETURN(const v1::FeedSpec spec, LoadSpec(spec_));
    SYSTOLE_RETURN_IF_ERROR(CheckWritable(out_));
    SYSTOLE_ASSIGN_OR_RETURN(FeedClientOptions options, flags_.ToOptions(console));
    options.first_step = first_step_;
    // At least 1, because it is a divisor. A server refuses a spec without global_batch.
    const int64_t batch = std::max<int64_t>(spec.global_batch(), 1);
    options.steps = (examples_ - 1) / batch + 1;
    SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FeedClient> client,
                             OpenFeed(spec, options, console));
    const ProgressBarOptions bar = {.label = "reading",
                                    .total = client->end_step() - client->next_step(),
                                    .notice = WaitingNotice(options.watch)};
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<Step> steps, Take(*client, bar, console));
    if (steps.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--first-step ", first_step_,
                                                     ": the feed ends before this step; it has ",
                                                     client->end_step(), " steps"));
    }
    SYSTOLE_ASSIGN_OR_RETURN(const std::string page,
                             ContactSheet(spec, steps,
                                          {.source = absl::StrJoin(options.servers, ", "),
                                           .version = client->info().identity().content_version(),
                                           .explanation = client->Explain(),
                                           .order = client->order(),
                                           .max_examples = examples_}));
    SYSTOLE_RETURN_IF_ERROR(WriteFileAtomically(out_, page));
    Report(*client, steps, page, console);
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::vector<Step>> Take(FeedClient& client,
                                                const ProgressBarOptions& bar_options,
                                                const Console& console) {
    const InterruptCallback interrupt(console.interrupt, [&client] { client.Cancel(); });
    ProgressBar bar(console, bar_options);
    std::vector<Step> steps;
    while (true) {
      absl::StatusOr<std::optional<Step>> step = client.Next();
      if (interrupt.requested() && absl::IsCancelled(step.status())) {
        return absl::CancelledError("interrupted");
      }
      SYSTOLE_RETURN_IF_ERROR(step.status());
      if (!step->has_value()) return steps;
      steps.push_back(**std::move(step));
      bar.Add(1);
    }
  }

  void Report(const FeedClient& client, const std::vector<Step>& steps, const std::string& page,
              const Console& console) const {
    const FeedClientStats stats = client.stats();
    const int64_t places = steps[0].layout().per_core_batch() *
                           (client.core_end() - client.core_begin()) *
                           static_cast<int64_t>(steps.size());
    const int64_t shown = std::min(examples_, places);
    if (console.json) {
      JsonWriter json;
      json.BeginObject().Field("out", out_).Field("bytes", static_cast<int64_t>(page.size()));
      json.Field("first_step", steps.front().number());
      json.Field("steps", static_cast<int64_t>(steps.size())).Field("places", places);
      json.Field("places_shown", shown);
      MissingTally(stats).AppendTo(json);
      console.out << json.EndObject().text() << "\n";
      return;
    }
    console.out << absl::StrFormat(
        "%s: %d of %d examples (padding included), from step %d on, %.1f MB; open it in a "
        "browser\n",
        out_, shown, places, steps.front().number(), static_cast<double>(page.size()) / 1e6);
    if (stats.masked_examples > 0) {
      console.out << "note: " << MissingTally(stats).MaskedText() << "\n";
    }
  }

  FeedFlags flags_;
  std::string spec_;
  std::string out_;
  int64_t first_step_ = 0;
  int64_t examples_ = 64;
};

}  // namespace

std::unique_ptr<Command> MakeLookCommand() { return std::make_unique<LookCommand>(); }

}  // namespace systole
