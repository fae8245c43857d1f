#include "core/fetch/block_table.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "core/fetch/block_errors.h"
#include "core/fetch/block_memory.h"
#include "core/status/check.h"

namespace systole {
namespace {

int64_t CostOf(const BlockRange& range) { return BufferBytesFor(range.size); }

}  // namespace

BlockTable::BlockTable(const BlockTableOptions& options)
    : options_(options), parts_(options.requests, options.memory_bytes) {
  SYSTOLE_CHECK(options.requests > 0 && options.memory_bytes > 0);
}

BlockTable::Entry* BlockTable::Find(const BlockKey& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.get();
}

bool BlockTable::IsFree(const Entry& entry) const {
  return entry.block != nullptr && entry.waiters.empty() && entry.holds == 0;
}

bool BlockTable::Fits(int64_t bytes, int64_t own_free_bytes) const {
  if (held_bytes_ - (free_bytes_ - own_free_bytes) + bytes <= options_.memory_bytes) return true;
  return held_bytes_ - free_bytes_ - hung_bytes_ == 0;
}

void BlockTable::MakeRoom(int64_t bytes) {
  while (held_bytes_ + bytes > options_.memory_bytes) {
    const std::optional<int64_t> first = order_.First();
    if (!first.has_value()) return;
    Erase(*by_number_.at(*first));
  }
}

std::optional<std::vector<BlockTable::Handed>> BlockTable::AdmitFromMemory(const BlockWant& want) {
  std::vector<Handed> blocks;
  blocks.reserve(want.uses.size());
  for (const BlockUse& use : want.uses) {
    const BlockKey key = KeyOf(use.range);
    Entry* const entry = Find(key);
    if (entry == nullptr || entry->block == nullptr) return std::nullopt;
    blocks.push_back({.key = key, .entry = entry});
  }
  std::vector<const Entry*> each_once;
  each_once.reserve(blocks.size());
  for (size_t use = 0; use < blocks.size(); ++use) {
    Entry& entry = *blocks[use].entry;
    each_once.push_back(&entry);
    blocks[use].block = entry.block;
    TakeInUse(entry);
    ++entry.holds;
    order_.Read(*entry.kept, want.feed, want.uses[use].records, want.uses[use].records_in_block);
  }
  // A block may be in more than one use, and is counted once.
  std::sort(each_once.begin(), each_once.end(), std::less<>());
  each_once.erase(std::unique(each_once.begin(), each_once.end()), each_once.end());
  for (const Entry* const entry : each_once) {
    counts_.bytes_from_memory += static_cast<int64_t>(entry->range.size);
  }
  return blocks;
}

BlockTable::Admission BlockTable::Admit(const BlockWant& want) {
  SYSTOLE_CHECK(!want.uses.empty());
  if (std::optional<std::vector<Handed>> blocks = AdmitFromMemory(want); blocks.has_value()) {
    return {.admitted = true, .want = ++last_number_, .blocks = std::move(blocks)};
  }
  PendingWant admitted = {.uses = want.uses, .feed = want.feed};
  std::vector<Entry*> known;
  std::vector<BlockRange> missing;
  std::unordered_set<BlockKey, BlockKeyHash> seen;
  int64_t bytes = 0;
  int64_t own_free_bytes = 0;
  for (const BlockUse& use : want.uses) {
    const BlockKey key = KeyOf(use.range);
    admitted.blocks.push_back({.key = key});
    if (!seen.insert(key).second) continue;
    if (Entry* const entry = Find(key); entry != nullptr) {
      known.push_back(entry);
      if (IsFree(*entry)) own_free_bytes += entry->cost;
    } else {
      missing.push_back(use.range);
      bytes += CostOf(use.range);
    }
  }
  const bool hangs = !missing.empty() && parts_.AllHang(want.dataset);
  if (!missing.empty() && !hangs) {
    const bool fits = Fits(bytes, own_free_bytes);
    if (!fits || !parts_.MayQueue(want.dataset, static_cast<int64_t>(missing.size()), bytes)) {
      refused_ = true;
      return {.dataset_is_full = fits};
    }
  }

  const int64_t number = ++last_number_;
  for (Entry* const entry : known) TakeInUse(*entry);
  if (hangs) {
    for (Handed& handed : admitted.blocks) {
      if (Find(handed.key) != nullptr) continue;
      const size_t use = static_cast<size_t>(&handed - admitted.blocks.data());
      const BlockRange& range = want.uses[use].range;
      handed.block =
          std::make_shared<const Block>(range, AllReadsHang(range, options_.read_timeout));
      ++counts_.blocks_failed;
    }
  } else {
    MakeRoom(bytes);
    for (const BlockRange& range : missing) {
      known.push_back(&AddToQueue(KeyOf(range), want, range));
    }
  }
  for (Entry* const entry : known) {
    entry->waiters.push_back(number);
    if (entry->block == nullptr) {
      ++admitted.missing;
      continue;
    }
    counts_.bytes_from_memory += static_cast<int64_t>(entry->range.size);
    for (Handed& handed : admitted.blocks) {
      if (handed.key == entry->key) handed.block = entry->block;
    }
  }
  for (size_t use = 0; use < want.uses.size(); ++use) {
    const Entry* const entry = Find(admitted.blocks[use].key);
    if (entry == nullptr) continue;
    order_.Read(*entry->kept, want.feed, want.uses[use].records, want.uses[use].records_in_block);
  }
  const bool is_complete = admitted.missing == 0;
  wants_.emplace(number, std::move(admitted));
  Admission admission = {.admitted = true, .want = number};
  if (is_complete) admission.blocks = Finish(number);
  return admission;
}

BlockTable::Entry& BlockTable::AddToQueue(const BlockKey& key, const BlockWant& want,
                                          const BlockRange& range) {
  auto added = std::make_unique<Entry>();
  Entry& entry = *added;
  entry.key = key;
  entry.range = range;
  entry.feed = want.feed;
  entry.dataset = want.dataset;
  entry.owner = want.owner;
  entry.number = ++last_number_;
  entry.cost = CostOf(range);
  std::list<Entry*>& queue = queues_[want.dataset];
  entry.queued = queue.insert(queue.end(), &entry);
  parts_.Queue(entry.dataset, entry.cost);
  held_bytes_ += entry.cost;
  entry.kept = &order_.Of(entry.number);
  by_number_[entry.number] = &entry;
  entries_.emplace(key, std::move(added));
  return entry;
}

void BlockTable::TakeInUse(Entry& entry) {
  if (!IsFree(entry)) return;
  free_bytes_ -= entry.cost;
  order_.SetFree(*entry.kept, false);
}

void BlockTable::FreeIfUnused(Entry& entry) {
  if (!IsFree(entry)) return;
  free_bytes_ += entry.cost;
  order_.SetFree(*entry.kept, true);
  if (entry.range.size == 0) return Erase(entry);  // There is nothing to be kept.
  NoteRoom();
}

void BlockTable::LeaveQueue(Entry& entry) {
  const auto queue = queues_.find(entry.dataset);
  queue->second.erase(*entry.queued);
  if (queue->second.empty()) queues_.erase(queue);
  entry.queued.reset();
}

void BlockTable::Erase(Entry& entry) {
  if (entry.queued.has_value()) {
    LeaveQueue(entry);
    parts_.Unqueue(entry.dataset, entry.cost);
    held_bytes_ -= entry.cost;
  } else if (!entry.reads.empty()) {
    Detach(entry);
  } else {
    if (IsFree(entry)) free_bytes_ -= entry.cost;
    held_bytes_ -= entry.cost;
  }
  order_.Remove(entry.number);
  by_number_.erase(entry.number);
  if (entry.block != nullptr) freed_.push_back(std::move(entry.block));
  if (entry.owner != nullptr) freed_.push_back(std::move(entry.owner));
  entries_.erase(BlockKey(entry.key));
  NoteRoom();
}

void BlockTable::NoteRoom() {
  if (std::exchange(refused_, false)) has_room_ = true;
}

void BlockTable::Drop(int64_t want) {
  const auto found = wants_.find(want);
  if (found == wants_.end()) return;
  const PendingWant dropped = std::move(found->second);
  wants_.erase(found);
  for (size_t use = 0; use < dropped.uses.size(); ++use) {
    Entry* const entry = Find(dropped.blocks[use].key);
    if (entry == nullptr) continue;
    if (std::find(entry->waiters.begin(), entry->waiters.end(), want) == entry->waiters.end()) {
      continue;
    }
    order_.Unread(*entry->kept, dropped.feed, dropped.uses[use].records);
  }
  for (const Handed& handed : dropped.blocks) {
    if (handed.block != nullptr) freed_.push_back(handed.block);
    Entry* const entry = Find(handed.key);
    if (entry == nullptr || std::erase(entry->waiters, want) == 0) continue;
    if (entry->block != nullptr) {
      FreeIfUnused(*entry);
    } else if (entry->waiters.empty()) {
      Erase(*entry);
    }
  }
}

void BlockTable::DropAll() {
  while (!wants_.empty()) Drop(wants_.begin()->first);
}

std::optional<BlockTable::Handed> BlockTable::Use(const std::shared_ptr<const Block>& block) {
  Entry* const entry = Find(KeyOf(block->range()));
  if (entry == nullptr || entry->block != block) return std::nullopt;
  TakeInUse(*entry);
  ++entry->holds;
  return Handed{.key = entry->key, .block = block, .entry = entry};
}

void BlockTable::Release(const Handed& handed) {
  SYSTOLE_CHECK(handed.entry != nullptr && handed.entry->holds > 0);
  --handed.entry->holds;
  FreeIfUnused(*handed.entry);
}

std::vector<BlockTable::Handed> BlockTable::Finish(int64_t want) {
  const auto found = wants_.find(want);
  std::vector<Handed> blocks = std::move(found->second.blocks);
  wants_.erase(found);
  for (Handed& handed : blocks) {
    if (!handed.block->status().ok()) continue;
    handed.entry = Find(handed.key);
    std::erase(handed.entry->waiters, want);
    ++handed.entry->holds;
  }
  return blocks;
}

std::vector<BlockTable::Finished> BlockTable::HandToWaiters(
    Entry& entry, const std::shared_ptr<const Block>& block) {
  std::vector<Finished> finished;
  const std::vector<int64_t> waiters = entry.waiters;
  if (!block->status().ok()) entry.waiters.clear();
  for (const int64_t number : waiters) {
    PendingWant& want = wants_.at(number);
    for (Handed& handed : want.blocks) {
      if (handed.key == entry.key) handed.block = block;
    }
    if (--want.missing == 0) finished.push_back({.want = number, .blocks = Finish(number)});
  }
  return finished;
}

BlockReaderStats BlockTable::GetStats() const {
  BlockReaderStats stats = counts_;
  stats.reads_under_way = parts_.under_way();
  stats.reads_queued = parts_.queued();
  stats.reads_hung = parts_.hung();
  stats.memory_bytes = held_bytes_;
  stats.memory_in_use_bytes = held_bytes_ - free_bytes_;
  return stats;
}

}  // namespace systole
