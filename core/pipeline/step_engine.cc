#include "core/pipeline/step_engine.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <list>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/flow/mutex.h"
#include "core/flow/worker_pool.h"
#include "core/memory/buffer_pool.h"
#include "core/pipeline/example_maker.h"
#include "core/pipeline/first_error.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Examples of one task: enough that handing it over costs nothing beside a decode of half a
// millisecond each, few enough that one slice of images keeps several threads busy.
constexpr int64_t kMinExamplesPerTask = 8;
// Bytes of records that a task of small ones is made up to: below, handing over and reading cost
// more than the work.
constexpr int64_t kTaskBytes = 256 << 10;

int64_t ExamplesPerTask(const Dataset& dataset) {
  return std::max(kMinExamplesPerTask, kTaskBytes / dataset.mean_record_bytes());
}

// No stream may hold more than this part of the budget, so that one client that stopped reading
// does not starve the others.
constexpr int64_t kMinBudgetParts = 4;

// Slices of two steps that a stream may have begun. More would not keep a client busier, and what
// stands around a tiny slice is larger than the bytes that the budget counts.
constexpr int64_t kMaxSlicesOfTwoSteps = 1024;

}  // namespace

// A slice being made. Its tasks share it; the last one to finish publishes it.
struct PendingSlice {
  std::shared_ptr<CoreSlice> slice;
  std::atomic<int64_t> tasks_left = 0;
  std::atomic<bool> dropped = false;  // The stream is gone: tasks not yet begun do nothing.

  Mutex mu;
  FirstError error ABSL_GUARDED_BY(mu);
  bool ready = false;  // Guarded by Engine::mu_.

  void AddError(int64_t slot, absl::Status status) ABSL_LOCKS_EXCLUDED(mu) {
    MutexLock lock(mu);
    error.Add(slot, std::move(status));
  }
  absl::Status GetStatus() ABSL_LOCKS_EXCLUDED(mu) {
    MutexLock lock(mu);
    return error.status();
  }
};

struct StepStream::State {
  std::shared_ptr<const FeedPlan> plan;
  StepRange range;
  StreamMemory memory;
  int64_t num_slices = 0;  // Of the whole stream.

  // Everything below is guarded by Engine::mu_.
  int64_t next_to_make = 0;
  std::deque<std::shared_ptr<PendingSlice>> pending;  // In order; begun and not yet delivered.
  int64_t held_bytes = 0;                             // Of slices begun and not yet dropped.
  double virtual_time = 0;
  absl::Status ended;  // OK while the stream lives.
  Done done;           // Of a Next() that waits.
};

class StepStream::Engine : public std::enable_shared_from_this<StepStream::Engine> {
 public:
  explicit Engine(const StepEngineOptions& options)
      : buffers_(options.memory_budget_bytes, options.max_sealed_slices),
        makers_(static_cast<size_t>(options.threads)) {
    pool_ = std::make_unique<WorkerPool>(options.threads);
  }

  absl::Status Add(const std::shared_ptr<State>& stream) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    const int64_t slice_bytes = stream->plan->layout().slice_bytes();
    if (slice_bytes > buffers_.budget_bytes()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "one core's slice of a step takes ", slice_bytes,
          " bytes, more than the server's whole memory budget of ", buffers_.budget_bytes(),
          "; make global_batch smaller, num_cores larger, or raise --memory-budget"));
    }
    stream->virtual_time = now_;
    streams_.push_back(stream);
    MakeMore();
    return absl::OkStatus();
  }

  void Next(const std::shared_ptr<State>& stream, Done done) ABSL_LOCKS_EXCLUDED(mu_) {
    std::optional<Result> result;
    {
      MutexLock lock(mu_);
      SYSTOLE_CHECK(stream->done == nullptr);
      result = TakeResult(*stream);
      if (!result.has_value()) {
        stream->done = std::move(done);
        return;
      }
      MakeMore();
    }
    done(*std::move(result));
  }

  void Cancel(const std::shared_ptr<State>& stream) ABSL_LOCKS_EXCLUDED(mu_) {
    Done done;
    std::deque<std::shared_ptr<PendingSlice>> dropped;  // Destroyed after the lock is gone.
    {
      MutexLock lock(mu_);
      streams_.remove(stream);
      if (stream->ended.ok()) stream->ended = absl::CancelledError("the stream was cancelled");
      dropped = Drop(*stream);
      std::swap(done, stream->done);
      MakeMore();
    }
    if (done != nullptr) done(absl::CancelledError("the stream was cancelled"));
  }

  // Cancels every stream and joins the threads. Called once, before the last reference goes.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_) {
    while (true) {
      std::shared_ptr<State> stream;
      {
        MutexLock lock(mu_);
        stopping_ = true;
        if (streams_.empty()) break;
        stream = streams_.front();
      }
      Cancel(stream);
    }
    pool_.reset();
  }

  StepEngine::Stats GetStats() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return {.examples_made = examples_made_.load(),
            .memory_budget_bytes = buffers_.budget_bytes(),
            .memory_used_bytes = buffers_.used_bytes(),
            .active_streams = static_cast<int64_t>(streams_.size())};
  }

 private:
  // What Next() would say now, or nullopt if it has to wait.
  std::optional<Result> TakeResult(State& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!stream.ended.ok()) return Result(stream.ended);
    if (stream.pending.empty()) {
      if (stream.next_to_make < stream.num_slices) return std::nullopt;
      return Result(std::optional<SlicePtr>());
    }
    PendingSlice& front = *stream.pending.front();
    if (!front.ready) return std::nullopt;
    if (absl::Status status = front.GetStatus(); !status.ok()) {
      // It stays in the list, like all behind it, until Cancel(): a slice must not be destroyed
      // under the lock that TakeBack() wants.
      stream.ended = std::move(status);
      for (const std::shared_ptr<PendingSlice>& slice : stream.pending) slice->dropped = true;
      return Result(stream.ended);
    }
    if (WindowIsFull(stream)) return std::nullopt;
    SlicePtr slice = std::move(front.slice);
    stream.pending.pop_front();
    return Result(std::optional<SlicePtr>(std::move(slice)));
  }

  // Whether the consumer has to drop a slice before it gets another one.
  static bool WindowIsFull(const State& stream) {
    const int64_t slice_bytes = stream.plan->layout().slice_bytes();
    const int64_t delivered_bytes =
        stream.held_bytes - static_cast<int64_t>(stream.pending.size()) * slice_bytes;
    return delivered_bytes >= 2 * slice_bytes &&
           delivered_bytes > stream.memory.window_bytes - slice_bytes;
  }

  // What a Next() that waits is told now; the caller calls the function with the result, if it is
  // set, without the lock.
  std::pair<Done, std::optional<Result>> TakeAnswer(State& stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::pair<Done, std::optional<Result>> answer;
    if (stream.done == nullptr) return answer;
    answer.second = TakeResult(stream);
    if (answer.second.has_value()) std::swap(answer.first, stream.done);
    return answer;
  }

  // Takes away all that was begun for `stream`; the caller destroys it without the lock.
  std::deque<std::shared_ptr<PendingSlice>> Drop(State& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const std::shared_ptr<PendingSlice>& slice : stream.pending) slice->dropped = true;
    return std::exchange(stream.pending, {});
  }

  bool MayMakeMore(const State& stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!stream.ended.ok() || stream.next_to_make >= stream.num_slices) return false;
    // Two steps ahead, or enough to keep every thread busy, is as much as ever helps.
    const int64_t cores = stream.range.core_end - stream.range.core_begin;
    const int64_t ahead =
        std::max<int64_t>(std::min(2 * cores, kMaxSlicesOfTwoSteps), 4 * pool_->num_threads());
    if (static_cast<int64_t>(stream.pending.size()) >= ahead) return false;
    return stream.held_bytes == 0 ||
           stream.held_bytes + stream.plan->layout().slice_bytes() <= Share();
  }

  // What one stream may hold of the budget, in bytes.
  int64_t Share() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return buffers_.budget_bytes() /
           std::max(kMinBudgetParts, static_cast<int64_t>(streams_.size()));
  }

  // A stream that holds nothing goes first, then the least advanced one.
  static bool GoesBefore(const State& a, const State& b) {
    if ((a.held_bytes == 0) != (b.held_bytes == 0)) return a.held_bytes == 0;
    return a.virtual_time < b.virtual_time;
  }

  // Begins slices, for whoever goes first, until nobody may or the budget is used up.
  void MakeMore() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    // The smallest slice for which there was no room. Behind it only streams that hold nothing may
    // still begin one: what is too large for now must not stop them.
    int64_t refused_bytes = std::numeric_limits<int64_t>::max();
    while (!stopping_) {
      std::shared_ptr<State> next;
      for (const std::shared_ptr<State>& stream : streams_) {
        if (!MayMakeMore(*stream)) continue;
        if (refused_bytes != std::numeric_limits<int64_t>::max() &&
            (stream->held_bytes != 0 || stream->plan->layout().slice_bytes() >= refused_bytes)) {
          continue;
        }
        if (next == nullptr || GoesBefore(*stream, *next)) next = stream;
      }
      if (next == nullptr) return;
      absl::StatusOr<std::optional<AlignedBuffer>> buffer =
          buffers_.TryAcquire(next->plan->layout().slice_bytes(), next->memory.kind);
      if (!buffer.ok()) {
        // The system has less memory than the budget promises: this stream ends, others go on. Its
        // consumer is told at its next Next(); one that waits now was promised an answer.
        auto failed = std::make_shared<PendingSlice>();
        failed->AddError(0, buffer.status());
        next->next_to_make = next->num_slices;
        next->pending.push_back(failed);
        pool_->Submit([self = shared_from_this(), next, failed] { self->Publish(next, failed); });
        continue;
      }
      if (!buffer->has_value()) {
        if (next->held_bytes == 0) TakeBackLookAhead();
        refused_bytes = next->plan->layout().slice_bytes();
        continue;
      }
      Begin(next, *std::move(*buffer));
    }
  }

  // The budget is used up and a stream has nothing at all. Its turn would never come if all others
  // wait too, as trainers of one job wait for the slowest. So the stream that is furthest over its
  // share, which shrank when others came, gives its last slice back. It is made again in its turn.
  void TakeBackLookAhead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (taking_back_) return;
    State* victim = nullptr;
    for (const std::shared_ptr<State>& stream : streams_) {
      // One whose consumer waits for a slice moves on by itself.
      const bool moves = stream->done != nullptr && !WindowIsFull(*stream);
      if (!stream->ended.ok() || moves || stream->pending.empty() ||
          stream->pending.back()->slice == nullptr || stream->held_bytes <= Share() ||
          stream->held_bytes <= stream->plan->layout().slice_bytes()) {
        continue;
      }
      if (victim == nullptr || stream->held_bytes > victim->held_bytes) victim = stream.get();
    }
    if (victim == nullptr) return;
    std::shared_ptr<PendingSlice> slice = std::move(victim->pending.back());
    victim->pending.pop_back();
    slice->dropped = true;
    --victim->next_to_make;
    victim->virtual_time -= static_cast<double>(victim->plan->layout().per_core_batch());
    taking_back_ = true;
    // A thread of the pool destroys it, without the lock that TakeBack() wants.
    pool_->Submit([self = shared_from_this(), slice = std::move(slice)]() mutable {
      slice.reset();
      MutexLock lock(self->mu_);
      self->taking_back_ = false;
      self->MakeMore();
    });
  }

  void Begin(const std::shared_ptr<State>& stream, AlignedBuffer buffer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const StepRange& range = stream->range;
    const int64_t cores = range.core_end - range.core_begin;
    const int64_t step = range.first_step + stream->next_to_make / cores * range.stride;
    const int core = range.core_begin + static_cast<int>(stream->next_to_make % cores);
    ++stream->next_to_make;
    stream->held_bytes += buffer.size();

    auto pending = std::make_shared<PendingSlice>();
    pending->slice =
        std::make_shared<CoreSlice>(stream->plan, step, core, std::move(buffer),
                                    [self = shared_from_this(), stream](AlignedBuffer memory) {
                                      self->TakeBack(stream, std::move(memory));
                                    });
    stream->pending.push_back(pending);

    // Start-time fair queueing: the slice's start tag is its priority.
    stream->virtual_time = std::max(stream->virtual_time, now_);
    const double start = stream->virtual_time;
    const int64_t examples = stream->plan->layout().per_core_batch();
    stream->virtual_time += static_cast<double>(examples);

    const int64_t per_task = ExamplesPerTask(stream->plan->dataset());
    const int64_t tasks = (examples + per_task - 1) / per_task;
    pending->tasks_left = tasks;
    for (int64_t task = 0; task < tasks; ++task) {
      const int64_t begin = task * per_task;
      const int64_t end = std::min(examples, begin + per_task);
      pool_->Submit(static_cast<TaskPriority>(start),
                    [self = shared_from_this(), stream, pending, begin, end, start](int thread) {
                      self->Make(stream, pending, begin, end, start, thread);
                    });
    }
  }

  // One task: examples [begin, end) of the slice.
  void Make(const std::shared_ptr<State>& stream, const std::shared_ptr<PendingSlice>& pending,
            int64_t begin, int64_t end, double start, int thread) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!pending->dropped) {
      {
        MutexLock lock(mu_);
        now_ = std::max(now_, start);
      }
      ExampleMaker& maker = makers_[static_cast<size_t>(thread)];
      CoreSlice& slice = *pending->slice;
      const absl::Status status =
          maker.Make(stream->plan, slice.step(), slice.core(), begin, end, slice.mutable_data());
      if (!status.ok()) pending->AddError(begin, status);
      examples_made_ += end - begin;
    }
    if (--pending->tasks_left == 0) Publish(stream, pending);
  }

  // The slice is finished: marks it, and answers a Next() that waits for it.
  void Publish(const std::shared_ptr<State>& stream, const std::shared_ptr<PendingSlice>& pending)
      ABSL_LOCKS_EXCLUDED(mu_) {
    std::pair<Done, std::optional<Result>> answer;
    {
      MutexLock lock(mu_);
      pending->ready = true;
      answer = TakeAnswer(*stream);
      MakeMore();
    }
    if (answer.first != nullptr) answer.first(*std::move(answer.second));
  }

  void TakeBack(const std::shared_ptr<State>& stream, AlignedBuffer memory)
      ABSL_LOCKS_EXCLUDED(mu_) {
    std::pair<Done, std::optional<Result>> answer;
    {
      MutexLock lock(mu_);
      stream->held_bytes -= memory.size();
      buffers_.Release(std::move(memory));
      answer = TakeAnswer(*stream);
      MakeMore();
    }
    if (answer.first != nullptr) answer.first(*std::move(answer.second));
  }

  mutable Mutex mu_;
  BufferPool buffers_ ABSL_GUARDED_BY(mu_);
  std::list<std::shared_ptr<State>> streams_ ABSL_GUARDED_BY(mu_);
  double now_ ABSL_GUARDED_BY(mu_) = 0;  // Start tag of the latest slice begun by a thread.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool taking_back_ ABSL_GUARDED_BY(mu_) = false;  // A slice is on its way back.
  std::atomic<int64_t> examples_made_ = 0;
  std::vector<ExampleMaker> makers_;  // One for each thread, used by it alone.
  std::unique_ptr<WorkerPool> pool_;  // Constant until Stop().
};

StepStream::StepStream(std::shared_ptr<Engine> engine, std::shared_ptr<State> state)
    : engine_(std::move(engine)), state_(std::move(state)) {}

StepStream::~StepStream() { Cancel(); }

void StepStream::Next(Done done) { engine_->Next(state_, std::move(done)); }

StepStream::Result StepStream::Next() {
  struct Waiter {
    Mutex mu;
    CondVar arrived;
    std::optional<Result> result ABSL_GUARDED_BY(mu);
  };
  // Shared: the thread that answers may still be signalling when the wait is over.
  const auto waiter = std::make_shared<Waiter>();
  Next([waiter](Result result) {
    MutexLock lock(waiter->mu);
    waiter->result = std::move(result);
    waiter->arrived.Signal();
  });
  MutexLock lock(waiter->mu);
  while (!waiter->result.has_value()) waiter->arrived.Wait(waiter->mu);
  return *std::move(waiter->result);
}

void StepStream::Cancel() { engine_->Cancel(state_); }

StepEngine::StepEngine(const StepEngineOptions& options)
    : engine_(std::make_shared<StepStream::Engine>(options)) {}

StepEngine::~StepEngine() { engine_->Stop(); }

absl::StatusOr<std::unique_ptr<StepStream>> StepEngine::Open(std::shared_ptr<const FeedPlan> plan,
                                                             const StepRange& range,
                                                             const StreamMemory& memory) {
  const int num_cores = plan->num_cores();
  if (range.first_step < 0 || range.count < 1 || range.stride < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("first_step ", range.first_step, ", count ", range.count, ", stride ",
                     range.stride, ": want first_step >= 0, count and stride >= 1"));
  }
  if (range.core_begin < 0 || range.core_begin >= range.core_end || range.core_end > num_cores) {
    return absl::InvalidArgumentError(
        absl::StrCat("cores [", range.core_begin, ", ", range.core_end,
                     "): want a range that is not empty inside [0, ", num_cores, ")"));
  }
  const std::optional<int64_t> total = plan->order().total_steps();
  if (total.has_value() && range.first_step > *total) {
    return absl::InvalidArgumentError(absl::StrCat("first_step ", range.first_step,
                                                   " lies beyond the feed's end at step ", *total));
  }
  // Steps from first_step to the last one there is (or that fits a number), in strides.
  const int64_t end = total.value_or(std::numeric_limits<int64_t>::max());
  const int64_t steps_left = end - range.first_step;
  const int64_t strides = steps_left / range.stride + (steps_left % range.stride != 0 ? 1 : 0);
  const int64_t cores = range.core_end - range.core_begin;
  auto state = std::make_shared<StepStream::State>();
  state->plan = std::move(plan);
  state->range = range;
  state->memory = memory;
  state->num_slices =
      std::min({range.count, strides, std::numeric_limits<int64_t>::max() / cores}) * cores;
  SYSTOLE_RETURN_IF_ERROR(engine_->Add(state));
  return absl::WrapUnique(new StepStream(engine_, std::move(state)));
}

StepEngine::Stats StepEngine::GetStats() const { return engine_->GetStats(); }

}  // namespace systole
