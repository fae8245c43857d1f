// How many bytes of far shards (shards that are not on this machine) an epoch of a feed fetches,
// and which block_records and window_records of WINDOW suit the feed. All this is computed: nothing
// is read, and no epoch is simulated. The *set* is all bytes of the far shards. A *run* is a number
// of neighbouring records that are fetched together, mostly by one request. An epoch fetches,
// depending on the shuffle:
//
//   no shuffle   each run, once.
//   WINDOW       each run, once if memory holds the blocks of a window. Otherwise a run may have
//                been dropped before a window needs it, and is then fetched again.
//   GLOBAL       each record by itself, once. If memory keeps the whole set, each run, once.
//
// Records that are files, such as images, are fetched by themselves, once, with any shuffle. If a
// feed zips several datasets, all this holds for each of these datasets by itself. A dataset that
// the zip has several times is fetched once.
//
// For a compressed shard, whole pieces are fetched (core/storage/stored_pieces.h). If records are
// fetched by themselves, a piece is fetched again for each record that needs it. With WINDOW, a
// piece at the border of two blocks is fetched twice.
//
// Bytes that are kept in one epoch are not fetched in later epochs. A full cache keeps what it has
// (core/cache). So if a cache has space for c of the set's b bytes, a later epoch fetches b - c
// bytes, whatever the order of its records.
//
// The numbers are those of a server that makes all steps of the feed. If several servers make the
// steps, each server fetches what its own steps need, and several servers may fetch the same run.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PLAN_EPOCH_BYTES_H_
#define SYSTOLE_CORE_PLAN_EPOCH_BYTES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "core/plan/feed_plan.h"

namespace systole {

// The space that a process has for bytes of far shards.
struct ReadRoom {
  // Memory for the blocks of read_blocks.h (not the shuffle's blocks) that are read ahead or kept,
  // in bytes (`--read-budget`). The kReads blocks that are being read take at most half of this
  // memory. The rest is for blocks that are kept.
  int64_t memory_bytes = 0;
  // The size of the cache of blocks on disk (`--block-cache-bytes`). 0: there is no such cache.
  int64_t disk_bytes = 0;

  // How many reads run at a time.
  static constexpr int64_t kReads = 64;

  // The largest set that is kept as a whole, in bytes. It is the larger of memory_bytes and
  // disk_bytes, not their sum, because memory and disk keep the same blocks: those that came first.
  int64_t kept_bytes() const { return std::max(memory_bytes, disk_bytes); }
};

struct EpochBytes {
  // Bytes of the dataset's far shards. 0: all shards are on this machine, and all numbers are 0.
  int64_t set_bytes = 0;
  // The bytes that the first epoch fetches, if nothing is kept from before.
  int64_t first_bytes = 0;
  // The bytes that each later epoch fetches.
  int64_t later_bytes = 0;
  // About how many requests the first epoch sends to the storage. For a whole dataset this is an
  // upper bound, if no run is longer than one read of the store. A longer run takes more requests.
  int64_t first_requests = 0;
  // The bytes of the blocks that must be in memory together, because the feed takes their records
  // by turns. With WINDOW, about the bytes of a window. 0: the feed takes one block after another.
  int64_t held_bytes = 0;
  // Whether there is space for `held_bytes`, so that no block is fetched again within an epoch.
  bool holds = true;
  // Whether each record is fetched by itself.
  bool by_record = false;
  // Whether the whole set is kept.
  bool keeps_all = false;
  // Whether first_bytes and later_bytes are exact. Exact numbers still count the records that
  // `tail: DROP` leaves out, and later_bytes may be off by a block and by the rounding of files on
  // disk. False: the numbers are estimates, because shards are compressed, the feed selects or
  // mixes records, or bytes are fetched again. An estimate looks only at a sample of a selection's
  // records, takes all windows to have the mean size, and takes a mixture to keep its first
  // weights.
  bool exact = true;
};

// O(shards), and some milliseconds if the feed selects records.
EpochBytes EpochBytesOf(const FeedPlan& plan, const ReadRoom& room);

// Numbers for `shuffle { mode: WINDOW }`.
struct WindowProposal {
  // The records in 4 to 16 MiB. A block of the shuffle is at least as long as a run, so that most
  // bytes of a run are needed together.
  int64_t block_records = 0;
  // As many records as fit into a quarter of the memory. A window has at least 16 blocks, because
  // fewer blocks mix the records badly. No window has more records than an epoch.
  int64_t window_records = 0;
  // The ReadRoom::memory_bytes that the proposal needs: four times the size of a window. With this
  // memory nothing is fetched twice, and windows are fetched before they are needed. memory_bytes
  // is more than the given memory if a quarter of the given memory is too small for a window of 16
  // blocks. In a mixture, this quarter must hold such a window for each member.
  int64_t memory_bytes = 0;
  // What an epoch fetches with the proposal, and with the larger of memory_bytes and the given
  // memory.
  EpochBytes epoch;
};

// nullopt if no shard is far, if the whole set is kept, or if records are files. In these cases
// GLOBAL does not fetch more than WINDOW, and mixes better.
std::optional<WindowProposal> ProposeWindow(const FeedPlan& plan, const ReadRoom& room);

// Whether the proposal saves more than 1% of the first epoch's bytes, or more than half of its
// requests. `epoch` is the feed's epoch without the proposal.
bool IsWorthIt(const EpochBytes& epoch, const WindowProposal& window);

// "the first epoch fetches 117.2 GB, all of the set, in about 1000000 requests, and each later one
// .. : GLOBAL fetches record by record". REQUIRES: epoch.set_bytes > 0.
std::string EpochText(const FeedPlan& plan, const EpochBytes& epoch);

// "shuffle { mode: WINDOW block_records: 96 window_records: 4096 }": the proposal, for a spec.
std::string SpecText(const WindowProposal& window);
// The cost of the proposal: "fetches 117.2 GB in about 30000 requests, and holds 480.0 MB in memory
// (--read-budget 1921MB)".
std::string CostText(const WindowProposal& window);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_EPOCH_BYTES_H_
