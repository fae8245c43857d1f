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
  DropUnwanted();  // All: the engine has cancelled its streams.
}

void ReadAhead::Wake() {
  MutexLock lock(mu_);
  if (due_) return;
  due_ = true;
  wakes_.Signal();
}

bool ReadAhead::WaitUntilIdle(absl::Duration patience) {
  const absl::Duration deadline = clock_() + patience;
  Wake();  // To drop what nobody wants any more.
  MutexLock lock(mu_);
  while (reader_.GetStats().reads_under_way > 0 || !reads_.empty()) {
    if (clock_() >= deadline) return false;
    // A read that nobody waits for tells nobody when it ends.
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
  for (const auto& [dataset, task] : held_) engine_.Arrive(task, task.run());
  held_.clear();
}

void ReadAhead::ReadAll() {
  using State = BlockReading::State;
  for (auto it = held_.begin(); it != held_.end();) {
    const State state = Start(it->second);
    if (state == State::kNoRoom) return;
    it = state == State::kDatasetIsFull ? std::next(it) : held_.erase(it);
  }
  while (true) {
    std::optional<SliceTask> task = engine_.TakeToRead(
        [this](const FeedPlan& plan) { return !held_.contains(DatasetOf(plan)); });
    if (!task.has_value()) return;
    const State state = Start(*task);
    if (state == State::kReady || state == State::kReading) continue;
    const uint64_t dataset = DatasetOf(*task->plan());
    held_.emplace(dataset, *std::move(task));
    if (state == State::kNoRoom) return;
  }
}

BlockReading::State ReadAhead::Start(const SliceTask& task) {
  if (task.unwanted().is_raised()) {
    engine_.Arrive(task, task.run());
    return BlockReading::State::kReady;
  }
  const std::shared_ptr<const FeedPlan>& plan = task.plan();
  const bool keeps_all = static_cast<int64_t>(plan->dataset().far_bytes()) <= memory_bytes_;
  BlockWant want = {.uses = BlocksOf(*plan, task.step(), task.core(), task.examples(), keeps_all),
                    .feed = plan->fingerprint(),
                    .dataset = DatasetOf(*plan),
                    .owner = plan};
  if (want.uses.empty()) {  // All of its records are at hand.
    engine_.Arrive(task, task.run());
    return BlockReading::State::kReady;
  }
  uint64_t number = 0;
  {
    // First, because the blocks may come before TryRead() returns.
    MutexLock lock(mu_);
    number = next_number_++;
    reads_.emplace(number, Read{.task = task, .ticket = nullptr});
  }
  BlockReading reading = reader_.TryRead(
      std::move(want),
      [this, number](std::vector<BlockPtr> blocks) { Done(number, std::move(blocks)); });
  if (reading.state == BlockReading::State::kReady) Done(number, std::move(reading.blocks));
  MutexLock lock(mu_);
  const auto read = reads_.find(number);  // Not there if Done() was called.
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
  }
  if (read.empty()) return;
  const SliceTask& task = read.mapped().task;
  ExampleRun run = task.run();
  run.blocks = std::make_shared<RunBlocks>(std::move(blocks));
  engine_.Arrive(task, std::move(run));
}

bool ReadAhead::DropUnwanted() {
  std::vector<Read> unwanted;
  {
    MutexLock lock(mu_);
    for (auto it = reads_.begin(); it != reads_.end();) {
      if (it->second.task.unwanted().is_raised()) {
        unwanted.push_back(std::move(it->second));
        it = reads_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (Read& read : unwanted) {
    read.ticket.reset();
    engine_.Arrive(read.task, read.task.run());
  }
  return !unwanted.empty();
}

}  // namespace systole
