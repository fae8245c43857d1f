#include "core/fetch/dataset_parts.h"

#include <algorithm>

namespace systole {
namespace {

// Three quarters of `all`.
int64_t PartOf(int64_t all) { return all / 4 * 3 + all % 4 * 3 / 4; }

}  // namespace

DatasetParts::Counts DatasetParts::Of(uint64_t dataset) const {
  const auto found = datasets_.find(dataset);
  return found == datasets_.end() ? Counts() : found->second;
}

void DatasetParts::Add(uint64_t dataset, const Counts& more) {
  Counts& of = datasets_[dataset];
  for (Counts* counts : {&of, &all_}) {
    counts->queued += more.queued;
    counts->under_way += more.under_way;
    counts->hung += more.hung;
    counts->bytes += more.bytes;
    counts->hung_bytes += more.hung_bytes;
  }
  if (of.queued == 0 && of.under_way == 0 && of.bytes == 0) datasets_.erase(dataset);
}

int64_t DatasetParts::RequestsFor(const Counts& of) const {
  return std::max<int64_t>(1, PartOf(requests_ - (all_.under_way - of.under_way)));
}

int64_t DatasetParts::MemoryFor(const Counts& of) const {
  return PartOf(memory_bytes_ - (all_.bytes - of.bytes));
}

bool DatasetParts::MayQueue(uint64_t dataset, int64_t blocks, int64_t bytes) const {
  const Counts of = Of(dataset);
  if (of.bytes > of.hung_bytes && of.bytes + bytes > MemoryFor(of)) return false;
  if (of.queued == 0) return true;
  // How many blocks need not wait in the queue, because their reads can begin immediately.
  const int64_t begin_now = std::min(RequestsFor(of) - of.under_way, requests_ - all_.under_way);
  // How many blocks may wait in the queue. Requests that hang do not count, because they take no
  // further block from the queue.
  const int64_t queue =
      std::max<int64_t>(1, PartOf(requests_ - all_.hung - (all_.queued - of.queued)));
  return of.queued + blocks <= std::max<int64_t>(0, begin_now) + queue;
}

bool DatasetParts::MayBegin(uint64_t dataset) const {
  const Counts of = Of(dataset);
  return all_.under_way < requests_ && of.under_way < RequestsFor(of);
}

bool DatasetParts::AllHang(uint64_t dataset) const {
  const Counts of = Of(dataset);
  // Only hanging reads are subtracted, because the requests of all other reads become free again.
  const int64_t requests = PartOf(requests_ - (all_.hung - of.hung));
  const int64_t memory = PartOf(memory_bytes_ - (all_.hung_bytes - of.hung_bytes));
  return all_.hung >= requests_ || (of.hung > 0 && of.hung >= std::max<int64_t>(1, requests)) ||
         (of.hung_bytes > 0 && of.hung_bytes >= memory);
}

void DatasetParts::Queue(uint64_t dataset, int64_t bytes) {
  Add(dataset, {.queued = 1, .bytes = bytes});
}

void DatasetParts::Unqueue(uint64_t dataset, int64_t bytes) {
  Add(dataset, {.queued = -1, .bytes = -bytes});
}

void DatasetParts::BeginQueued(uint64_t dataset) { Add(dataset, {.queued = -1, .under_way = 1}); }

void DatasetParts::Begin(uint64_t dataset, int64_t bytes) {
  Add(dataset, {.under_way = 1, .bytes = bytes});
}

void DatasetParts::Hang(uint64_t dataset, int64_t bytes) {
  Add(dataset, {.hung = 1, .hung_bytes = bytes});
}

void DatasetParts::Arrive(uint64_t dataset, int64_t bytes, bool hung) {
  Add(dataset, {.bytes = -bytes, .hung_bytes = hung ? -bytes : 0});
}

void DatasetParts::End(uint64_t dataset, bool hung) {
  Add(dataset, {.under_way = -1, .hung = hung ? -1 : 0});
}

}  // namespace systole
