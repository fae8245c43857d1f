// Counts the scratch memory of an engine's thread in a budget that all threads of the engine share.
// core/memory/scratch_budget.h has the bound and its proof. This file adds the lock and the waits.
//
//   SharedScratch shared(capacity);          // One for an engine.
//   ScratchAccount account(shared);          // One for a thread; ExampleMaker uses it.
//
// When a feed has run for a while, a turn needs only the memory that the turn before it kept. Then
// no lock is taken.
#ifndef SYSTOLE_CORE_ENGINE_SCRATCH_ACCOUNT_H_
#define SYSTOLE_CORE_ENGINE_SCRATCH_ACCOUNT_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/memory/scratch_budget.h"
#include "core/memory/scratch_scope.h"

namespace systole {

// Thread-safe.
class SharedScratch {
 public:
  explicit SharedScratch(int64_t capacity_bytes) : budget_(capacity_bytes) {}

  int64_t used_bytes() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class ScratchAccount;

  mutable Mutex mu_;
  CondVar changed_;  // Signalled when a waiting thread may be able to go on.
  ScratchBudget budget_ ABSL_GUARDED_BY(mu_);
};

// Single-thread, except waits() and StepDown().
class ScratchAccount final : public ScratchSource {
 public:
  // The bytes for each ScratchUse.
  using Uses = std::array<int64_t, kScratchUses>;

  explicit ScratchAccount(SharedScratch& shared) : shared_(shared) {}
  // Gives everything back.
  ~ScratchAccount() override;

  bool Need(ScratchUse use, int64_t bytes) override;

  // An example is done. If it needed more than 2 MiB for kCoefficients and kValues together, these
  // bytes are given back. Otherwise they stay counted until the turn is over, so a turn of small
  // images takes them only once.
  void EndExample();

  // The turn is over. Keeps the bytes in `kept` for the next turn, or fewer for a use that needed
  // fewer in this turn. False: `kept` is too much, or other threads need the memory. Then the
  // account holds nothing, and the caller must free all its scratch memory.
  [[nodiscard]] bool EndTurn(const Uses& kept);

  // Whether the thread waits in Need(). Any thread may call waits().
  bool waits() const { return waits_.load(std::memory_order_relaxed); }
  // How long the thread has waited in Need() since the last call.
  absl::Duration TakeWaited() { return std::exchange(waited_, absl::ZeroDuration()); }
  // Says that the thread's read hangs. If the thread is the elder (scratch_budget.h), another
  // thread may become the elder at once. Any thread may call StepDown().
  void StepDown();

  int64_t held_bytes() const;

 private:
  int64_t& of(ScratchUse use) { return needs_[static_cast<size_t>(use)]; }

  SharedScratch& shared_;
  const MonotonicClock clock_ = SteadyClock();
  std::atomic<bool> waits_ = false;
  absl::Duration waited_;
  Uses needs_ = {};
  bool settled_ = true;  // Whether nothing was taken or given back since the last turn's end.
  ScratchBudget::Account account_ ABSL_GUARDED_BY(shared_.mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_SCRATCH_ACCOUNT_H_
