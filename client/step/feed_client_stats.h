// What a feed has received and lost so far.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_STEP_FEED_CLIENT_STATS_H_
#define SYSTOLE_CLIENT_STEP_FEED_CLIENT_STATS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace systole {

// The largest number of masked records that are listed.
inline constexpr size_t kMaxMaskedRecords = 100;

// Counted since Create().
struct FeedClientStats {
  // Bytes of tensors as they travelled. Bytes that were received twice count twice.
  int64_t payload_bytes = 0;
  // Of these, the bytes that came through shared memory.
  int64_t shared_payload_bytes = 0;
  // The first reason why batches were sent although they could have been shared, with the server's
  // address. Empty: all were shared, or no server has a "unix:PATH" address.
  std::string not_shared;
  // Steps that were received in full, and the bytes of their tensors as Next() hands them out.
  int64_t steps_received = 0;
  int64_t delivered_bytes = 0;
  // Of these, the steps that travelled compactly; how often lanes changed the form (v1::Wire).
  int64_t compact_steps = 0;
  int64_t wire_changes = 0;
  // How often a lane lost its server to an error, a drain or silence. Failed attempts count too.
  int64_t streams_lost = 0;
  // Of these, the ones that were not the last word: steps or an answer were asked for again.
  int64_t retries = 0;
  // Second copies of late steps, asked of another server: those that came before the first one, and
  // those that did not.
  int64_t hedges_won = 0;
  int64_t hedges_lost = 0;
  // The longest that Next() and WaitForNext() waited for a step, and which step that was. The first
  // one, which waits for servers to begin, is left out.
  absl::Duration longest_wait = absl::ZeroDuration();
  int64_t longest_wait_step = 0;
  // Steps that went to another server because theirs lagged behind.
  int64_t relieved_steps = 0;
  // Servers that joined or left the list since the first step was asked for.
  int64_t membership_changes = 0;
  // How often the list of servers could not be read, in another way than before. The last good one
  // is used meanwhile.
  int64_t bad_server_lists = 0;
  // Questions to servers that had failed or lagged, whether they can serve again.
  int64_t probes = 0;
  // In the steps that Next() has returned, each counted once. Masked examples are zeros because
  // their record is damaged and the spec says MASK. Padded ones are places behind an epoch's last
  // record; the spec says PAD. `valid` is 0 in both.
  int64_t masked_examples = 0;
  int64_t padded_examples = 0;
  // The record_ids of the first kMaxMaskedRecords masked records, each once, in the order met. The
  // servers say in their logs and by ServerStatus in which shards they are.
  std::vector<int64_t> masked_records;
  // Messages damaged on the way, found by a checksum and fetched or sent again: chunks, requests
  // (as servers report) and answers to ResolveFeed. Each also counts in streams_lost.
  int64_t damaged_chunks = 0;
  int64_t damaged_requests = 0;
  int64_t damaged_answers = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_FEED_CLIENT_STATS_H_
