#include "core/engine/dataset_shares.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"

namespace systole {
namespace {

// If N threads should run, an engine has kMaxThreadsFactor * N threads. At most kThreadsFactor * N
// of them may work for one dataset.
constexpr int kMaxThreadsFactor = 7;
constexpr int kThreadsFactor = 4;

// Together, the slices whose reads hang hold at most 1 / kHungBudgetParts of the memory budget. Of
// this part, the slices of one dataset hold at most 1 / kMinHungParts.
constexpr int64_t kMinHungParts = 2;
constexpr int64_t kHungBudgetParts = 2;

// The datasets that a plan reads from. A dataset that the spec names several times is listed once.
std::vector<const Dataset*> DatasetsOf(const FeedPlan& plan) {
  std::vector<const Dataset*> datasets;
  for (const std::shared_ptr<const Dataset>& member : plan.dataset().members()) {
    datasets.push_back(member.get());
  }
  for (const ZippedMember& member : plan.dataset().zipped()) {
    datasets.push_back(member.dataset.get());
  }
  if (datasets.empty()) datasets.push_back(&plan.dataset());
  std::sort(datasets.begin(), datasets.end());
  datasets.erase(std::unique(datasets.begin(), datasets.end()), datasets.end());
  return datasets;
}

// The dataset whose read hangs. If the task reads a zip and the member is not known, returns all
// datasets of the plan.
std::vector<const Dataset*> HungDatasets(const HungTask& task) {
  const Dataset& dataset = task.plan->dataset();
  if (dataset.zipped().empty()) return {dataset.MemberOf(task.record).first};
  if (!task.part.has_value()) return DatasetsOf(*task.plan);
  return {dataset.zipped()[*task.part].dataset.get()};
}

}  // namespace

int MaxThreadsFor(int threads) { return kMaxThreadsFactor * threads; }

std::optional<absl::Status> DatasetShares::Verdict::Of(const FeedPlan& plan) const {
  if (blocked_.empty()) return std::nullopt;
  std::optional<absl::Status> verdict;
  for (const Dataset* const dataset : DatasetsOf(plan)) {
    const auto found = blocked_.find(dataset);
    if (found == blocked_.end()) continue;
    // An error makes the stream fail. OK makes the stream wait. If one dataset has an error and
    // another has OK, the error counts.
    if (!verdict.has_value() || verdict->ok()) verdict = found->second;
  }
  return verdict;
}

bool DatasetShares::Count(const FeedPlan& plan, int more) {
  const int share = ShareOfThreads(/*stuck_for_others=*/0);
  bool changed = false;
  for (const Dataset* const dataset : DatasetsOf(plan)) {
    int& threads = threads_of_[dataset];
    changed = changed || (threads >= share) != (threads + more >= share);
    threads += more;
    if (threads == 0) threads_of_.erase(dataset);
  }
  return changed;
}

int DatasetShares::ShareOfThreads(int stuck_for_others) const {
  const int left = max_threads_ - stuck_for_others;
  return std::max(1, left * kThreadsFactor / kMaxThreadsFactor);
}

DatasetShares::Verdict DatasetShares::Judge(absl::Span<const HungTask> hung,
                                            int64_t budget_bytes) const {
  struct Hung {
    int threads = 0;
    int64_t bytes = 0;
    const HungTask* timed_out = nullptr;
  };
  std::map<const Dataset*, Hung> hung_of;
  std::map<const Dataset*, int> threads_of = threads_of_;
  for (const HungTask& task : hung) {
    // Count() has counted the task for all datasets of its plan. Here the task counts only for the
    // dataset whose read hangs.
    for (const Dataset* const dataset : DatasetsOf(*task.plan)) --threads_of[dataset];
    for (const Dataset* const hangs : HungDatasets(task)) {
      ++threads_of[hangs];
      Hung& dataset = hung_of[hangs];
      ++dataset.threads;
      dataset.bytes += task.cost_bytes;
      if (task.timed_out) dataset.timed_out = &task;
    }
  }
  const int64_t bytes_share =
      budget_bytes / kHungBudgetParts / std::max<int64_t>(kMinHungParts, std::ssize(hung_of));
  const int stuck = static_cast<int>(hung.size());
  std::map<const Dataset*, absl::Status> blocked;
  for (const auto& [dataset, threads] : threads_of) {
    const auto found = hung_of.find(dataset);
    const Hung at = found == hung_of.end() ? Hung() : found->second;
    if (threads < ShareOfThreads(stuck - at.threads) && at.bytes < bytes_share) continue;
    blocked.emplace(dataset, at.timed_out == nullptr ? absl::OkStatus() : ReadHangs(*at.timed_out));
  }
  return Verdict(std::move(blocked));
}

absl::Status DatasetShares::ReadHangs(const HungTask& task) const {
  return absl::UnavailableError(absl::StrCat(
      task.plan->dataset().Where(task.record, task.part),
      ", or a later record: a read has not returned for ", absl::FormatDuration(read_timeout_),
      "; the storage does not answer; check its mount and its disks"));
}

}  // namespace systole
