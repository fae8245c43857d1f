#include "core/engine/read_ahead.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace systole {
namespace {

// How often WaitUntilIdle() checks whether a read is under way.
constexpr absl::Duration kLookAgain = absl::Milliseconds(10);

// The dataset that a plan's reads count for (BlockWant::dataset). All members of a mixture count as
// one dataset.
uint64_t DatasetOf(const FeedPlan& plan) { return reinterpret_cast<uintptr_t>(&plan.dataset()); }

}  // namespace

ReadAhead::ReadAhead(BlockReaderOptions options, Engine& engine)
    : engine_(engine),
      memory_bytes_(options.memory_bytes),
      reader_([&] {
        options.room = [this] { Wake(); };
        return std::move(options);
      }()),
      thread_(std::make_unique<WorkerPool>(1)) {
  thread_->Submit([this] { Run(); });
}

ReadAhead::~ReadAhead() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wakes_.Signal();
  }
  thread_.reset();
  DropUnwanted();  // Drops all reads, because the engine has cancelled its streams.
  ReturnLocated();
}

void ReadAhead::Wake() {
  MutexLock lock(mu_);
  if (!std::exchange(due_, true)) wakes_.Signal();
}

RunUses ReadAhead::UsesOf(const SliceTask& task) const {
  const FeedPlan& plan = *task.plan();
  const bool keeps_all = static_cast<int64_t>(plan.dataset().far_bytes()) <= memory_bytes_;
  return systole::UsesOf(plan, task.step(), task.core(), task.examples(), keeps_all);
}

BlockWant ReadAhead::WantOf(const SliceTask& task, std::vector<BlockUse> uses) {
  const std::shared_ptr<const FeedPlan>& plan = task.plan();
  return {.uses = std::move(uses),
          .feed = plan->fingerprint(),
          .dataset = DatasetOf(*plan),
          .owner = plan};
}

bool ReadAhead::FindInMemory(const SliceTask& task, ExampleRun& run) {
  RunUses uses = UsesOf(task);
  if (!uses.indexes.empty()) return false;
  if (uses.blocks.empty()) return true;
  {
    MutexLock lock(mu_);
    if (lacks_room_) return false;
  }
  std::optional<std::vector<BlockPtr>> blocks =
      reader_.FindInMemory(WantOf(task, std::move(uses.blocks)));
  if (!blocks.has_value()) return false;
  run.blocks = std::make_shared<RunBlocks>(*std::move(blocks));
  return true;
}

void ReadAhead::Read(const SliceTask& task) {
  MutexLock lock(mu_);
  located_.push_back({.task = task});
  if (!std::exchange(due_, true)) wakes_.Signal();
}

void ReadAhead::GiveBack(const SliceTask& task) {
  engine_.Arrive(task, task.run(), /*warm=*/false);
}

void ReadAhead::SetLacksRoom(bool lacks_room) {
  MutexLock lock(mu_);
  lacks_room_ = lacks_room;
}

bool ReadAhead::WaitUntilIdle(absl::Duration patience) {
  const absl::Duration deadline = clock_() + patience;
  Wake();  // Wakes the thread, so that it drops reads that no stream wants any more.
  MutexLock lock(mu_);
  while (reader_.GetStats().reads_under_way > 0 || !reads_.empty() || !located_.empty()) {
    if (clock_() >= deadline) return false;
    // Nothing signals the end of a read for which no task waits, so this loop looks now and then.
    rests_.WaitFor(mu_, std::min(deadline - clock_(), kLookAgain));
  }
  return true;
}

bool ReadAhead::WaitForWork() {
  MutexLock lock(mu_);
  while (!due_ && !stopping_) wakes_.Wait(mu_);
  due_ = false;
  return !stopping_;
}

void ReadAhead::Run() {
  while (WaitForWork()) {
    // When a task is taken, other tasks may become unwanted. Dropping them makes room.
    do {
      ReadAll();
    } while (DropUnwanted());
  }
  for (const auto& [dataset, of] : held_) GiveBack(of.task);
  held_.clear();
  ReturnLocated();
}

void ReadAhead::ReturnLocated() {
  while (const std::optional<Located> of = TakeLocated()) GiveBack(of->task);
}

std::optional<ReadAhead::Located> ReadAhead::TakeLocated() {
  MutexLock lock(mu_);
  const auto found = std::find_if(located_.begin(), located_.end(), [this](const Located& each) {
    return !held_.contains(DatasetOf(*each.task.plan()));
  });
  if (found == located_.end()) return std::nullopt;
  Located taken = std::move(*found);
  located_.erase(found);
  return taken;
}

void ReadAhead::ReadAll() {
  using State = BlockReading::State;
  for (auto it = held_.begin(); it != held_.end();) {
    const State state = Start(it->second);
    if (state == State::kNoRoom) return;
    it = state == State::kDatasetIsFull ? std::next(it) : held_.erase(it);
  }
  SetLacksRoom(false);
  while (true) {
    std::optional<Located> of = TakeLocated();
    if (!of.has_value()) {
      std::optional<SliceTask> task = engine_.TakeToRead(
          [this](const FeedPlan& plan) { return !held_.contains(DatasetOf(plan)); });
      if (!task.has_value()) return;
      of = Located{.task = *std::move(task)};
    }
    const State state = Start(*of);
    if (state == State::kReady || state == State::kReading) continue;
    const uint64_t dataset = DatasetOf(*of->task.plan());
    held_.emplace(dataset, *std::move(of));
    if (state == State::kNoRoom) return SetLacksRoom(true);
  }
}

BlockReading::State ReadAhead::Start(const Located& of) {
  const SliceTask& task = of.task;
  if (task.unwanted().is_raised()) {
    GiveBack(task);
    return BlockReading::State::kReady;
  }
  RunUses uses = UsesOf(task);
  if (!of.indexes_were_read && !uses.indexes.empty()) {
    return Start(of, WantOf(task, std::move(uses.indexes)), /*reads_indexes=*/true);
  }
  std::optional<std::vector<BlockPtr>> blocks;
  if (uses.blocks.empty()) {
    // All records of the run are on this machine, or cannot be read.
    blocks.emplace();
  } else {
    BlockWant want = WantOf(task, std::move(uses.blocks));
    blocks = reader_.FindInMemory(want);
    if (!blocks.has_value()) {
      Count(task, /*found=*/false);
      return Start(of, std::move(want), /*reads_indexes=*/false);
    }
  }
  ExampleRun run = task.run();
  const bool warm = Count(task, of.index_errors.empty());
  if (!blocks->empty() || !of.index_errors.empty()) {
    run.blocks = std::make_shared<RunBlocks>(*std::move(blocks), of.index_errors);
  }
  engine_.Arrive(task, std::move(run), warm);
  return BlockReading::State::kReady;
}

bool ReadAhead::Count(const SliceTask& task, bool found) {
  MutexLock lock(mu_);
  if (found) return warm_.Found(*task.plan(), task.examples().size());
  warm_.Missed(*task.plan());
  return false;
}

BlockReading::State ReadAhead::Start(const Located& of, BlockWant want, bool reads_indexes) {
  uint64_t number = 0;
  {
    // Added before TryRead(), because the blocks may come before TryRead() returns.
    MutexLock lock(mu_);
    number = next_number_++;
    reads_.emplace(number, Reading{.of = of, .reads_indexes = reads_indexes, .ticket = nullptr});
  }
  BlockReading reading = reader_.TryRead(
      std::move(want),
      [this, number](std::vector<BlockPtr> blocks) { Done(number, std::move(blocks)); });
  if (reading.state == BlockReading::State::kReady) Done(number, std::move(reading.blocks));
  MutexLock lock(mu_);
  const auto read = reads_.find(number);  // Done() may have removed the read.
  if (read != reads_.end()) {
    read->second.ticket = std::move(reading.ticket);
    if (read->second.ticket == nullptr) reads_.erase(read);
  }
  return reading.state;
}

void ReadAhead::Done(uint64_t number, std::vector<BlockPtr> blocks) {
  std::map<uint64_t, Reading>::node_type read;
  {
    MutexLock lock(mu_);
    read = reads_.extract(number);
    if (read.empty()) return;
    if (read.mapped().reads_indexes) {
      Located located = std::move(read.mapped().of);
      located.indexes_were_read = true;
      for (const BlockPtr& index : blocks) {
        if (!index->status().ok()) located.index_errors.push_back(index->status());
      }
      located_.push_back(std::move(located));
    }
  }
  if (read.mapped().reads_indexes) return Wake();
  Located& of = read.mapped().of;
  ExampleRun run = of.task.run();
  run.blocks = std::make_shared<RunBlocks>(std::move(blocks), std::move(of.index_errors));
  engine_.Arrive(of.task, std::move(run), /*warm=*/false);
}

bool ReadAhead::DropUnwanted() {
  std::vector<Reading> unwanted;
  {
    MutexLock lock(mu_);
    for (auto it = reads_.begin(); it != reads_.end();) {
      if (it->second.of.task.unwanted().is_raised()) {
        unwanted.push_back(std::move(it->second));
        it = reads_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (Reading& read : unwanted) {
    read.ticket.reset();
    GiveBack(read.of.task);
  }
  return !unwanted.empty();
}

}  // namespace systole
