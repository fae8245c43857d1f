// `systole train`: trains a model on emulated cores that are fed over the network.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands/checkpoint_flags.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/core_infeeds.h"
#include "client/cli/commands/feed_flags.h"
#include "client/cli/commands/open_feed.h"
#include "client/cli/commands/report_flags.h"
#include "client/cli/commands/training_feeds.h"
#include "client/cli/commands/waiting_text.h"
#include "client/cli/console/interrupt.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/console/thread_count.h"
#include "client/cli/pacing/feed_origin.h"
#include "client/cli/pacing/verdict_facts.h"
#include "client/emulator/array/numerics.h"
#include "client/emulator/model/load_model.h"
#include "client/emulator/model/model.h"
#include "client/emulator/report/feed_facts.h"
#include "client/emulator/report/run_report.h"
#include "client/emulator/report/training_run.h"
#include "client/emulator/timing/feed_origin.h"
#include "client/emulator/training/loop_state.h"
#include "client/emulator/training/trainer.h"
#include "client/emulator/training/training_loop.h"
#include "client/feed/feed_client.h"
#include "client/verdict/feed_verdict.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/spec/order_spec.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class TrainCommand final : public Command {
 public:
  std::string name() const override { return "train"; }
  std::string summary() const override {
    return "Train a model on emulated systolic cores, fed by servers";
  }
  std::string example() const override {
    return "systole train --server 127.0.0.1:8470 --spec deploy/specs/flowers.textproto "
           "--eval-spec deploy/specs/flowers-eval.textproto "
           "--model flowers-cnn --epochs 5";
  }

  void Declare(OptionList& options) override {
    flags_.Declare(options);
    options.Required("--spec", "FILE", &spec_,
                     "The training feed's spec; its num_cores is the number of cores emulated");
    options.Optional("--eval-spec", "FILE", &eval_spec_,
                     "The validation feed's spec, read once after each epoch");
    options.Required("--model", "NAME", &model_,
                     "A model that comes with systole, such as flowers-cnn, or a textproto");
    options.Optional("--epochs", "N", &epochs_, "Epochs to train");
    options.Optional("--seed", "S", &seed_, "Seed of the initial weights");
    options.Optional("--numerics", "exact|fast", &numerics_,
                     "exact: the same bits on every machine; fast: oneDNN's sums, AMX if present");
    options.Optional("--threads", "N", &threads_, "Threads; 0 = one for each processor");
    options.Optional("--image-output", "NAME", &outputs_.image, "The output the model takes");
    options.Optional("--label-output", "NAME", &outputs_.label, "The output that holds the class");
    checkpoints_.Declare(options);
    report_.Declare(options);
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(const int threads, ThreadCount(threads_));
    SYSTOLE_ASSIGN_OR_RETURN(const emulator::Numerics numerics, emulator::ParseNumerics(numerics_));
    SYSTOLE_ASSIGN_OR_RETURN(const v1::FeedSpec spec, TrainingSpec());
    std::optional<v1::FeedSpec> eval_spec;
    if (!eval_spec_.empty()) {
      SYSTOLE_ASSIGN_OR_RETURN(eval_spec, EvaluationSpec(spec));
    }
    SYSTOLE_ASSIGN_OR_RETURN(const emulator::Model model, emulator::LoadModel(model_));
    SYSTOLE_ASSIGN_OR_RETURN(FeedClientOptions options, flags_.ToOptions(console));
    SYSTOLE_ASSIGN_OR_RETURN(const std::optional<ResumedRun> resumed, checkpoints_.Load());
    SYSTOLE_RETURN_IF_ERROR(report_.Check());
    Beginning beginning;
    SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<CoreInfeeds> opened,
                             OpenTraining(spec, options, resumed, beginning, console));
    TrainingFeeds feeds(std::move(opened));
    FeedClient& client = feeds.training().client();
    SYSTOLE_ASSIGN_OR_RETURN(
        emulator::Trainer trainer,
        emulator::Trainer::Create(model, {.num_cores = NumCoresOf(spec),
                                          .per_core_batch = client.layout().per_core_batch(),
                                          .threads = threads,
                                          .seed = seed_,
                                          .numerics = numerics}));
    if (resumed.has_value()) SYSTOLE_RETURN_IF_ERROR(resumed->Restore(trainer));
    const emulator::FeedOrigin origin = OriginOf(spec_, spec, options.servers, client.info());
    emulator::StepHistory steps;
    SYSTOLE_ASSIGN_OR_RETURN(
        const emulator::TrainingReport training,
        Train(trainer, feeds, spec, eval_spec, options, resumed, beginning, steps, console));
    emulator::RunReport report =
        emulator::ReportOf(training, steps, Facts(spec, origin, threads, console));
    for (emulator::Fact& fact : feeds.missing().Facts()) report.results.push_back(std::move(fact));
    const FeedVerdict verdict = client.stats().waits.verdict;
    for (emulator::Fact& fact : VerdictFacts(verdict, client.layout(), spec)) {
      report.results.push_back(std::move(fact));
    }
    report.notes = feeds.MaskedNotes();
    if (resumed.has_value()) {
      std::string note = resumed->BatchNote(spec.global_batch());
      if (!note.empty()) report.notes.push_back(std::move(note));
    }
    if (std::string note = emulator::MissingNumericsNote(numerics); !note.empty()) {
      report.notes.push_back(std::move(note));
    }
    if (console.json) {
      console.out << emulator::ToJson(report) << "\n";
    } else {
      console.out << training.ToText(VerdictText(verdict, client.layout(), spec));
      for (const std::string& note : report.notes) console.out << "note: " << note << "\n";
    }
    return report_.Write(report);
  }

 private:
  struct Beginning {
    emulator::LoopState loop;
    int64_t feed_step = 0;  // The training feed's first step in this run.
  };

  absl::StatusOr<v1::FeedSpec> TrainingSpec() const {
    if (epochs_ < 1) {
      return absl::InvalidArgumentError(absl::StrCat("--epochs ", epochs_, ": want 1 or more"));
    }
    SYSTOLE_ASSIGN_OR_RETURN(v1::FeedSpec spec, LoadSpec(spec_));
    if (spec.epochs() > 0 && spec.epochs() < epochs_) {
      return absl::InvalidArgumentError(
          absl::StrCat(spec_, " has epochs: ", spec.epochs(), ", but --epochs ", epochs_,
                       " needs more; write epochs: 0 (without end) into the spec"));
    }
    return spec;
  }

  // The spec of --eval-spec. InvalidArgument if its num_cores or global_batch is not the training
  // spec's.
  absl::StatusOr<v1::FeedSpec> EvaluationSpec(const v1::FeedSpec& training) const {
    SYSTOLE_ASSIGN_OR_RETURN(v1::FeedSpec spec, LoadSpec(eval_spec_));
    if (NumCoresOf(spec) != NumCoresOf(training) ||
        spec.global_batch() != training.global_batch()) {
      return absl::InvalidArgumentError(absl::StrCat(
          eval_spec_, " has global_batch: ", spec.global_batch(),
          " over num_cores: ", NumCoresOf(spec), ", want ", training.global_batch(), " over ",
          NumCoresOf(training), " as in ", spec_, ": the same emulated cores take both feeds"));
    }
    return spec;
  }

  // Opens the training feed. A new run gets the steps of all epochs. A resumed run gets the steps
  // that are left; for this run the function also sets `beginning`.
  absl::StatusOr<std::unique_ptr<CoreInfeeds>> OpenTraining(
      const v1::FeedSpec& spec, FeedClientOptions options, const std::optional<ResumedRun>& resumed,
      Beginning& beginning, const Console& console) const {
    if (!resumed.has_value()) {
      options.epochs = epochs_;
      SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<FeedClient> client,
                               OpenFeed(spec, options, console));
      return CoreInfeeds::Create(std::move(client), outputs_);
    }
    SYSTOLE_RETURN_IF_ERROR(resumed->CheckEpochs(epochs_));
    options.start_at_once = false;  // EndBefore() must come first, and needs a server's answer.
    absl::StatusOr<std::unique_ptr<FeedClient>> opened =
        OpenFeed(spec, options, console, resumed->token);
    if (!opened.ok()) return resumed->Annotate(opened.status());
    FeedClient& client = **opened;
    SYSTOLE_ASSIGN_OR_RETURN(beginning.loop, resumed->LoopIn(client));
    beginning.feed_step = client.next_step();
    const int64_t left = StepsLeft(epochs_, beginning.loop, client.steps_per_epoch());
    const int64_t given = std::min(left, client.end_step() - beginning.feed_step);
    // If the global batch has changed, a mixture can have fewer steps after the resume token than
    // the loop still needs.
    if (spec.epochs() > 0 && given < left) {
      return resumed->Annotate(absl::InvalidArgumentError(
          absl::StrCat("with global_batch: ", spec.global_batch(), " the feed ends after ", given,
                       given == 1 ? " more step" : " more steps", ", but --epochs ", epochs_,
                       " needs ", left, "; write epochs: 0 (without end) into ", spec_,
                       ", or resume with global_batch: ", resumed->checkpoint.global_batch)));
    }
    client.EndBefore(beginning.feed_step + given);
    return CoreInfeeds::Create(*std::move(opened), outputs_);
  }

  std::vector<emulator::Fact> Facts(const v1::FeedSpec& spec, const emulator::FeedOrigin& origin,
                                    int threads, const Console& console) const {
    std::vector<emulator::Fact> facts = emulator::FactsOf(origin);
    facts.insert(
        facts.end(),
        {{"global_batch", "Global batch", int64_t{spec.global_batch()}, emulator::Unit::kCount},
         {"seed", "Seed of the weights", seed_},
         {"feed_seed", "Seed of the feed", uint64_t{spec.seed()}},
         {"threads", "Threads of this host", int64_t{threads}, emulator::Unit::kCount},
         {"systole_version", "Systole", std::string(console.version)}});
    return facts;
  }

  absl::StatusOr<emulator::TrainingReport> Train(
      emulator::Trainer& trainer, TrainingFeeds& feeds, const v1::FeedSpec& spec,
      const std::optional<v1::FeedSpec>& eval_spec, FeedClientOptions options,
      const std::optional<ResumedRun>& resumed, const Beginning& beginning,
      emulator::StepHistory& steps, const Console& console) const {
    const FeedClient& client = feeds.training().client();
    emulator::TrainingLoopOptions loop = {.epochs = epochs_,
                                          .steps_per_epoch = client.steps_per_epoch(),
                                          .clock = SteadyClock(),
                                          .resume_from = beginning.loop};
    const int64_t left = StepsLeft(epochs_, beginning.loop, loop.steps_per_epoch);
    // The same step can have different numbers in the feed and in the trainer. If a run is resumed
    // with another global batch, the feed numbers its steps anew, and the trainer counts on.
    const int64_t feed_is_ahead = beginning.feed_step - trainer.steps();
    std::optional<int64_t> saved_steps;  // The steps in the last checkpoint.
    const InterruptCallback interrupt(console.interrupt, [&feeds] { feeds.Cancel(); });
    ProgressBar bar(console, {.label = "training",
                              .total = loop.epochs * loop.steps_per_epoch,
                              .done_before = loop.epochs * loop.steps_per_epoch - left,
                              .remark =
                                  [&client, &spec] {
                                    return VerdictRemark(client.stats().waits.recent,
                                                         client.layout(), spec);
                                  },
                              .notice = WaitingNotice(options.watch)});
    loop.on_step = [&](const emulator::TrainingProgress& progress) {
      steps.Add(emulator::EntryOf(progress));
      bar.Add(
          1, absl::StrFormat("epoch %d/%d, loss %.3f", progress.epoch + 1, epochs_, progress.loss));
    };
    const auto checkpoint = [&](const emulator::LoopState& state) {
      return emulator::TakeCheckpoint(trainer, state, EpochSizeOf(client),
                                      client.TokenAt(feed_is_ahead + trainer.steps()).Encode());
    };
    if (checkpoints_.saves_initial()) {
      SYSTOLE_RETURN_IF_ERROR(checkpoints_.SaveInitial(checkpoint({}), console.version));
    }
    if (checkpoints_.saves()) {
      loop.save_every = checkpoints_.every();
      loop.save = [&](const emulator::LoopState& state) {
        SYSTOLE_RETURN_IF_ERROR(checkpoints_.Save(checkpoint(state), console.version));
        saved_steps = trainer.steps();
        return absl::OkStatus();
      };
    }
    if (eval_spec.has_value()) {
      options.epochs = 1;
      loop.open_validation = [&, options]() -> absl::StatusOr<emulator::PopInfeed> {
        // Not OpenFeed(): the training's progress bar shows which server this feed waits for.
        SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<FeedClient> client,
                                 FeedClient::Create(*eval_spec, options));
        SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<CoreInfeeds> opened,
                                 CoreInfeeds::Create(std::move(client), outputs_));
        SYSTOLE_RETURN_IF_ERROR(feeds.SetValidation(std::move(opened)));
        return [&infeeds = feeds.validation()](int64_t core) { return infeeds.Pop(core); };
      };
    }
    absl::StatusOr<emulator::TrainingReport> report = emulator::RunTraining(
        trainer, [&](int64_t core) { return feeds.training().Pop(core); }, loop);
    if (interrupt.requested() && absl::IsCancelled(report.status())) {
      return checkpoints_.Interrupted(trainer.steps(), saved_steps, resumed);
    }
    return report;
  }

  FeedFlags flags_;
  std::string spec_;
  std::string eval_spec_;
  std::string model_;
  int64_t epochs_ = 5;
  uint64_t seed_ = 0;
  std::string numerics_ = "exact";
  int64_t threads_ = 0;
  TrainingOutputs outputs_;
  CheckpointFlags checkpoints_;
  ReportFlags report_;
};

}  // namespace

std::unique_ptr<Command> MakeTrainCommand() { return std::make_unique<TrainCommand>(); }

}  // namespace systole
