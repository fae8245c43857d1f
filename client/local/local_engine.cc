#include "client/local/local_engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/cache/disk_store.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int64_t kDefaultBudgetBytes = int64_t{1} << 30;
// A stream may hold 1 / kBudgetParts of an engine's budget.
constexpr int64_t kBudgetParts = 4;

}  // namespace

absl::StatusOr<std::shared_ptr<LocalEngine>> LocalEngine::Create(
    const LocalEngineOptions& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", options.threads, ", want 1 to ", kMaxThreads));
  }
  if (options.memory_budget_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory_budget is ", options.memory_budget_bytes,
                     ", want a number of bytes, or 0 for the default"));
  }
  if (options.read_budget_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("read_budget is ", options.read_budget_bytes,
                     ", want a number of bytes, or 0 for the default"));
  }
  if (options.block_cache_bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("block_cache_bytes is ", options.block_cache_bytes,
                     ", want 1 or more; to keep nothing, ", "leave block_cache out"));
  }
  return absl::WrapUnique(new LocalEngine(options));
}

int64_t LocalEngine::memory_budget_bytes() const {
  MutexLock lock(mu_);
  return memory_budget_bytes_;
}

absl::Status LocalEngine::Admit(int64_t slice_bytes, int64_t ahead_bytes) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / kBudgetParts;
  MutexLock lock(mu_);
  if (memory_budget_bytes_ == 0) {
    memory_budget_bytes_ =
        std::max(kDefaultBudgetBytes, std::min(ahead_bytes, kMost) * kBudgetParts);
  }
  if (slice_bytes > memory_budget_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a step of this feed takes ", slice_bytes,
        " bytes, but the feeds of this process share an engine whose memory_budget is ",
        memory_budget_bytes_,
        "; make global_batch smaller, or close the other feeds and raise memory_budget before the "
        "first feed is opened"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StepStream>> LocalEngine::Open(std::shared_ptr<const FeedPlan> plan,
                                                              const StepRange& range,
                                                              int64_t ahead_bytes,
                                                              std::shared_ptr<ValueCache> cache) {
  MutexLock lock(mu_);
  if (steps_ == nullptr) {
    std::shared_ptr<DiskStore> blocks;
    if (!options_.block_cache.empty()) {
      SYSTOLE_ASSIGN_OR_RETURN(blocks,
                               DiskStore::Open(options_.block_cache, options_.block_cache_bytes));
    }
    steps_ = std::make_unique<StepEngine>(
        StepEngineOptions{.threads = options_.threads,
                          .memory_budget_bytes = memory_budget_bytes_,
                          .read_budget_bytes = options_.read_budget_bytes,
                          .block_cache = std::move(blocks)});
  }
  // Each feed gets a name of its own. The engine then treats each feed as a separate peer.
  return steps_->Open(std::move(plan), range, {.ahead_bytes = ahead_bytes, .gives_away = true},
                      absl::StrCat("feed ", ++feeds_opened_), std::move(cache));
}

}  // namespace systole
