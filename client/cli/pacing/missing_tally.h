// Counts the examples that feeds did not deliver, and describes them in text. There are two kinds:
// masked examples (their records are damaged) and padding.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_PACING_MISSING_TALLY_H_
#define SYSTOLE_CLIENT_CLI_PACING_MISSING_TALLY_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "client/emulator/report/run_report.h"
#include "client/step/feed_client_stats.h"
#include "core/json/json_writer.h"

namespace systole {

class MissingTally {
 public:
  MissingTally() = default;
  explicit MissingTally(const FeedClientStats& stats) { Add(stats); }

  // Adds the counts of a feed. If the feed has not ended, these are its counts so far. Call Add()
  // once for each feed.
  void Add(const FeedClientStats& stats);
  void Merge(const MissingTally& other);

  // "3 examples are masked ..": how many, which records, and where to look. Empty if no example is
  // masked.
  std::string MaskedText() const;
  // The record_ids of masked records. Each feed lists only its first kMaxMaskedRecords.
  const std::set<int64_t>& records() const { return records_; }
  // The counts, for a run's report.
  std::vector<emulator::Fact> Facts() const;
  // The counts and the records as fields of the JSON object that is open.
  void AppendTo(JsonWriter& json) const;
  // Appends only the records, not the counts.
  void AppendRecordsTo(JsonWriter& json) const;

 private:
  int64_t masked_ = 0;
  int64_t padded_ = 0;
  std::set<int64_t> records_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACING_MISSING_TALLY_H_
