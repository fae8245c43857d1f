// What a feed has received and lost so far. client/step/README.md explains each number.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_STEP_FEED_CLIENT_STATS_H_
#define SYSTOLE_CLIENT_STEP_FEED_CLIENT_STATS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/step/step_waits.h"
#include "client/verdict/feed_verdict.h"

namespace systole {

// The largest number of masked records that are listed.
inline constexpr size_t kMaxMaskedRecords = 100;

// Counted since Create().
struct FeedClientStats {
  int64_t steps_received = 0;
  int64_t examples_taken = 0;
  int64_t next_step = 0;
  int64_t ready_steps = 0;
  int64_t buffered_bytes = 0;
  int64_t delivered_bytes = 0;
  int64_t payload_bytes = 0;
  int64_t shared_payload_bytes = 0;
  int64_t compact_steps = 0;
  int64_t streams_lost = 0;
  int64_t retries = 0;
  int64_t hedges_won = 0;
  int64_t hedges_lost = 0;
  int64_t relieved_steps = 0;
  int64_t probes = 0;
  int64_t servers_in_use = 0;
  int64_t membership_changes = 0;
  int64_t bad_server_lists = 0;
  absl::Duration longest_wait = absl::ZeroDuration();
  int64_t longest_wait_step = 0;
  absl::Duration waiting = absl::ZeroDuration();
  int64_t masked_examples = 0;
  int64_t padded_examples = 0;
  int64_t damaged_chunks = 0;
  int64_t damaged_requests = 0;
  int64_t damaged_answers = 0;
  FeedWaits waits;  // Of these, only FeedWaits::times and FeedWaits::recent are metrics.
  StepWaits step_waits;
  // The fields down to here are the feed's metrics. The fields from here on are not metrics.
  // The record_ids of the first kMaxMaskedRecords masked records, each once, in the order in which
  // the trainer got them. The servers' logs and ServerStatus name the shards of these records.
  std::vector<int64_t> masked_records;
  // The first reason why a server on this machine sent a batch and did not share it in memory, with
  // the server's address. Empty: all batches were shared, or no server has a "unix:PATH" address.
  std::string not_shared;

  // Counts that the trainer waited for `step`, and for how long. Call this for every step that the
  // trainer got, except its first.
  void AddWait(int64_t step, absl::Duration waited) {
    step_waits.Add(waited);
    if (waited <= longest_wait) return;
    longest_wait = waited;
    longest_wait_step = step;
  }
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_FEED_CLIENT_STATS_H_
