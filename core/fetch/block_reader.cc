#include "core/fetch/block_reader.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/fetch/block_errors.h"
#include "core/interrupt/interrupt.h"
#include "core/interrupt/read_progress.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// How often the reader checks whether reads are late.
constexpr absl::Duration kPeriod = absl::Milliseconds(100);

// Reads all bytes of a range into `out`.
absl::Status ReadRange(const BlockRange& range, absl::Span<char> out) {
  const absl::StatusOr<size_t> read = range.source->ReadAt(range.offset, out);
  if (!read.ok()) return read.status();
  absl::Status status = range.source->CheckUnchanged();
  if (status.ok() && *read < range.size) {
    status = EndsTooSoon(range, *read);
  }
  return status;
}

}  // namespace

BlockTicket::~BlockTicket() { reader_.Drop(want_); }

BlockReader::BlockReader(BlockReaderOptions options)
    : options_(std::move(options)),
      disk_(options_.disk),
      memory_(options_.memory_bytes),
      table_({.requests = options_.requests,
              .memory_bytes = options_.memory_bytes,
              .read_timeout = options_.read_timeout}) {}

BlockReader::~BlockReader() {
  Stop(absl::InfiniteDuration());
  std::vector<std::unique_ptr<WorkerPool>> threads;
  {
    MutexLock lock(mu_);
    threads = std::move(threads_);
    if (watch_ != nullptr) threads.push_back(std::move(watch_));
  }
  threads.clear();  // Joins them.
  MutexLock lock(mu_);
  SYSTOLE_CHECK(table_.GetStats().memory_in_use_bytes == 0);
}

BlockReading BlockReader::TryRead(BlockWant want, Done done) {
  BlockTable::Freed freed;  // Destroyed after the lock is released.
  BlockReading reading;
  MutexLock lock(mu_);
  if (stopping_) return reading;
  if (const absl::Status started = StartFirstThreads(); !started.ok()) {
    reading.state = BlockReading::State::kReady;
    for (const BlockUse& use : want.uses) {
      reading.blocks.push_back(std::make_shared<const Block>(use.range, started));
    }
    return reading;
  }
  BlockTable::Admission admission = table_.Admit(want);
  freed = CollectFreed();
  if (!admission.admitted) {
    if (admission.dataset_is_full) reading.state = BlockReading::State::kDatasetIsFull;
    return reading;
  }
  if (admission.blocks.has_value()) {
    reading.state = BlockReading::State::kReady;
    reading.blocks = Hand(*std::move(admission.blocks));
    return reading;
  }
  reading.state = BlockReading::State::kReading;
  reading.ticket.reset(new BlockTicket(*this, admission.want));
  done_.emplace(admission.want, std::move(done));
  Wake();
  return reading;
}

std::optional<std::vector<BlockPtr>> BlockReader::FindInMemory(const BlockWant& want) {
  std::optional<std::vector<BlockTable::Handed>> handed;
  {
    MutexLock lock(mu_);
    if (!stopping_) handed = table_.AdmitFromMemory(want);
  }
  if (!handed.has_value()) return std::nullopt;
  return Hand(*std::move(handed));
}

void BlockReader::Drop(int64_t want) {
  BlockTable::Freed freed;
  Done dropped;
  MutexLock lock(mu_);
  table_.Drop(want);
  if (const auto found = done_.find(want); found != done_.end()) {
    dropped = std::move(found->second);
    done_.erase(found);
  }
  freed = CollectFreed();
  Wake();
}

class BlockReader::InUse {
 public:
  InUse(BlockReader& reader, std::vector<BlockTable::Handed> blocks)
      : reader_(reader), blocks_(std::move(blocks)) {}
  ~InUse() { reader_.Release(std::move(blocks_)); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

  const std::vector<BlockTable::Handed>& blocks() const { return blocks_; }

 private:
  BlockReader& reader_;
  std::vector<BlockTable::Handed> blocks_;
};

void BlockReader::Release(std::vector<BlockTable::Handed> blocks) {
  // The pointers are released before the table counts the blocks as unused.
  for (BlockTable::Handed& each : blocks) each.block.reset();
  BlockTable::Freed freed;
  MutexLock lock(mu_);
  for (const BlockTable::Handed& each : blocks) {
    // Blocks that could not be read have no entry, because the table does not keep them.
    if (each.entry != nullptr) table_.Release(each);
  }
  freed = CollectFreed();
}

std::vector<BlockPtr> BlockReader::Hand(std::vector<BlockTable::Handed> handed) {
  const auto in_use = std::make_shared<const InUse>(*this, std::move(handed));
  std::vector<BlockPtr> blocks;
  blocks.reserve(in_use->blocks().size());
  for (const BlockTable::Handed& each : in_use->blocks()) {
    blocks.emplace_back(in_use, each.block.get());
  }
  return blocks;
}

void BlockReader::Wake() {
  if (stopping_ || !table_.HasReads()) return;
  if (watch_rests_) watch_wakes_.Signal();
  if (!table_.CanBegin()) return;
  if (idle_ > 0) {
    may_read_.Signal();
  } else if (threads_.size() < static_cast<size_t>(options_.requests)) {
    StartReading().IgnoreError();  // If this fails, at least one thread runs already.
  }
}

absl::Status BlockReader::StartReading() {
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<WorkerPool> thread, WorkerPool::Create(1));
  threads_.push_back(std::move(thread));
  threads_.back()->Submit([this] { ReadBlocks(); });
  return absl::OkStatus();
}

absl::Status BlockReader::StartFirstThreads() {
  if (watch_ == nullptr) {
    SYSTOLE_ASSIGN_OR_RETURN(watch_, WorkerPool::Create(1));
    watch_->Submit([this] { Watch(); });
  }
  return threads_.empty() ? StartReading() : absl::OkStatus();
}

BlockTable::Freed BlockReader::CollectFreed() {
  if (table_.TakeRoom()) {
    room_due_ = true;
    watch_wakes_.Signal();
  }
  return table_.TakeFreed();
}

BlockReader::Later BlockReader::Collect(std::vector<BlockTable::Finished> finished) {
  Later later;
  for (BlockTable::Finished& each : finished) {
    auto done = done_.extract(each.want);
    later.done.emplace_back(std::move(done.mapped()), Hand(std::move(each.blocks)));
  }
  later.freed = table_.TakeFreed();
  later.room = table_.TakeRoom() || room_due_;
  room_due_ = false;
  return later;
}

void BlockReader::Call(Later later) {
  later.freed.clear();
  for (auto& [done, blocks] : later.done) done(std::move(blocks));
  later.done.clear();
  if (later.room && options_.room) options_.room();
}

void BlockReader::EndWork() {
  MutexLock lock(mu_);
  if (--busy_ == 0) rests_.SignalAll();
}

void BlockReader::ReadBlocks() {
  while (true) {
    std::optional<BlockTable::Job> job;
    BlockTable::Freed freed;
    {
      MutexLock lock(mu_);
      ++idle_;
      while (!CanRead()) may_read_.Wait(mu_);
      --idle_;
      if (stopping_) return;
      job = table_.NextRead(options_.now());
      ++busy_;
      freed = CollectFreed();
      Wake();
    }
    freed.clear();
    if (job.has_value()) Read(*job);
    EndWork();
  }
}

void BlockReader::Read(const BlockTable::Job& job) {
  BlockOrigin origin = BlockOrigin::kSource;
  std::shared_ptr<const Block> block = BlockOf(job, origin);
  const bool to_disk =
      block->status().ok() && origin == BlockOrigin::kSource && disk_.Admits(job.range);
  std::optional<BlockTable::Handed> kept;
  Later later;
  {
    MutexLock lock(mu_);
    std::shared_ptr<const Block> arrived = to_disk ? block : std::move(block);
    later = Collect(table_.Arrive(job.read, std::move(arrived), origin, options_.now()));
    if (to_disk) kept = table_.Use(block);
    Wake();
  }
  block.reset();
  Call(std::move(later));
  // No task waits for this write to disk. But the read ends, and frees its request, only after it.
  if (kept.has_value()) {
    const std::vector<BlockPtr> in_use = Hand({*std::move(kept)});
    disk_.Insert(job.range, job.feed, in_use[0]->bytes());
  }
  {
    MutexLock lock(mu_);
    table_.End(job.read);
    later = Collect({});
    Wake();
  }
  Call(std::move(later));
}

std::shared_ptr<const Block> BlockReader::BlockOf(const BlockTable::Job& job, BlockOrigin& origin) {
  const InterruptScope scope(*job.flag);
  const ReadProgressScope progress(*job.progress);
  const BlockRange& range = job.range;
  absl::StatusOr<BlockBuffer> buffer = memory_.Take(BufferBytesFor(range.size));
  if (!buffer.ok()) return std::make_shared<const Block>(range, buffer.status());
  const absl::Span<char> out(reinterpret_cast<char*>(buffer->data()) + kBlockBegin, range.size);
  // If this is the second read of a block, the first read has already looked on the disk.
  if (!job.is_second && disk_.Find(range, job.feed, out)) {
    origin = BlockOrigin::kDisk;
  } else if (absl::Status status = ReadRange(range, out); !status.ok()) {
    return std::make_shared<const Block>(range, std::move(status));
  }
  return std::make_shared<const Block>(range, *std::move(buffer));
}

void BlockReader::Watch() {
  // This is the machine's clock, even if options_.now is another clock, because this clock decides
  // only how often to look.
  const MonotonicClock clock = SteadyClock();
  absl::Duration due = clock() + kPeriod;
  while (true) {
    Later later;
    {
      MutexLock lock(mu_);
      watch_rests_ = true;
      while (!MustWatch()) watch_wakes_.Wait(mu_);
      watch_rests_ = false;
      while (!stopping_ && !room_due_ && clock() < due) watch_wakes_.WaitFor(mu_, due - clock());
      if (stopping_) return;
      ++busy_;
      std::vector<BlockTable::Finished> finished;
      if (clock() >= due) {
        finished = table_.Look(options_.now());
        due = clock() + kPeriod;
      }
      later = Collect(std::move(finished));
      Wake();
    }
    Call(std::move(later));
    EndWork();
  }
}

BlockReaderStats BlockReader::GetStats() const {
  MutexLock lock(mu_);
  BlockReaderStats stats = table_.GetStats();
  stats.threads = static_cast<int64_t>(threads_.size());
  return stats;
}

bool BlockReader::Stop(absl::Duration patience) {
  const MonotonicClock clock = SteadyClock();
  const absl::Duration deadline = clock() + patience;
  BlockTable::Freed freed;
  std::unordered_map<int64_t, Done> dropped;
  MutexLock lock(mu_);
  stopping_ = true;
  table_.DropAll();
  freed = table_.TakeFreed();
  dropped.swap(done_);
  may_read_.SignalAll();
  watch_wakes_.SignalAll();
  while (busy_ > 0 && clock() < deadline) rests_.WaitFor(mu_, deadline - clock());
  return busy_ == 0;
}

}  // namespace systole
