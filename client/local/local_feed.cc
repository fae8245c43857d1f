#include "client/local/local_feed.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/local/local_engine.h"
#include "client/local/slice_source.h"
#include "client/step/missing_examples.h"
#include "client/step/step_shelf.h"
#include "client/verdict/step_spans.h"
#include "client/verdict/wait_shares.h"
#include "core/batch/stage_times.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/engine/slice_budget.h"
#include "core/engine/step_engine.h"
#include "core/order/feed_position.h"
#include "core/plan/content_version.h"
#include "core/plan/feed_plan.h"
#include "core/plan/note_columns.h"
#include "core/spec/transform_runs.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The most steps that a feed requests from the engine in one stream. No run needs more.
constexpr int64_t kMostSteps = int64_t{1} << 40;
// Buffers kept for steps that are put together from slices.
constexpr int64_t kStepsKept = 2;
// How long a feed waits at its end for threads that use its cache. A thread that reads a dead mount
// may never return.
constexpr absl::Duration kCachePatience = absl::Seconds(10);

absl::Status CheckOptions(const LocalFeedOptions& options) {
  if (options.prefetch_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("prefetch_bytes is ", options.prefetch_bytes, ", want 0 or more"));
  }
  return CheckWantedSteps(options.wanted);
}

ResumeToken TokenOf(const FeedPlan& plan, const FeedPosition& position) {
  ResumeToken token = {.dataset_fingerprint = plan.dataset().fingerprint(),
                       .order_fingerprint = plan.order_fingerprint(),
                       .content_version = ContentVersion(),
                       .position = position};
  CoverThePastAlone(plan.order(), token);
  return token;
}

// The plan of `spec`. If shards lack a column that the `where` of `spec` needs, makes the column
// first.
absl::StatusOr<std::shared_ptr<const FeedPlan>> PlanOf(
    const v1::FeedSpec& spec, const std::shared_ptr<const Dataset>& dataset,
    const std::shared_ptr<RecordLists>& lists) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(spec, dataset, lists);
  if (!absl::IsFailedPrecondition(plan.status())) return plan;
  SYSTOLE_RETURN_IF_ERROR(NoteColumnsFor(spec, *dataset));
  return FeedPlan::Create(spec, dataset, lists);
}

// A plan of the same feed with fewer, larger cores. One of its cores has the examples of all cores
// that the feed wants, so this core's slice is the whole step. Null if there is no such plan.
std::shared_ptr<const FeedPlan> PlanOfOneSlice(const FeedPlan& plan, const StepShape& shape,
                                               const std::shared_ptr<const Dataset>& dataset) {
  const int cores = shape.num_cores();
  if (plan.num_cores() % cores != 0 || shape.core_begin % cores != 0) return nullptr;
  // If cores get different numbers of examples, a core may end with an empty place. The slices of
  // larger cores have no such place in their middle.
  if (plan.spec().global_batch() % plan.num_cores() != 0) return nullptr;
  for (const SliceTensor& tensor : shape.layout.tensors()) {
    if (tensor.batch_axis != 0 || tensor.is_tiled()) return nullptr;
  }
  v1::FeedSpec merged = plan.spec();
  merged.set_num_cores(plan.num_cores() / cores);
  absl::StatusOr<std::shared_ptr<const FeedPlan>> one =
      FeedPlan::Create(merged, dataset, plan.lists());
  // If the step is too large for one slice, each core keeps a slice of its own.
  return one.ok() ? *std::move(one) : nullptr;
}

// A cache that is lent to the engine's threads. The destructor waits until no thread uses the cache
// any more, because the next feed may open the same cache folder.
class LentCache {
 public:
  // `cache` may be null.
  explicit LentCache(std::shared_ptr<ValueCache> cache) {
    if (cache == nullptr) return;
    ValueCache* const address = cache.get();
    lent_ = {address, [owner = std::move(cache), back = back_](ValueCache*) mutable {
               owner.reset();
               MutexLock lock(back->mu);
               back->is_back = true;
               back->comes.Signal();
             }};
  }
  // Waits at most kCachePatience. REQUIRES: the stream that uses the cache was ended.
  ~LentCache() {
    if (lent_ == nullptr) return;
    lent_.reset();
    const MonotonicClock clock = SteadyClock();
    const absl::Duration end = clock() + kCachePatience;
    MutexLock lock(back_->mu);
    while (!back_->is_back && clock() < end) back_->comes.WaitFor(back_->mu, end - clock());
  }
  LentCache(const LentCache&) = delete;
  LentCache& operator=(const LentCache&) = delete;

  const std::shared_ptr<ValueCache>& get() const { return lent_; }

 private:
  struct Back {
    Mutex mu;
    CondVar comes;
    bool is_back ABSL_GUARDED_BY(mu) = false;
  };

  // Shared, because the thread that gives the cache back may still be signalling when this object
  // is gone.
  const std::shared_ptr<Back> back_ = std::make_shared<Back>();
  std::shared_ptr<ValueCache> lent_;
};

}  // namespace

class LocalFeed::Impl {
 public:
  Impl(std::shared_ptr<const FeedPlan> plan, StepShape shape,
       const std::shared_ptr<const Dataset>& dataset, int64_t end_step,
       std::shared_ptr<LocalEngine> engine, const LocalFeedOptions& options)
      : plan_(std::move(plan)),
        shape_(std::make_shared<const StepShape>(std::move(shape))),
        end_step_(end_step),
        ahead_bytes_(std::max(options.prefetch_bytes,
                              2 * (shape_->bytes() + kSliceOverheadBytes * shape_->num_cores()))),
        first_step_(options.wanted.first_step),
        next_step_(first_step_),
        made_(PlanOfOneSlice(*plan_, *shape_, dataset)),
        engine_(std::move(engine)),
        log_(options.log),
        cache_(options.cache) {
    if (made_ == nullptr) shelf_ = StepShelf::Create(shape_->bytes(), kStepsKept, {});
  }

  absl::Status Admit() {
    const FeedPlan& plan = made_ == nullptr ? *plan_ : *made_;
    return engine_->Admit(plan.layout().slice_bytes() + kSliceOverheadBytes, ahead_bytes_);
  }

  absl::StatusOr<bool> WaitForNext(absl::Duration timeout) {
    if (next_step_ >= end_step_) return true;
    SYSTOLE_RETURN_IF_ERROR(Start());
    const absl::Duration begin = BeginWait();
    const bool ready = slices_->WaitFor(timeout);
    waited_ += EndWait() - begin;
    return ready;
  }

  absl::StatusOr<std::optional<Step>> Next() {
    if (cancelled()) return absl::CancelledError("the feed was cancelled by its trainer");
    if (next_step_ >= end_step_) return std::optional<Step>();
    SYSTOLE_RETURN_IF_ERROR(Start());
    const absl::Duration begin = BeginWait();
    const absl::StatusOr<std::vector<SliceSource::Delivered>> taken = slices_->Take();
    absl::StatusOr<StepBuffer> buffer =
        taken.ok() ? BufferOf(*taken) : absl::StatusOr<StepBuffer>(taken.status());
    const absl::Duration now = EndWait();
    SYSTOLE_RETURN_IF_ERROR(buffer.status());
    const std::vector<SliceSource::Delivered>& slices = *taken;
    std::optional<Step> step(std::in_place, next_step_++, shape_, *std::move(buffer));
    const StepSpans spans = SpansOf(slices);
    const StepWait wait = {.at = now,
                           .waited = std::exchange(waited_, absl::ZeroDuration()) + now - begin,
                           .ready_at = spans.complete_at()};
    const MissingExamples missing = FindMissing(*step, plan_->order());
    if (log_ != nullptr && missing.masked() > 0) {
      log_->Add(LogCause::kDamage, LogLevel::kWarn, MaskedText(step->number(), missing),
                {.dataset = plan_->dataset().name(), .step = step->number()});
    }
    MutexLock lock(mu_);
    if (stats_.steps_received++ > 0) stats_.AddWait(step->number(), wait.waited);
    stats_.examples_taken += missing.present;
    stats_.delivered_bytes += shape_->layout.payload_bytes() * shape_->num_cores();
    if (!missing.empty()) AddMissing(missing, stats_);
    shares_.Take(wait, spans.spans());
    return step;
  }

  void Cancel() {
    MutexLock lock(mu_);
    cancelled_ = true;
    if (started_ != nullptr) started_->Cancel();
  }

  FeedClientStats stats() const {
    MutexLock lock(mu_);
    FeedClientStats stats = stats_;
    stats.waits = shares_.waits();
    stats.next_step = first_step_ + stats.steps_received;
    if (started_ != nullptr) stats.ready_steps = started_->CountReady();
    stats.buffered_bytes = stats.ready_steps * shape_->bytes();
    const int64_t since = waits_since_ns_.load(std::memory_order_relaxed);
    if (since != kDoesNotWait) stats.waiting = clock_() - absl::Nanoseconds(since);
    return stats;
  }

  const FeedPlan& plan() const { return *plan_; }
  const StepShape& shape() const { return *shape_; }
  int64_t next_step() const { return next_step_; }
  int64_t end_step() const { return end_step_; }

 private:
  static constexpr int64_t kDoesNotWait = std::numeric_limits<int64_t>::min();

  // BeginWait() and EndWait() return the time now. Between BeginWait() and EndWait(), stats() shows
  // how long the trainer has waited.
  absl::Duration BeginWait() {
    const absl::Duration now = clock_();
    waits_since_ns_.store(absl::ToInt64Nanoseconds(now - waited_), std::memory_order_relaxed);
    return now;
  }
  absl::Duration EndWait() {
    waits_since_ns_.store(kDoesNotWait, std::memory_order_relaxed);
    return clock_();
  }

  // Begins to make steps, if the feed has not begun already. Before, the feed takes no processor
  // time from the trainer.
  absl::Status Start() {
    if (slices_ != nullptr) return absl::OkStatus();
    const int parts = made_ == nullptr ? 1 : shape_->num_cores();
    const StepRange range = {.first_step = next_step_,
                             .count = std::min(end_step_ - next_step_, kMostSteps),
                             .core_begin = shape_->core_begin / parts,
                             .core_end = shape_->core_end / parts};
    SYSTOLE_ASSIGN_OR_RETURN(
        std::unique_ptr<StepStream> stream,
        engine_->Open(made_ == nullptr ? plan_ : made_, range, ahead_bytes_, cache_.get()));
    slices_ = std::make_unique<SliceSource>(std::move(stream), range.num_cores());
    MutexLock lock(mu_);
    if (cancelled_) slices_->Cancel();
    started_ = slices_.get();
    return absl::OkStatus();
  }

  bool cancelled() const {
    MutexLock lock(mu_);
    return cancelled_;
  }

  // What the engine did for a step. The time after a slice was made does not count, because the
  // slice then waited only for the trainer's own thread.
  static StepSpans SpansOf(const std::vector<SliceSource::Delivered>& slices) {
    StepSpans spans;
    for (const auto& [slice, at] : slices) {
      StageTimes stages = slice->stages();
      const absl::Duration done = at - std::exchange(stages.wait, absl::ZeroDuration());
      spans.BeginSlice(stages, done, done);
    }
    spans.Complete();
    return spans;
  }

  // The memory of the step that `slices` make up.
  absl::StatusOr<StepBuffer> BufferOf(const std::vector<SliceSource::Delivered>& slices) {
    if (shelf_ == nullptr) {
      // The engine does not use the slice any more, so the trainer may write to the slice.
      const SlicePtr& slice = slices[0].slice;
      return StepBuffer(slice, const_cast<uint8_t*>(slice->data()));
    }
    SYSTOLE_ASSIGN_OR_RETURN(StepBuffer buffer, shelf_->Acquire());
    for (const auto& [slice, at] : slices) {
      PutSlice(*shape_, slice->core(), slice->data(), buffer.get());
    }
    return buffer;
  }

  const MonotonicClock clock_ = SteadyClock();
  const std::shared_ptr<const FeedPlan> plan_;
  const std::shared_ptr<const StepShape> shape_;
  const int64_t end_step_;
  const int64_t ahead_bytes_;  // Memory for steps that the trainer does not have yet.
  const int64_t first_step_;
  int64_t next_step_;
  const std::shared_ptr<const FeedPlan> made_;  // The plan of PlanOfOneSlice(), or null.
  // The memory of steps put together from slices. Null if made_ is set.
  std::shared_ptr<StepShelf> shelf_;
  const std::shared_ptr<LocalEngine> engine_;
  const std::shared_ptr<EventLog> log_;  // May be null.
  const LentCache cache_;                // Destroyed after slices_, which ends the stream.
  absl::Duration waited_;                // How long WaitForNext() has waited for the next step.
  std::atomic<int64_t> waits_since_ns_ = kDoesNotWait;
  std::unique_ptr<SliceSource> slices_;  // Null before Start().
  mutable Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  SliceSource* started_ ABSL_GUARDED_BY(mu_) = nullptr;  // slices_, for Cancel().
  FeedClientStats stats_ ABSL_GUARDED_BY(mu_);
  WaitShares shares_ ABSL_GUARDED_BY(mu_) = WaitShares(WaitCause::kClient);
};

absl::StatusOr<std::unique_ptr<LocalFeed>> LocalFeed::Make(const v1::FeedSpec& spec,
                                                           std::shared_ptr<const Dataset> dataset,
                                                           const ResumeToken* token,
                                                           LocalFeedOptions options) {
  if (token != nullptr) options.wanted.first_step = 0;  // The token gives the real one later.
  SYSTOLE_RETURN_IF_ERROR(CheckOptions(options));
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<const FeedPlan> plan,
                           PlanOf(spec, dataset, options.lists));
  SYSTOLE_RETURN_IF_ERROR(
      CheckWantedCores(options.core_begin, options.core_end, plan->num_cores()));
  if (token != nullptr) {
    SYSTOLE_ASSIGN_OR_RETURN(
        options.wanted.first_step,
        StepOfToken(*token, TokenOf(*plan, token->position), plan->order(),
                    options.allow_mixed_content, options.log.get(), {.dataset = dataset->name()}));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t end_step,
                           EndOfWantedSteps(options.wanted, plan->order().total_steps().value_or(0),
                                            plan->order().steps_per_epoch()));
  StepShape shape = {.layout = plan->layout(),
                     .core_begin = options.core_begin,
                     .core_end = options.core_end == 0 ? plan->num_cores() : options.core_end,
                     .placement = StepPlacement::kTensorMajor};
  std::shared_ptr<LocalEngine> engine = options.engine;
  if (engine == nullptr) {
    SYSTOLE_ASSIGN_OR_RETURN(engine, LocalEngine::Create({.threads = options.threads}));
  }
  auto impl = std::make_unique<Impl>(std::move(plan), std::move(shape), dataset, end_step,
                                     std::move(engine), options);
  SYSTOLE_RETURN_IF_ERROR(impl->Admit());
  return std::unique_ptr<LocalFeed>(new LocalFeed(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<LocalFeed>> LocalFeed::Create(const v1::FeedSpec& spec,
                                                             std::shared_ptr<const Dataset> dataset,
                                                             const LocalFeedOptions& options) {
  return Make(spec, std::move(dataset), nullptr, options);
}

absl::StatusOr<std::unique_ptr<LocalFeed>> LocalFeed::Resume(const v1::FeedSpec& spec,
                                                             std::shared_ptr<const Dataset> dataset,
                                                             const ResumeToken& token,
                                                             const LocalFeedOptions& options) {
  return Make(spec, std::move(dataset), &token, options);
}

LocalFeed::LocalFeed(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LocalFeed::~LocalFeed() = default;

absl::StatusOr<std::optional<Step>> LocalFeed::Next() { return impl_->Next(); }
bool LocalFeed::WaitForNext(absl::Duration timeout) {
  // True after an error, because Next() then returns the error at once.
  return impl_->WaitForNext(timeout).value_or(true);
}
void LocalFeed::Cancel() { impl_->Cancel(); }
ResumeToken LocalFeed::TokenAt(int64_t next_step) const {
  return TokenOf(impl_->plan(), PositionBefore(order(), next_step));
}
int64_t LocalFeed::next_step() const { return impl_->next_step(); }
int64_t LocalFeed::end_step() const { return impl_->end_step(); }
bool LocalFeed::has_end() const { return impl_->end_step() < kNoEnd; }
int64_t LocalFeed::steps_per_epoch() const { return impl_->plan().order().steps_per_epoch(); }
int64_t LocalFeed::num_records() const { return impl_->plan().dataset().num_records(); }
const Order& LocalFeed::order() const { return impl_->plan().order(); }
const StepShape& LocalFeed::shape() const { return impl_->shape(); }
std::string LocalFeed::Explain() const {
  return ExplainRuns(impl_->plan().spec(), impl_->plan().runs());
}
FeedClientStats LocalFeed::stats() const { return impl_->stats(); }

}  // namespace systole
