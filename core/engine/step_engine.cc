#include "core/engine/step_engine.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "core/concurrency/mutex.h"
#include "core/engine/engine_threads.h"
#include "core/engine/scheduled_stream.h"
#include "core/status/status_macros.h"

namespace systole {

StepStream::StepStream(std::shared_ptr<EngineThreads> engine,
                       std::shared_ptr<ScheduledStream> stream)
    : engine_(std::move(engine)), stream_(std::move(stream)) {}

StepStream::~StepStream() { Cancel(); }

void StepStream::Next(Done done) { engine_->Next(stream_, std::move(done)); }

StepStream::Result StepStream::Next() {
  struct Waiter {
    Mutex mu;
    CondVar arrived;
    std::optional<Result> result ABSL_GUARDED_BY(mu);
  };
  // Shared, because the thread that answers may still be signalling when the wait is over.
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

void StepStream::Cancel() { engine_->Cancel(stream_); }

int64_t StepStream::CountReady() const { return engine_->CountReady(*stream_); }

StepEngine::StepEngine(const StepEngineOptions& options)
    : engine_(std::make_shared<EngineThreads>(options)) {}

StepEngine::~StepEngine() { engine_->Stop(); }

absl::StatusOr<std::unique_ptr<StepStream>> StepEngine::Open(std::shared_ptr<const FeedPlan> plan,
                                                             const StepRange& range,
                                                             const StreamMemory& memory,
                                                             std::string peer,
                                                             std::shared_ptr<ValueCache> cache) {
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t num_slices, CountSlices(*plan, range));
  auto stream = std::make_shared<ScheduledStream>(std::move(plan), range, memory, num_slices,
                                                  std::move(peer), std::move(cache));
  SYSTOLE_RETURN_IF_ERROR(engine_->Add(stream));
  return absl::WrapUnique(new StepStream(engine_, std::move(stream)));
}

bool StepEngine::CancelAll(absl::Duration patience) { return engine_->CancelAll(patience); }

StepEngine::Stats StepEngine::GetStats() const { return engine_->GetStats(); }

double StepEngine::busy() const { return engine_->busy(); }

}  // namespace systole
