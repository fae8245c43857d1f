#include "core/engine/scratch_account.h"

#include <algorithm>
#include <numeric>

#include "absl/time/time.h"
#include "core/interrupt/interrupt.h"

namespace systole {
namespace {

// How often a waiting thread checks whether its work is still wanted. Nothing wakes the thread when
// the work is no longer wanted.
constexpr absl::Duration kLook = absl::Milliseconds(50);

// If an example needed more bytes than this for kCoefficients and kValues together, these bytes are
// given back when the example ends.
constexpr int64_t kExampleBytes = int64_t{2} << 20;

}  // namespace

int64_t SharedScratch::used_bytes() const {
  MutexLock lock(mu_);
  return budget_.used_bytes();
}

ScratchAccount::~ScratchAccount() {
  MutexLock lock(shared_.mu_);
  shared_.budget_.EndTurn(account_, 0);
  if (shared_.budget_.someone_waits()) shared_.changed_.SignalAll();
}

bool ScratchAccount::Need(ScratchUse use, int64_t bytes) {
  int64_t& needed = of(use);
  if (bytes <= needed) return true;
  settled_ = false;
  MutexLock lock(shared_.mu_);
  bool waits = false;
  while (!shared_.budget_.Take(account_, bytes - needed)) {
    if (InterruptRequested()) {
      shared_.budget_.Leave(account_);
      if (shared_.budget_.someone_waits()) shared_.changed_.SignalAll();
      waits_.store(false, std::memory_order_relaxed);
      return false;
    }
    if (!waits) waits_.store(waits = true, std::memory_order_relaxed);
    const absl::Duration begin = clock_();
    shared_.changed_.WaitFor(shared_.mu_, kLook);
    waited_ += clock_() - begin;
  }
  if (waits) waits_.store(false, std::memory_order_relaxed);
  // This thread no longer waits, so another thread may be the elder now (ScratchBudget).
  if (shared_.budget_.someone_waits()) shared_.changed_.SignalAll();
  needed = bytes;
  return true;
}

void ScratchAccount::EndExample() {
  const int64_t bytes = of(ScratchUse::kCoefficients) + of(ScratchUse::kValues);
  if (bytes <= kExampleBytes) return;
  of(ScratchUse::kCoefficients) = of(ScratchUse::kValues) = 0;
  settled_ = false;
  MutexLock lock(shared_.mu_);
  shared_.budget_.GiveBack(account_, bytes);
  if (shared_.budget_.someone_waits()) shared_.changed_.SignalAll();
}

bool ScratchAccount::EndTurn(const Uses& kept) {
  Uses keeps;
  for (size_t i = 0; i < kScratchUses; ++i) keeps[i] = std::min(kept[i], needs_[i]);
  if (settled_ && keeps == needs_) return true;
  MutexLock lock(shared_.mu_);
  const bool kept_all =
      shared_.budget_.EndTurn(account_, std::accumulate(keeps.begin(), keeps.end(), int64_t{0}));
  if (shared_.budget_.someone_waits()) shared_.changed_.SignalAll();
  needs_ = kept_all ? keeps : Uses{};
  settled_ = true;
  return kept_all;
}

void ScratchAccount::StepDown() {
  MutexLock lock(shared_.mu_);
  shared_.budget_.StepDown(account_);
  if (shared_.budget_.someone_waits()) shared_.changed_.SignalAll();
}

int64_t ScratchAccount::held_bytes() const {
  MutexLock lock(shared_.mu_);
  return account_.held_bytes();
}

}  // namespace systole
