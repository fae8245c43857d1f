// What a BlockTable stores for each block, each read and each unfinished want, and the blocks that
// the table hands out.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_FETCH_BLOCK_ENTRY_H_
#define SYSTOLE_CORE_FETCH_BLOCK_ENTRY_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "core/fetch/block.h"
#include "core/fetch/block_key.h"
#include "core/fetch/kept_order.h"
#include "core/fetch/read_watch.h"
#include "core/interrupt/interrupt.h"

namespace systole {

// A block that is wanted, read, in use or kept.
struct BlockEntry {
  BlockKey key;
  BlockRange range;
  uint64_t feed = 0;
  uint64_t dataset = 0;
  std::shared_ptr<const void> owner;  // BlockWant::owner, until the entry's read begins.
  int64_t number = 0;                 // Later entries have higher numbers.
  int64_t cost = 0;
  std::optional<std::list<BlockEntry*>::iterator> queued;  // The entry's place in the queue.
  std::vector<int64_t> reads;                              // The reads under way.
  std::shared_ptr<const Block> block;                      // Set once the block has come.
  std::vector<int64_t> waiters;  // Wants that have not got all of their blocks.
  int64_t holds = 0;             // How many users have the block now.
  KeptOrder::Kept* kept = nullptr;
};

struct BlockRead {
  BlockEntry* entry = nullptr;  // Null: no want waits for the read.
  BlockRange range;
  uint64_t dataset = 0;
  std::shared_ptr<const void> owner;
  std::shared_ptr<InterruptFlag> flag;
  ReadWatch watch;
  int64_t bytes = 0;  // The bytes that DatasetParts counts for the read; 0 after Arrive().
  int64_t cost = 0;   // Bytes of memory of the read that the entry's `cost` does not include.
  bool hung = false;
};

// A block that a want gets.
struct HandedBlock {
  BlockKey key;
  std::shared_ptr<const Block> block = nullptr;
  // The block's entry, from Finish() or Use() on. Null before, and if the read failed.
  BlockEntry* entry = nullptr;
};

// A want that has not got all of its blocks.
struct PendingWant {
  std::vector<BlockUse> uses;
  uint64_t feed = 0;
  std::vector<HandedBlock> blocks = {};
  int64_t missing = 0;  // Entries that have not come.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_BLOCK_ENTRY_H_
