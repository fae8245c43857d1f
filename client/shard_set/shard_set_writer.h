// Writes records, as they come, into a set of numbered shards: `PREFIX-00000-of-00016.tfrecord` and
// so on, and `PREFIX.manifest`. Record i goes to shard i % shards. So the bytes depend only on the
// records and the options, not on threads or time. Threads of the writer compute checksums,
// compress and write. Nothing is visible under the names of the shards before Finish().
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_SHARD_SET_SHARD_SET_WRITER_H_
#define SYSTOLE_CLIENT_SHARD_SET_SHARD_SET_WRITER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/shard_set/shard_set.h"
#include "core/compression/compression.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/interrupt/interrupt.h"
#include "core/record/tfrecord/record_writer.h"

namespace systole {

// The names of shards have five digits.
inline constexpr int64_t kMostShards = 99'999;
// All shards of a set are written at the same time. Each shard in a bucket takes up to 40 MiB of
// memory (bucket_sink.h) and four threads.
inline constexpr int64_t kMostShardsInBucket = 100;

struct ShardSetOptions {
  int64_t shards = 1;  // 1 to kMostShards; in a bucket 1 to kMostShardsInBucket.
  // Each shard is compressed as a whole.
  Compression compression = Compression::kNone;
  int threads = 1;  // At least 1. At most `shards` threads are used.
};

struct WrittenSet {
  std::vector<ShardCount> shards;
  std::string manifest_path;
};

class ShardSetWriter {
 public:
  // WaitForRoom() lets about this many bytes of records wait for the threads. With more bytes, the
  // threads would be idle less often when the source of the records is slow for a while, but the
  // writer would take more memory.
  static constexpr int64_t kMaxWaitingBytes = int64_t{64} << 20;

  // The errors of ShardSet::Create(), of MakeRoomFor(), and:
  //   InvalidArgument    an option is out of range.
  //   ResourceExhausted  the system cannot start a thread.
  static absl::StatusOr<std::unique_ptr<ShardSetWriter>> Create(const std::string& prefix,
                                                                const ShardSetOptions& options);
  // Drops what was not finished, as Abandon() does.
  ~ShardSetWriter();
  ShardSetWriter(const ShardSetWriter&) = delete;
  ShardSetWriter& operator=(const ShardSetWriter&) = delete;

  // Takes a record. Does not wait. Some calls hand a group of records to a thread. If a thread has
  // failed before, such a call returns the first error of any thread.
  absl::Status Add(std::string record) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until records of less than kMaxWaitingBytes wait for the threads, or a thread has failed.
  // May return earlier, and returns after `at_most` at the latest. Returns whether Add() may be
  // called now. A caller that calls Add() without waiting for true may gather all records in
  // memory.
  bool WaitForRoom(absl::Duration at_most) ABSL_LOCKS_EXCLUDED(mu_);

  int64_t records() const { return records_; }

  // Finishes all shards and writes the manifest. If anything fails, the shards of this run are
  // removed, and the error names files that could not be removed. Afterwards no other method may be
  // called, whatever Finish() returned.
  //   InvalidArgument  there are fewer records than shards.
  //   Cancelled        the caller was interrupted (InterruptRequested()).
  // Also returns the first error of a thread.
  absl::StatusOr<WrittenSet> Finish() ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the threads and drops all records. Nothing of this run is left. Uploads to a bucket that
  // have begun are called off. Takes some 10 seconds more if a server does not answer.
  void Abandon() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Records of the shards of one thread, in order.
  struct Chunk {
    std::vector<std::pair<int64_t, std::string>> records;  // A shard's number, and a record.
    int64_t bytes = 0;
  };

  ShardSetWriter(ShardSet set, std::vector<std::string> paths, const ShardSetOptions& options,
                 std::unique_ptr<WorkerPool> pool);

  // What thread `thread` does: writes the shards thread, thread + threads_, ..
  void Work(size_t thread) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status WriteShards(size_t thread) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status WriteChunk(const Chunk& chunk);
  // The next chunk for the thread; nullopt if there will be none.
  std::optional<Chunk> NextChunk(size_t thread) ABSL_LOCKS_EXCLUDED(mu_);
  bool HasChunk(size_t thread) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closed_ || !failed_.ok() || !waiting_[thread].empty();
  }
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return waiting_bytes_ < kMaxWaitingBytes || !failed_.ok();
  }
  absl::Status HandOver(size_t thread) ABSL_LOCKS_EXCLUDED(mu_);
  void Fail(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mu_);
  // Lets the threads write all records that wait, and waits until the threads end. If the caller is
  // interrupted, the threads end early.
  absl::Status EndThreads() ABSL_LOCKS_EXCLUDED(mu_);
  // Call this after failed_ was set. Gives the threads some time to end by themselves, and then
  // interrupts them. The time is for uploads that are just beginning: such an upload has no name
  // yet, and if it were interrupted, it could not be called off.
  void GiveUp() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CloseShards(std::vector<ShardCount>& shards);
  absl::Status CloseShard(size_t shard, ShardCount& count);
  absl::Status FinishInto(std::vector<ShardCount>& shards);

  ShardSet set_;
  const std::vector<std::string> paths_;  // By shard.
  const ShardSetOptions options_;
  const size_t threads_;
  InterruptFlag unwanted_;
  int64_t records_ = 0;
  std::vector<Chunk> gathered_;  // By thread: records that are not handed over yet.
  // By shard. A writer is used only by its shard's thread, and by Finish() after the threads have
  // ended.
  std::vector<std::optional<RecordWriter>> writers_;

  Mutex mu_;
  CondVar changed_;
  std::vector<std::deque<Chunk>> waiting_ ABSL_GUARDED_BY(mu_);  // By thread.
  int64_t waiting_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  size_t running_ ABSL_GUARDED_BY(mu_);  // Threads whose work has not ended.
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failed_ ABSL_GUARDED_BY(mu_);  // The first error of a thread.
  std::unique_ptr<WorkerPool> pool_;          // Last, because its threads use the members above.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SHARD_SET_SHARD_SET_WRITER_H_
