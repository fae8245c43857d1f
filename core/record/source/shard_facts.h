// The facts that a dataset must know of a shard before it reads a record. They are enough to put
// the shard's records in order, but do not say where in the file each record is.
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

// The facts of a shard that is one file, is not compressed, and has no known damage.
struct ShardFacts {
  std::string identity;  // The identity of the file's state (StoredState). Not empty.
  std::string format;    // ShardFormat::name.
  uint64_t bytes = 0;    // The bytes of the file.
  int64_t records = 0;
  PayloadRange payload;
  uint64_t content_hash = 0;

  friend bool operator==(const ShardFacts&, const ShardFacts&) = default;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_SHARD_FACTS_H_
