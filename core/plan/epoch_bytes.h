// How many bytes of far shards an epoch of a feed fetches, and which numbers of WINDOW suit the
// feed. The numbers are computed. Nothing is read, and no epoch is simulated.
//
//   no shuffle   each run of neighbours is fetched once.
//   WINDOW       each run is fetched once, too, if memory holds the blocks of a window. Otherwise
//                a run may be gone when a window needs it, and is then fetched again.
//   GLOBAL       each record is fetched by itself, once. If all of the set is kept, runs are
//                fetched instead, each once.
//   images       each file is fetched by itself, once, in any order.
//
// Each member of a zip is fetched in its own way. A dataset that is used as several members is
// fetched once.
//
// For a compressed shard, whole pieces are fetched. If records are fetched by themselves, a piece
// is fetched again for each record that needs it. With WINDOW, a piece at the border of two blocks
// is fetched twice.
//
// Bytes that are kept in one epoch are not fetched in later epochs. A full cache keeps what it has
// (core/cache). So if a cache has space for c of the set's b bytes, a later epoch fetches b - c
// bytes, in whatever order it goes through the set.
//
// The numbers are those of a server that makes all steps of the feed. If there are several servers,
// each server fetches what its own steps need. So several servers may fetch the same run.
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
  // Memory for blocks that are read ahead and for blocks that are kept (`--read-budget`), in bytes.
  // kReads blocks are being read at a time. They take at most half of the memory. The rest is for
  // blocks that are kept.
  int64_t memory_bytes = 0;
  // The cache of blocks on disk (`--block-cache-bytes`). 0: there is none.
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
  // The bytes that the first epoch fetches, with nothing kept, and the bytes that each later epoch
  // fetches.
  int64_t first_bytes = 0;
  int64_t later_bytes = 0;
  // About how many requests the first epoch sends to the storage. For a whole dataset this is an
  // upper bound. A run that is longer than one read of the store takes more requests.
  int64_t first_requests = 0;
  // Memory for blocks that are held from their first record until their last record. With WINDOW it
  // is about the bytes of a window. 0: each block is needed only once.
  int64_t held_bytes = 0;
  // Whether there is space for `held_bytes`, so that an epoch fetches nothing twice.
  bool holds = true;
  // Whether each record is fetched by itself.
  bool by_record = false;
  // Whether all of the set is kept.
  bool keeps_all = false;
  // Whether first_bytes and later_bytes are exact. Even then they include the records that `tail:
  // DROP` leaves out, and later_bytes may be off by a block and by the rounding of files on disk.
  // The numbers are estimates if shards are compressed, if the feed selects or mixes records, or if
  // bytes are fetched again. The estimate looks at a sample of a selection's records. It assumes
  // that all windows have the mean size, and that a mixture keeps its first weights.
  bool exact = true;
};

// O(shards), and some milliseconds if the feed selects records.
EpochBytes EpochBytesOf(const FeedPlan& plan, const ReadRoom& room);

// Numbers for `shuffle { mode: WINDOW }`.
struct WindowProposal {
  // A block has 4 to 16 MiB. It is at least as long as a run, so that most bytes of a run are
  // needed together.
  int64_t block_records = 0;
  // As many records as fit into a quarter of the memory. A window has at least 16 blocks, because
  // fewer blocks mix the records badly. It never has more records than an epoch.
  int64_t window_records = 0;
  // The ReadRoom::memory_bytes that the proposal needs: four times the size of a window. With this
  // memory nothing is fetched twice, and the next windows come in time. memory_bytes is more than
  // the given memory if a quarter of the given memory, which a mixture's members share, is too
  // small for a window of 16 blocks.
  int64_t memory_bytes = 0;
  // The bytes that an epoch fetches with these numbers, and with memory_bytes or the given memory,
  // whichever is more.
  EpochBytes epoch;
};

// nullopt if nothing is far, if all of the set is kept, or if records are files. In these cases
// GLOBAL does not fetch more, and mixes better.
std::optional<WindowProposal> ProposeWindow(const FeedPlan& plan, const ReadRoom& room);

// Whether the feed would fetch fewer bytes with the proposal, or the same bytes in less than half
// of the requests.
bool IsWorthIt(const EpochBytes& epoch, const WindowProposal& window);

// "the first epoch fetches 117.2 GB, all of the set, in about 1000000 requests, and each later one
// .. : GLOBAL fetches record by record". REQUIRES: epoch.set_bytes > 0.
std::string EpochText(const FeedPlan& plan, const EpochBytes& epoch);

// The part of a spec: "shuffle { mode: WINDOW block_records: 96 window_records: 4096 }".
std::string SpecText(const WindowProposal& window);
// The cost of SpecText(): "fetches 117.2 GB in about 30000 requests, and holds 480.0 MB in memory
// (--read-budget 960MB)".
std::string CostText(const WindowProposal& window);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_EPOCH_BYTES_H_
