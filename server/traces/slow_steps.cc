#include "server/traces/slow_steps.h"

#include <algorithm>

namespace systole {
namespace {

constexpr char kOther[] = "other";

absl::Duration MadeIn(const StepTimes& times) { return times.read + times.make; }
absl::Duration SentIn(const StepTimes& times) { return times.send; }

// Puts the step into `list`, in which the steps with the longest `time` come first. Keeps `most`
// steps. Returns false if the step is not one of these.
bool Insert(const TracedStep& step, const std::string& dataset,
            const std::vector<std::string>& datasets, absl::Duration (*time)(const StepTimes&),
            size_t most, std::vector<SlowStep>& list) {
  const auto place = std::find_if(list.begin(), list.end(), [&](const TracedStep& other) {
    return time(other.times) < time(step.times);
  });
  if (place == list.end() && list.size() == most) return false;
  list.insert(place, {step, dataset, datasets});
  if (list.size() > most) list.pop_back();
  return true;
}

void Append(const std::vector<SlowStep>& from, SlowSteps::MayList may_list,
            std::vector<SlowStep>& to) {
  for (const SlowStep& step : from) {
    if (std::all_of(step.datasets.begin(), step.datasets.end(), may_list)) to.push_back(step);
  }
}

}  // namespace

SlowSteps::OfDataset& SlowSteps::ListsOf(absl::string_view dataset, absl::Time time) {
  const int64_t number = absl::ToInt64Minutes(time - absl::UnixEpoch());
  // Minutes are kept in the order in which their first steps came. A step may come after a step of
  // the next minute: its thread read the time before it waited for the lock, or the clock was set
  // back.
  auto minute = std::find_if(minutes_.rbegin(), minutes_.rend(),
                             [&](const Minute& known) { return known.number == number; });
  if (minute == minutes_.rend()) {
    minutes_.push_back({.number = number, .datasets = {}});
    if (minutes_.size() > kMinutes) minutes_.pop_front();
    minute = minutes_.rbegin();
  }
  std::vector<OfDataset>& datasets = minute->datasets;
  for (OfDataset& lists : datasets) {
    if (lists.name == dataset) return lists;
  }
  if (datasets.size() > kDatasets) return datasets.back();
  const bool is_last = datasets.size() == kDatasets;
  datasets.push_back({.name = is_last ? kOther : std::string(dataset), .made = {}, .sent = {}});
  return datasets.back();
}

bool SlowSteps::Add(absl::string_view dataset, const std::vector<std::string>& datasets,
                    const TracedStep& step) {
  MutexLock lock(mu_);
  OfDataset& lists = ListsOf(dataset, step.ended);
  const bool made = Insert(step, lists.name, datasets, MadeIn, kSlowestMade, lists.made);
  const bool sent = Insert(step, lists.name, datasets, SentIn, kSlowestSent, lists.sent);
  return made || sent;
}

SlowStepLists SlowSteps::Read(MayList may_list) const {
  SlowStepLists all;
  MutexLock lock(mu_);
  for (auto minute = minutes_.rbegin(); minute != minutes_.rend(); ++minute) {
    std::vector<const OfDataset*> by_name;
    for (const OfDataset& lists : minute->datasets) by_name.push_back(&lists);
    std::stable_sort(by_name.begin(), by_name.end(),
                     [](const OfDataset* a, const OfDataset* b) { return a->name < b->name; });
    for (const OfDataset* const lists : by_name) {
      Append(lists->made, may_list, all.made);
      Append(lists->sent, may_list, all.sent);
    }
  }
  return all;
}

}  // namespace systole
