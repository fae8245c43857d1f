#include "server/traces/slow_steps.h"

#include <algorithm>

namespace systole {
namespace {

constexpr char kOther[] = "other";

absl::Duration MadeIn(const StepTimes& times) { return times.read + times.make; }
absl::Duration SentIn(const StepTimes& times) { return times.send; }

// Puts the step into `list`, slowest first, unless `most` others took longer by `time`.
bool Insert(const TracedStep& step, absl::Duration (*time)(const StepTimes&), size_t most,
            std::vector<TracedStep>& list) {
  const auto place = std::find_if(list.begin(), list.end(), [&](const TracedStep& other) {
    return time(other.times) < time(step.times);
  });
  if (place == list.end() && list.size() == most) return false;
  list.insert(place, step);
  if (list.size() > most) list.pop_back();
  return true;
}

void Append(const std::string& dataset, const std::vector<TracedStep>& from,
            std::vector<SlowStep>& to) {
  for (const TracedStep& step : from) to.push_back({step, dataset});
}

}  // namespace

SlowSteps::OfDataset& SlowSteps::ListsOf(absl::string_view dataset, absl::Time time) {
  const int64_t number = absl::ToInt64Minutes(time - absl::UnixEpoch());
  // If the clock was set, minutes do not come in order. They are kept in the order they came in.
  if (minutes_.empty() || minutes_.back().number != number) {
    minutes_.push_back({.number = number, .datasets = {}});
    if (minutes_.size() > kMinutes) minutes_.pop_front();
  }
  std::vector<OfDataset>& datasets = minutes_.back().datasets;
  for (OfDataset& lists : datasets) {
    if (lists.name == dataset) return lists;
  }
  if (datasets.size() > kDatasets) return datasets.back();
  const bool is_last = datasets.size() == kDatasets;
  datasets.push_back({.name = is_last ? kOther : std::string(dataset), .made = {}, .sent = {}});
  return datasets.back();
}

bool SlowSteps::Add(absl::string_view dataset, const TracedStep& step) {
  MutexLock lock(mu_);
  OfDataset& lists = ListsOf(dataset, step.ended);
  const bool made = Insert(step, MadeIn, kSlowestMade, lists.made);
  const bool sent = Insert(step, SentIn, kSlowestSent, lists.sent);
  return made || sent;
}

SlowStepLists SlowSteps::Read() const {
  SlowStepLists all;
  MutexLock lock(mu_);
  for (auto minute = minutes_.rbegin(); minute != minutes_.rend(); ++minute) {
    std::vector<const OfDataset*> by_name;
    for (const OfDataset& lists : minute->datasets) by_name.push_back(&lists);
    std::stable_sort(by_name.begin(), by_name.end(),
                     [](const OfDataset* a, const OfDataset* b) { return a->name < b->name; });
    for (const OfDataset* const lists : by_name) {
      Append(lists->name, lists->made, all.made);
      Append(lists->name, lists->sent, all.sent);
    }
  }
  return all;
}

}  // namespace systole
