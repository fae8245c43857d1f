// What a dataset must know of a shard before a record is read: enough to put its records in order,
// without the places of its records.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_SHARD_FACTS_H_
#define SYSTOLE_CORE_RECORD_SOURCE_SHARD_FACTS_H_

#include <cstdint>
#include <string>

namespace systole {

// Sizes of payloads, in bytes: the smallest and the largest.
struct PayloadRange {
  int64_t least = 0;
  int64_t most = 0;

  friend bool operator==(const PayloadRange&, const PayloadRange&) = default;
};

// Of a shard that is one file, not compressed, and has no known damage.
struct ShardFacts {
  std::string identity;  // Of the state of the file (StoredState). Not empty.
  std::string format;    // ShardFormat::name.
  uint64_t bytes = 0;    // Of the file.
  int64_t records = 0;
  PayloadRange payload;
  uint64_t content_hash = 0;

  friend bool operator==(const ShardFacts&, const ShardFacts&) = default;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_SHARD_FACTS_H_
