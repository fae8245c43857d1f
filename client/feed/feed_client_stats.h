// What a feed has received and lost so far.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_FEED_FEED_CLIENT_STATS_H_
#define SYSTOLE_CLIENT_FEED_FEED_CLIENT_STATS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace systole {

// Masked records that are listed.
inline constexpr size_t kMaxMaskedRecords = 100;

// Counted since Create().
struct FeedClientStats {
  // Bytes of tensors as they travelled, those received twice counted twice.
  int64_t payload_bytes = 0;
  // Of these, the bytes that came through shared memory.
  int64_t shared_payload_bytes = 0;
  // The first reason why batches were sent although they could have been shared, with the server's
  // address. Empty: all were shared, or no server has a "unix:PATH" address.
  std::string not_shared;
  // Steps that were received in full, and the bytes of their tensors as Next() hands them out.
  int64_t steps_received = 0;
  int64_t delivered_bytes = 0;
  // Those of them that travelled compactly, and how often lanes changed the form (v1::Wire).
  int64_t compact_steps = 0;
  int64_t wire_changes = 0;
  // Times a lane lost its server to an error, a drain or silence, vain attempts included.
  int64_t streams_lost = 0;
  // Of the steps that Next() has returned, each counted once: examples that are zeros because their
  // record is damaged and the spec says MASK, and places behind an epoch's last record, with PAD.
  // `valid` is 0 in both.
  int64_t masked_examples = 0;
  int64_t padded_examples = 0;
  // The record_id of the first masked records, at most kMaxMaskedRecords, each once, in the order
  // they were met. The servers log, and tell by ServerStatus, in which shard they are.
  std::vector<int64_t> masked_records;
  // What was damaged on the way, found by a checksum and fetched or sent again: chunks, requests
  // (as servers say) and answers to ResolveFeed. Each is a stream lost as well.
  int64_t damaged_chunks = 0;
  int64_t damaged_requests = 0;
  int64_t damaged_answers = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_FEED_CLIENT_STATS_H_
