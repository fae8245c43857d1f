// How many bytes of far shards an epoch of a feed fetches, and which numbers of WINDOW suit the
// feed. By arithmetic: nothing is read, and no epoch is gone through.
//
//   no shuffle   each run of neighbours is fetched once.
//   WINDOW       the same, if memory holds the blocks of a window. Otherwise records of a window
//                find that their run is gone, and it is fetched again.
//   GLOBAL       each record is fetched by itself, once. If all of the set is kept: runs, once.
//   images       each file is fetched by itself, once, in any order.
//
// Of a compressed shard whole pieces are fetched. A piece is fetched for each record that needs it,
// if records are fetched by themselves, and again at each border of a block of WINDOW.
//
// What is kept of an epoch is not fetched in later ones. A full cache keeps what it has
// (core/cache), so with room for c of b bytes a later epoch fetches b - c, in any order.
//
// The numbers are those of a server that makes all steps of the feed. Of several servers each
// fetches what its own steps need, so a run may be fetched by each of them.
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

// The room of a process for bytes of far shards.
struct ReadRoom {
  // Memory for what is read ahead and for what is kept until it is needed (`--read-budget`), in
  // bytes. Of it kReads blocks are under way, but at most half of it; the rest is for what is kept.
  int64_t memory_bytes = 0;
  // The cache of blocks on disk (`--block-cache-bytes`). 0: there is none.
  int64_t disk_bytes = 0;

  // Reads that are under way at a time.
  static constexpr int64_t kReads = 64;

  // A set of so many bytes is kept as a whole. The larger of both, because memory and disk keep the
  // same: what came first.
  int64_t kept_bytes() const { return std::max(memory_bytes, disk_bytes); }
};

struct EpochBytes {
  // Bytes of the dataset's far shards. 0: all shards are at hand, and all numbers are 0.
  int64_t set_bytes = 0;
  // What the first epoch fetches, with nothing kept, and what each later epoch fetches.
  int64_t first_bytes = 0;
  int64_t later_bytes = 0;
  // About how many requests of the storage the first epoch takes; for whole datasets at most so
  // many. A run that is longer than the store reads at a time takes more.
  int64_t first_requests = 0;
  // Memory that blocks take from the first of their records to the last: with WINDOW about the
  // bytes of a window. 0: a block is needed once.
  int64_t held_bytes = 0;
  // Whether there is room for `held_bytes`, so that nothing is fetched twice in an epoch.
  bool holds = true;
  // Whether each record is fetched by itself.
  bool by_record = false;
  // Whether all of the set is kept.
  bool keeps_all = false;
  // Whether first_bytes and later_bytes are exact, but for the records that `tail: DROP` leaves
  // out, and later_bytes to within a block and the rounding of files on disk. They are estimates if
  // shards are compressed, if the feed selects or mixes records, or if something is fetched again.
  // A selection's records are then those of a sample, and what is fetched again is what would be
  // with windows of mean size.
  bool exact = true;
};

// O(shards), and some milliseconds if the feed selects records.
EpochBytes EpochBytesOf(const FeedPlan& plan, const ReadRoom& room);

// Numbers for `shuffle { mode: WINDOW }`.
struct WindowProposal {
  // A block has 4 to 16 MiB: at least a run, so that most of a run's bytes are needed together.
  int64_t block_records = 0;
  // As large as a quarter of the memory allows, but at least 16 blocks, because few blocks mix
  // badly; at most the records of an epoch.
  int64_t window_records = 0;
  // A ReadRoom::memory_bytes with which nothing is fetched twice and the next windows come in time:
  // four times what a window takes. More than the room that was given if 16 blocks do not fit.
  int64_t memory_bytes = 0;
  // What an epoch fetches with these numbers and memory_bytes, or the room given if that is more.
  EpochBytes epoch;
};

// nullopt if nothing is far, if all of the set is kept, or if records are files: then GLOBAL
// fetches as little and mixes better.
std::optional<WindowProposal> ProposeWindow(const FeedPlan& plan, const ReadRoom& room);

// Whether the feed would fetch less with the proposal, or the same in less than half of the
// requests.
bool IsWorthIt(const EpochBytes& epoch, const WindowProposal& window);

// "the first epoch fetches 117.2 GB, all of the set, in about 1000000 requests, and each later one
// .. : GLOBAL fetches record by record". REQUIRES: epoch.set_bytes > 0.
std::string EpochText(const FeedPlan& plan, const EpochBytes& epoch);

// The part of a spec: "shuffle { mode: WINDOW block_records: 96 window_records: 4096 }".
std::string SpecText(const WindowProposal& window);
// What SpecText() costs: "fetches 117.2 GB in about 30000 requests, and holds 480.0 MB in memory
// (--read-budget 960MB)".
std::string CostText(const WindowProposal& window);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_EPOCH_BYTES_H_
