// The reads of a BlockTable: how they begin, arrive, end and hang.
#include <algorithm>
#include <utility>

#include "core/fetch/block_errors.h"
#include "core/fetch/block_table.h"
#include "core/status/check.h"

namespace systole {

BlockTable::Entry* BlockTable::NextQueued() const {
  Entry* oldest = nullptr;
  for (const auto& [dataset, queue] : queues_) {
    if (!parts_.MayBegin(dataset)) continue;
    Entry* const front = queue.front();
    if (oldest == nullptr || front->number < oldest->number) oldest = front;
  }
  return oldest;
}

bool BlockTable::IsStillSlow(const Read& read) const {
  return read.entry != nullptr && read.entry->reads.size() == 1 && hedging_.MayHedge() &&
         parts_.MayBegin(read.dataset) &&
         held_bytes_ - free_bytes_ + read.entry->cost <= options_.memory_bytes;
}

bool BlockTable::CanBegin() const {
  if (NextQueued() != nullptr) return true;
  return std::any_of(slow_.begin(), slow_.end(), [this](int64_t read) {
    const auto found = reads_.find(read);
    return found != reads_.end() && IsStillSlow(found->second);
  });
}

std::optional<BlockTable::Job> BlockTable::NextRead(absl::Duration now) {
  if (Entry* const entry = NextQueued(); entry != nullptr) {
    LeaveQueue(*entry);
    parts_.BeginQueued(entry->dataset);
    NoteRoom();
    return Begin(*entry, std::move(entry->owner), now);
  }
  while (!slow_.empty()) {
    const auto found = reads_.find(slow_.back());
    slow_.pop_back();
    if (found == reads_.end() || !IsStillSlow(found->second)) continue;
    Entry& entry = *found->second.entry;
    MakeRoom(entry.cost);
    held_bytes_ += entry.cost;
    parts_.Begin(entry.dataset, entry.cost);
    hedging_.CountHedge();
    ++counts_.reads_hedged;
    Job job = Begin(entry, found->second.owner, now);
    job.is_second = true;
    reads_.at(job.read).cost = entry.cost;
    return job;
  }
  return std::nullopt;
}

BlockTable::Job BlockTable::Begin(Entry& entry, std::shared_ptr<const void> owner,
                                  absl::Duration now) {
  const int64_t number = ++last_number_;
  const Read read = {.entry = &entry,
                     .range = entry.range,
                     .dataset = entry.dataset,
                     .owner = std::move(owner),
                     .flag = std::make_shared<InterruptFlag>(),
                     .watch = ReadWatch(options_.read_timeout, now),
                     .bytes = entry.cost};
  reads_.emplace(number, read);
  entry.reads.push_back(number);
  return {.read = number,
          .range = entry.range,
          .feed = entry.feed,
          .flag = read.flag,
          .progress = read.watch.progress()};
}

void BlockTable::Detach(Entry& entry) {
  for (const int64_t number : entry.reads) {
    Read& read = reads_.at(number);
    // If read.cost is 0, entry.cost includes the read's memory. From now on read.cost does.
    if (read.cost == 0) read.cost = entry.cost;
    if (read.hung) hung_bytes_ += read.cost;
    read.entry = nullptr;
    read.flag->Raise();
  }
  entry.reads.clear();
}

std::vector<BlockTable::Finished> BlockTable::Arrive(int64_t number,
                                                     std::shared_ptr<const Block> block,
                                                     BlockOrigin origin, absl::Duration now) {
  Read& read = reads_.at(number);
  parts_.Arrive(read.dataset, std::exchange(read.bytes, 0), read.hung);
  NoteRoom();
  if (read.entry == nullptr) {
    freed_.push_back(std::move(block));
    return {};
  }
  Entry& entry = *std::exchange(read.entry, nullptr);
  std::erase(entry.reads, number);
  // The other read of the block, if there is one and it is under way.
  Read* const other = entry.reads.empty() ? nullptr : &reads_.at(entry.reads.front());
  if (!block->status().ok()) {
    if (other != nullptr) {  // `other` may succeed. From now on entry.cost includes its memory.
      read.cost = std::exchange(other->cost, 0) + read.cost;
      return {};
    }
    ++counts_.blocks_failed;
    std::vector<Finished> finished = HandToWaiters(entry, block);
    Erase(entry);
    return finished;
  }
  // From now on entry.cost includes the memory of this read. Detach() gives `other` its own cost.
  read.cost = 0;
  if (other != nullptr) {
    other->cost = 0;
    Detach(entry);
  }
  if (origin == BlockOrigin::kDisk) {
    counts_.bytes_from_disk += static_cast<int64_t>(entry.range.size);
  } else {
    hedging_.Add(entry.range.size, read.watch.Taken(now));
    ++counts_.blocks_read;
    counts_.bytes_read += static_cast<int64_t>(entry.range.size);
  }
  entry.block = std::move(block);
  return HandToWaiters(entry, entry.block);
}

void BlockTable::End(int64_t number) {
  const auto found = reads_.find(number);
  SYSTOLE_CHECK(found != reads_.end() && found->second.bytes == 0);
  Read& read = found->second;
  parts_.End(read.dataset, read.hung);
  held_bytes_ -= read.cost;
  if (read.hung) hung_bytes_ -= read.cost;
  if (read.owner != nullptr) freed_.push_back(std::move(read.owner));
  reads_.erase(found);
  NoteRoom();
}

void BlockTable::Fail(Entry& entry, absl::Status status, std::vector<Finished>& finished) {
  ++counts_.blocks_failed;
  const auto block = std::make_shared<const Block>(entry.range, std::move(status));
  for (Finished& each : HandToWaiters(entry, block)) finished.push_back(std::move(each));
  Erase(entry);
}

std::vector<BlockTable::Finished> BlockTable::Look(absl::Duration now) {
  std::vector<Finished> finished;
  slow_.clear();
  for (auto& [number, read] : reads_) {
    if (read.hung) continue;
    const absl::Duration taken = read.watch.Taken(now);
    if (read.watch.HasTimedOut(now)) {
      read.hung = true;
      parts_.Hang(read.dataset, read.bytes);
      if (read.entry == nullptr) {
        hung_bytes_ += read.cost;
      } else {
        ++counts_.blocks_timed_out;
        const int64_t come_bytes = read.watch.progress()->bytes();
        Fail(*read.entry,
             come_bytes == 0 ? HasNotCome(read.range, options_.read_timeout)
                             : ComesTooSlowly(read.range, taken, come_bytes),
             finished);
      }
      NoteRoom();
    } else if (read.entry != nullptr && IsOnServer(read.range.source->name()) &&
               hedging_.IsSlow(read.range.size, taken)) {
      slow_.push_back(number);
    }
  }
  std::vector<Entry*> hopeless;
  for (const auto& [dataset, queue] : queues_) {
    if (parts_.AllHang(dataset)) hopeless.insert(hopeless.end(), queue.begin(), queue.end());
  }
  for (Entry* const entry : hopeless)
    Fail(*entry, AllReadsHang(entry->range, options_.read_timeout), finished);
  return finished;
}

}  // namespace systole
