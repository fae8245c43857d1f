#include "core/engine/read_ahead.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/engine/run_blocks.h"

namespace systole {
namespace {

// How often WaitUntilIdle() looks.
constexpr absl::Duration kLookAgain = absl::Milliseconds(10);

// The dataset for which a plan's reads count, if its storage hangs. The members of a mixture count
// together.
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
  if (due_) return;
  due_ = true;
  wakes_.Signal();
}

bool ReadAhead::WaitUntilIdle(absl::Duration patience) {
  const absl::Duration deadline = clock_() + patience;
  Wake();  // Wakes the thread, so that it drops reads that no stream wants any more.
  MutexLock lock(mu_);
  while (reader_.GetStats().reads_under_way > 0 || !reads_.empty() || !located_.empty()) {
    if (clock_() >= deadline) return false;
    // A read without a waiting task tells no task when it ends.
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
    // Taking a task may make others unwanted, and dropping those may make room.
    do {
      ReadAll();
    } while (DropUnwanted());
  }
  for (const auto& [dataset, of] : held_) engine_.Arrive(of.task, of.task.run());
  held_.clear();
  ReturnLocated();
}

void ReadAhead::ReturnLocated() {
  while (const std::optional<Located> of = TakeLocated()) engine_.Arrive(of->task, of->task.run());
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
    if (state == State::kNoRoom) return;
  }
}

BlockReading::State ReadAhead::Start(const Located& of) {
  const SliceTask& task = of.task;
  if (task.unwanted().is_raised()) {
    engine_.Arrive(task, task.run());
    return BlockReading::State::kReady;
  }
  const FeedPlan& plan = *task.plan();
  if (!of.indexes_were_read) {
    std::vector<BlockUse> indexes =
        UnreadIndexesOf(plan, task.step(), task.core(), task.examples());
    if (!indexes.empty()) return Start(of, std::move(indexes), /*reads_indexes=*/true);
  }
  const bool keeps_all = static_cast<int64_t>(plan.dataset().far_bytes()) <= memory_bytes_;
  std::vector<BlockUse> blocks =
      BlocksOf(plan, task.step(), task.core(), task.examples(), keeps_all);
  if (!blocks.empty()) return Start(of, std::move(blocks), /*reads_indexes=*/false);
  // All records of the run are on this machine, or cannot be read.
  ExampleRun run = task.run();
  if (!of.index_errors.empty()) {
    run.blocks = std::make_shared<RunBlocks>(std::vector<BlockPtr>(), of.index_errors);
  }
  engine_.Arrive(task, std::move(run));
  return BlockReading::State::kReady;
}

BlockReading::State ReadAhead::Start(const Located& of, std::vector<BlockUse> uses,
                                     bool reads_indexes) {
  const std::shared_ptr<const FeedPlan>& plan = of.task.plan();
  BlockWant want = {.uses = std::move(uses),
                    .feed = plan->fingerprint(),
                    .dataset = DatasetOf(*plan),
                    .owner = plan};
  uint64_t number = 0;
  {
    // Added before TryRead(), because the blocks may come before it returns.
    MutexLock lock(mu_);
    number = next_number_++;
    reads_.emplace(number, Read{.of = of, .reads_indexes = reads_indexes, .ticket = nullptr});
  }
  BlockReading reading = reader_.TryRead(
      std::move(want),
      [this, number](std::vector<BlockPtr> blocks) { Done(number, std::move(blocks)); });
  if (reading.state == BlockReading::State::kReady) Done(number, std::move(reading.blocks));
  MutexLock lock(mu_);
  const auto read = reads_.find(number);  // The read is not there if Done() was called.
  if (read != reads_.end()) {
    read->second.ticket = std::move(reading.ticket);
    if (read->second.ticket == nullptr) reads_.erase(read);
  }
  return reading.state;
}

void ReadAhead::Done(uint64_t number, std::vector<BlockPtr> blocks) {
  std::map<uint64_t, Read>::node_type read;
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
  engine_.Arrive(of.task, std::move(run));
}

bool ReadAhead::DropUnwanted() {
  std::vector<Read> unwanted;
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
  for (Read& read : unwanted) {
    read.ticket.reset();
    engine_.Arrive(read.of.task, read.of.task.run());
  }
  return !unwanted.empty();
}

}  // namespace systole
