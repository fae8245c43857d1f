// Reads blocks of far sources (buckets, web servers, network file systems) ahead of the threads
// that compute. A request is the right to run one read, and the reader has a bounded number of
// requests. A read that hangs holds a request, but no thread that computes.
//
//   TryRead(want) --> kReady: all blocks are in memory, here they are
//                 --> kReading + ticket: done(blocks) is called once they have come
//                 --> kNoRoom, kDatasetIsFull: no read was begun; room() is called when TryRead()
//                     may succeed
//
// block_table.h says which reads are begun, which blocks are kept, and what is refused.
//
// Thread-safe. `done` and `room` are called without a lock, and only by the reader's own threads.
// No function of this file calls them, and neither does the destructor of a ticket or of a
// BlockPtr. So a caller may use these functions and destructors under a lock that `done` and `room`
// take.
#ifndef SYSTOLE_CORE_FETCH_BLOCK_READER_H_
#define SYSTOLE_CORE_FETCH_BLOCK_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "core/cache/disk_store.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/fetch/block.h"
#include "core/fetch/block_memory.h"
#include "core/fetch/block_reader_stats.h"
#include "core/fetch/block_table.h"
#include "core/fetch/disk_blocks.h"

namespace systole {

struct BlockReaderOptions {
  // How many reads may run at a time, > 0. Each read has a thread of its own. A thread starts when
  // it is first needed. More requests hide more of the storage's latency.
  int requests = 64;
  // Bound on the memory of all blocks: those being read, in use, and kept, > 0.
  int64_t memory_bytes = int64_t{256} << 20;
  // A block fails if its read has brought less than 1 KiB a second for this long, or if the block
  // has not come after five times as long. The read itself may go on, because nothing can cancel a
  // read of a dead mount. Such a read holds its request until it returns.
  absl::Duration read_timeout = absl::Seconds(60);
  // Keeps blocks across restarts. Null: no disk. The code that shows the store's counts shares the
  // store.
  std::shared_ptr<DiskStore> disk = nullptr;
  // Called when a TryRead() that was refused may succeed now.
  std::function<void()> room = nullptr;
  MonotonicClock now = SteadyClock();
};

class BlockReader;

// Stands for a want whose blocks are being read. To destroy the ticket is to drop the want: its
// `done` is not called any more, but a call that has just begun on another thread goes on. If no
// other want needs a block, the read of this block leaves the queue or, if it has begun, is
// interrupted (core/interrupt).
class BlockTicket {
 public:
  ~BlockTicket();
  BlockTicket(const BlockTicket&) = delete;
  BlockTicket& operator=(const BlockTicket&) = delete;

 private:
  friend class BlockReader;
  BlockTicket(BlockReader& reader, int64_t want) : reader_(reader), want_(want) {}

  BlockReader& reader_;
  const int64_t want_;
};

// The result of TryRead().
struct BlockReading {
  enum class State {
    kNoRoom,         // No read was begun. There is no room now in the memory or the queue.
    kDatasetIsFull,  // No read was begun. The dataset already has its part of the memory or the
                     // queue. Other datasets may go on.
    kReady,          // Here are the blocks. `done` is not called.
    kReading,        // `done` is called when the blocks have come.
  };
  State state = State::kNoRoom;
  std::vector<BlockPtr> blocks;         // Set for kReady, in the order of the uses. All blocks
                                        // stay in use until the last BlockPtr is dropped.
  std::unique_ptr<BlockTicket> ticket;  // Set for kReading.
};

// All tickets and BlockPtrs must be gone before the reader is destroyed.
class BlockReader {
 public:
  // Blocks in the order of the uses. Each has a status of its own.
  using Done = absl::AnyInvocable<void(std::vector<BlockPtr>)>;

  // REQUIRES: requests > 0, memory_bytes > 0.
  explicit BlockReader(BlockReaderOptions options);
  // Calls Stop(InfiniteDuration).
  ~BlockReader();
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  // Never waits. REQUIRES: the want has a use. If hanging reads hold all requests or all memory
  // that the dataset may have, no read begins, and each block that would have to be read gets the
  // status Unavailable. If the system gives no thread for reading, returns kReady, and all blocks
  // have the status ResourceExhausted.
  BlockReading TryRead(BlockWant want, Done done);

  // The blocks of the want, in the order of its uses, if all of them are in memory. Begins no read.
  // REQUIRES: as TryRead().
  std::optional<std::vector<BlockPtr>> FindInMemory(const BlockWant& want) ABSL_LOCKS_EXCLUDED(mu_);

  BlockReaderStats GetStats() const;

  // Interrupts all reads and drops all tickets. From now on TryRead() returns kNoRoom. Waits for
  // reads and for calls of `done` and `room` that have begun. False if some have not ended after
  // `patience`: a read hangs.
  bool Stop(absl::Duration patience);

 private:
  friend class BlockTicket;

  // The work to do after the lock is released.
  struct Later {
    std::vector<std::pair<Done, std::vector<BlockPtr>>> done;
    BlockTable::Freed freed;
    bool room = false;
  };

  void Drop(int64_t want) ABSL_LOCKS_EXCLUDED(mu_);
  // The blocks that a want got. They are released together: the lock is taken only once.
  class InUse;
  void Release(std::vector<BlockTable::Handed> blocks) ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<BlockPtr> Hand(std::vector<BlockTable::Handed> handed);
  // ResourceExhausted if the system gives no thread.
  absl::Status StartReading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Starts the thread that watches the reads, and one thread that reads, if they do not run yet.
  absl::Status StartFirstThreads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Wakes or starts the threads for which the table has work.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Collects the work to do after a change of the table. Only for the reader's own threads.
  Later Collect(std::vector<BlockTable::Finished> finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Like Collect(), but for any thread, and only for what was freed. If there is room, the thread
  // that watches the reads calls `room`.
  BlockTable::Freed CollectFreed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Call(Later later) ABSL_LOCKS_EXCLUDED(mu_);
  // The threads' code.
  void ReadBlocks() ABSL_LOCKS_EXCLUDED(mu_);
  void Watch() ABSL_LOCKS_EXCLUDED(mu_);
  void Read(const BlockTable::Job& job) ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<const Block> BlockOf(const BlockTable::Job& job, BlockOrigin& origin);
  void EndWork() ABSL_LOCKS_EXCLUDED(mu_);
  bool MustWatch() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || room_due_ || table_.HasReads();
  }
  bool CanRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || table_.CanBegin(); }

  const BlockReaderOptions options_;
  const DiskBlocks disk_;
  BlockMemory memory_;  // Outlives all blocks.
  mutable Mutex mu_;
  CondVar may_read_;     // For threads that have nothing to read.
  CondVar watch_wakes_;  // For the thread that watches.
  CondVar rests_;        // Signalled when busy_ is 0.
  BlockTable table_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<int64_t, Done> done_ ABSL_GUARDED_BY(mu_);  // By want.
  int idle_ ABSL_GUARDED_BY(mu_) = 0;  // Threads that have nothing to read.
  int busy_ ABSL_GUARDED_BY(mu_) = 0;  // Threads at work outside of the lock.
  bool watch_rests_ ABSL_GUARDED_BY(mu_) = false;
  bool room_due_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // Each pool has one thread, so that threads start one by one. Threads end once stopping_ is set.
  std::vector<std::unique_ptr<WorkerPool>> threads_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<WorkerPool> watch_ ABSL_GUARDED_BY(mu_);  // Null before the first want.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_BLOCK_READER_H_
