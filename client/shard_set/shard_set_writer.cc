#include "client/shard_set/shard_set_writer.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/record/each_shard.h"
#include "core/status/status_macros.h"
#include "core/storage/stores/stored_file.h"

namespace systole {
namespace {

// A thread gets this many bytes of records at a time. So the lock is taken once for many short
// records.
constexpr int64_t kChunkBytes = 256 << 10;
// A record that waits takes about this many bytes of memory beside its own bytes.
constexpr int64_t kBytesOfRecord = 64;
// Waits are cut into turns of this length.
constexpr absl::Duration kTurn = absl::Milliseconds(50);
// For how many turns threads may go on with their requests after a failure: 10 seconds in all.
constexpr int kTurnsToEnd = 200;

absl::Status CheckOptions(const ShardSet& set, const ShardSetOptions& options) {
  if (options.shards < 1 || options.shards > kMostShards) {
    return absl::InvalidArgumentError(
        absl::StrCat("shards is ", options.shards, ", want 1 to ", kMostShards));
  }
  if (!set.is_local() && options.shards > kMostShardsInBucket) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shards is ", options.shards, ", want at most ", kMostShardsInBucket,
        " in a bucket, because all shards are written at the same time and each "
        "takes up to 40 MiB of memory; write parts of the data under several prefixes"));
  }
  if (options.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads is ", options.threads, ", want 1 or more"));
  }
  return absl::OkStatus();
}

}  // namespace

ShardSetWriter::ShardSetWriter(ShardSet set, std::vector<std::string> paths,
                               const ShardSetOptions& options, std::unique_ptr<WorkerPool> pool)
    : set_(std::move(set)),
      paths_(std::move(paths)),
      options_(options),
      threads_(static_cast<size_t>(pool->num_threads())),
      gathered_(threads_),
      writers_(paths_.size()),
      waiting_(threads_),
      running_(threads_),
      pool_(std::move(pool)) {}

absl::StatusOr<std::unique_ptr<ShardSetWriter>> ShardSetWriter::Create(
    const std::string& prefix, const ShardSetOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(ShardSet set, ShardSet::Create(prefix));
  SYSTOLE_RETURN_IF_ERROR(CheckOptions(set, options));
  std::vector<std::string> paths;
  for (int64_t shard = 0; shard < options.shards; ++shard) {
    paths.push_back(NumberedShardPath(prefix, shard, options.shards));
  }
  SYSTOLE_RETURN_IF_ERROR(set.MakeRoomFor(paths, IsNumberedShard));
  const int threads = static_cast<int>(std::min<int64_t>(options.threads, options.shards));
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<WorkerPool> pool, WorkerPool::Create(threads));
  auto writer = absl::WrapUnique(
      new ShardSetWriter(std::move(set), std::move(paths), options, std::move(pool)));
  for (size_t thread = 0; thread < writer->threads_; ++thread) {
    writer->pool_->Submit([self = writer.get(), thread] { self->Work(thread); });
  }
  return writer;
}

ShardSetWriter::~ShardSetWriter() { Abandon(); }

void ShardSetWriter::Work(size_t thread) {
  const InterruptScope scope(unwanted_);
  const absl::Status written = WriteShards(thread);
  MutexLock lock(mu_);
  if (failed_.ok()) failed_ = written;
  --running_;
  changed_.SignalAll();
}

absl::Status ShardSetWriter::WriteShards(size_t thread) {
  // The files are made now, so that a folder that cannot be written is an error at once.
  for (size_t shard = thread; shard < paths_.size(); shard += threads_) {
    SYSTOLE_ASSIGN_OR_RETURN(RecordWriter writer,
                             set_.CreateShard(paths_[shard], options_.compression));
    writers_[shard].emplace(std::move(writer));
  }
  while (const std::optional<Chunk> chunk = NextChunk(thread)) {
    SYSTOLE_RETURN_IF_ERROR(WriteChunk(*chunk));
  }
  return absl::OkStatus();
}

absl::Status ShardSetWriter::WriteChunk(const Chunk& chunk) {
  for (const auto& [shard, record] : chunk.records) {
    if (InterruptRequested()) return InterruptedError();
    SYSTOLE_RETURN_IF_ERROR(writers_[static_cast<size_t>(shard)]->Write(record));
  }
  return absl::OkStatus();
}

std::optional<ShardSetWriter::Chunk> ShardSetWriter::NextChunk(size_t thread) {
  MutexLock lock(mu_);
  while (!HasChunk(thread)) changed_.Wait(mu_);
  std::deque<Chunk>& waiting = waiting_[thread];
  if (!failed_.ok() || waiting.empty()) return std::nullopt;
  Chunk chunk = std::move(waiting.front());
  waiting.pop_front();
  waiting_bytes_ -= chunk.bytes;
  changed_.SignalAll();
  return chunk;
}

void ShardSetWriter::Fail(const absl::Status& error) {
  MutexLock lock(mu_);
  if (failed_.ok()) failed_ = error;
  changed_.SignalAll();
}

absl::Status ShardSetWriter::Add(std::string record) {
  const int64_t shard = records_++ % options_.shards;
  const size_t thread = static_cast<size_t>(shard) % threads_;
  Chunk& chunk = gathered_[thread];
  chunk.bytes += static_cast<int64_t>(record.size()) + kBytesOfRecord;
  chunk.records.emplace_back(shard, std::move(record));
  return chunk.bytes < kChunkBytes ? absl::OkStatus() : HandOver(thread);
}

absl::Status ShardSetWriter::HandOver(size_t thread) {
  Chunk chunk = std::exchange(gathered_[thread], {});
  MutexLock lock(mu_);
  if (!failed_.ok()) return failed_;
  if (chunk.records.empty()) return absl::OkStatus();
  waiting_bytes_ += chunk.bytes;
  waiting_[thread].push_back(std::move(chunk));
  changed_.SignalAll();
  return absl::OkStatus();
}

bool ShardSetWriter::WaitForRoom(absl::Duration at_most) {
  MutexLock lock(mu_);
  if (!HasRoom()) changed_.WaitFor(mu_, at_most);
  return HasRoom();
}

absl::Status ShardSetWriter::EndThreads() {
  absl::Status handed;
  for (size_t thread = 0; thread < threads_; ++thread) {
    if (handed.ok()) handed = HandOver(thread);
  }
  {
    MutexLock lock(mu_);
    closed_ = true;
    changed_.SignalAll();
    // Waits in short turns. After each turn, checks whether the caller was interrupted.
    while (failed_.ok() && running_ > 0 && !InterruptRequested()) {
      changed_.WaitFor(mu_, kTurn);
    }
    if (running_ > 0 && failed_.ok()) failed_ = InterruptedError();
    changed_.SignalAll();
    handed = failed_;
  }
  if (!handed.ok()) GiveUp();
  pool_.reset();
  MutexLock lock(mu_);
  return failed_;
}

absl::Status ShardSetWriter::CloseShard(size_t shard, ShardCount& count) {
  RecordWriter& writer = *writers_[shard];
  const absl::Status closed = writer.Close();
  if (ShardSet::MayBeThere(closed)) count.path = paths_[shard];
  SYSTOLE_RETURN_IF_ERROR(closed);
  SYSTOLE_ASSIGN_OR_RETURN(const StoredState file, StatStored(paths_[shard]));
  count.records = writer.num_records();
  count.bytes = file.size_bytes;
  return absl::OkStatus();
}

absl::Status ShardSetWriter::CloseShards(std::vector<ShardCount>& shards) {
  std::vector<ShardCount> closed(paths_.size());
  const absl::Status status = ForEachShard(
      options_.shards, std::max(options_.threads, kShardsOpenedAtOnce), [&](int64_t i) {
        return CloseShard(static_cast<size_t>(i), closed[static_cast<size_t>(i)]);
      });
  for (ShardCount& shard : closed) {
    if (!shard.path.empty()) shards.push_back(std::move(shard));
  }
  return status;
}

absl::Status ShardSetWriter::FinishInto(std::vector<ShardCount>& shards) {
  SYSTOLE_RETURN_IF_ERROR(EndThreads());
  if (records_ < options_.shards) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", records_, " examples for ",
                                                   options_.shards,
                                                   " shards; want at least one for each"));
  }
  set_.RemoveOldManifest();
  SYSTOLE_RETURN_IF_ERROR(CloseShards(shards));
  return set_.WriteManifest(shards);
}

absl::StatusOr<WrittenSet> ShardSetWriter::Finish() {
  WrittenSet written = {.shards = {}, .manifest_path = set_.manifest_path()};
  absl::Status finished = FinishInto(written.shards);
  if (finished.ok()) return written;
  writers_.clear();  // Before Remove(): a writer that was not closed leaves no file.
  // After an interruption, `finished` may be any error.
  if (InterruptRequested()) finished = absl::CancelledError("interrupted");
  return ShardSet::WithLeft(finished, set_.Remove(written.shards).files);
}

void ShardSetWriter::GiveUp() {
  {
    MutexLock lock(mu_);
    for (int turn = 0; running_ > 0 && turn < kTurnsToEnd; ++turn) changed_.WaitFor(mu_, kTurn);
  }
  unwanted_.Raise();
}

void ShardSetWriter::Abandon() {
  if (pool_ != nullptr) {
    Fail(InterruptedError());
    GiveUp();
    pool_.reset();
  }
  writers_.clear();
}

}  // namespace systole
