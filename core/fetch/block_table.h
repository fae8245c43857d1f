// The bookkeeping of a BlockReader: which blocks are wanted, read, in use and kept.
//
//   Admit(want)          all blocks of the want are here, or all will come, or there is no room
//   NextRead()           the block that a free request reads next
//   Arrive() .. End()    a read has brought its block; then the read's request is free
//   Look()               call it now and then; finds reads that hang, and reads that are slow
//
// Each block that is wanted, in use, or kept has an entry. While a block is read, its entry has one
// or two reads. A read loses its entry if it has timed out, or if no want needs its bytes any more.
// Such a read holds its request and its memory until it returns.
//
// A BlockTable has no thread, no lock and no clock. Thread-compatible. TakeFreed() returns the
// blocks and the owners (BlockWant::owner) that the table needs no more. The caller destroys them
// after it has released its lock.
#ifndef SYSTOLE_CORE_FETCH_BLOCK_TABLE_H_
#define SYSTOLE_CORE_FETCH_BLOCK_TABLE_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/fetch/block.h"
#include "core/fetch/block_entry.h"
#include "core/fetch/block_key.h"
#include "core/fetch/block_reader_stats.h"
#include "core/fetch/dataset_parts.h"
#include "core/fetch/hedge_policy.h"
#include "core/fetch/kept_order.h"
#include "core/interrupt/interrupt.h"
#include "core/interrupt/read_progress.h"

namespace systole {

// Where the bytes of a block come from.
enum class BlockOrigin { kSource, kDisk };

struct BlockTableOptions {
  int64_t requests = 1;
  int64_t memory_bytes = 0;
  absl::Duration read_timeout;
};

class BlockTable {
 public:
  // If the block's status is OK, the block is in use until Release(handed).
  using Handed = HandedBlock;
  // A want that has got all of its blocks. The blocks are in the order of the want's uses.
  struct Finished {
    int64_t want = 0;
    std::vector<Handed> blocks;
  };
  struct Admission {
    bool admitted = false;
    // The want was refused because its dataset would get more than the dataset's part of the memory
    // or of the queue (DatasetParts). Wants of other datasets may be admitted.
    bool dataset_is_full = false;
    int64_t want = 0;
    // Has a value if all blocks are here.
    std::optional<std::vector<Handed>> blocks = std::nullopt;
  };
  struct Job {
    int64_t read = 0;
    BlockRange range;
    uint64_t feed = 0;       // The feed of the want that began the read.
    bool is_second = false;  // This is a second read, because the block's first read is slow.
    // Raised when no want waits for the read any more.
    std::shared_ptr<const InterruptFlag> flag;
    // Where the read counts the bytes that have come.
    std::shared_ptr<ReadProgress> progress;
  };
  using Freed = std::vector<std::shared_ptr<const void>>;

  // REQUIRES: requests > 0, memory_bytes > 0.
  explicit BlockTable(const BlockTableOptions& options);

  // REQUIRES: the want has at least one use, and its sources exist.
  Admission Admit(const BlockWant& want);
  // Admits the want if all of its blocks are in memory. If not, nothing changes: nullopt.
  std::optional<std::vector<Handed>> AdmitFromMemory(const BlockWant& want);
  // Call this when a want no longer needs its blocks. Does nothing if the want already has its
  // blocks, or was dropped.
  void Drop(int64_t want);
  void DropAll();
  // Begins one more use of a block. nullopt if the table does not have the block.
  std::optional<Handed> Use(const std::shared_ptr<const Block>& block);
  // Ends one use of a block that was handed out.
  void Release(const Handed& handed);

  bool HasReads() const { return !reads_.empty() || parts_.queued() > 0; }
  // Whether NextRead() has a read.
  bool CanBegin() const;
  std::optional<Job> NextRead(absl::Duration now);
  // The read has brought `block`: bytes or an error. A block that no want needs is freed.
  std::vector<Finished> Arrive(int64_t read, std::shared_ptr<const Block> block, BlockOrigin origin,
                               absl::Duration now);
  // The read has ended. If no want needs its block, the block's memory is free now. REQUIRES:
  // Arrive() was called.
  void End(int64_t read);
  // Finds reads that have timed out (ReadWatch), and reads that are slow (HedgePolicy).
  std::vector<Finished> Look(absl::Duration now);

  // Whether a want that was refused may be admitted now. After TakeRoom() has returned true, it
  // returns false until another want was refused and may be admitted.
  bool TakeRoom() { return std::exchange(has_room_, false); }
  Freed TakeFreed() { return std::exchange(freed_, {}); }

  // All numbers except the number of threads.
  BlockReaderStats GetStats() const;

 private:
  using Entry = BlockEntry;
  using Read = BlockRead;
  using Wants = std::unordered_map<int64_t, PendingWant>;

  Entry* Find(const BlockKey& key) const;
  bool IsFree(const Entry& entry) const;
  // Whether there is memory for `bytes` more bytes once all unused blocks are dropped that the want
  // itself does not need (own_free_bytes). Also true if only unused blocks and hanging reads take
  // memory. So a want larger than the whole memory is admitted, but not beside other wants.
  bool Fits(int64_t bytes, int64_t own_free_bytes) const;
  // Drops unused blocks until there is memory for `bytes` bytes, or no unused block is left.
  void MakeRoom(int64_t bytes);
  Entry& AddToQueue(const BlockKey& key, const BlockWant& want, const BlockRange& range);
  // The entry whose read may begin next. Each dataset has a queue. Of the datasets that may begin a
  // read, the one whose first entry is oldest comes next.
  Entry* NextQueued() const;
  // Whether a second read of the block may begin now. `read` was slow at the last look.
  bool IsStillSlow(const Read& read) const;
  Job Begin(Entry& entry, std::shared_ptr<const void> owner, absl::Duration now);
  void LeaveQueue(Entry& entry);
  // Gives `block`, which has bytes or an error, to all wants that wait for the entry.
  std::vector<Finished> HandToWaiters(Entry& entry, const std::shared_ptr<const Block>& block);
  std::vector<Handed> Finish(int64_t want);
  // Ends an entry that has no block. All wants that wait for it get a block with this error.
  void Fail(Entry& entry, absl::Status status, std::vector<Finished>& finished);
  // Separates the entry from its reads, and interrupts them. Then each read counts its own memory.
  void Detach(Entry& entry);
  void FreeIfUnused(Entry& entry);
  void TakeInUse(Entry& entry);
  void Erase(Entry& entry);
  // Call this after a change that may help wants that were refused.
  void NoteRoom();

  const BlockTableOptions options_;
  absl::flat_hash_map<BlockKey, std::unique_ptr<Entry>, BlockKeyHash> entries_;
  std::unordered_map<int64_t, Entry*> by_number_;
  std::map<uint64_t, std::list<Entry*>> queues_;  // By dataset. No queue is empty.
  std::map<int64_t, Read> reads_;
  Wants wants_;
  std::vector<int64_t> slow_;  // Reads whose blocks should be read a second time.
  KeptOrder order_;
  DatasetParts parts_;
  HedgePolicy hedging_;
  int64_t last_number_ = 0;  // The last number given to an entry, a read or a want.
  int64_t held_bytes_ = 0;   // Memory of entries and reads.
  int64_t free_bytes_ = 0;   // The part of held_bytes_ that is kept and not in use.
  int64_t hung_bytes_ = 0;   // The part of held_bytes_ that hanging reads hold.
  bool refused_ = false;     // Whether a want was refused since the last NoteRoom().
  bool has_room_ = false;
  Freed freed_;
  BlockReaderStats counts_;  // The totals for GetStats().
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_BLOCK_TABLE_H_
