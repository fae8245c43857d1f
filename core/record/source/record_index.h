// The places of all records of one file. The records follow each other from the file's beginning
// without gap or overlap, so the index stores one offset for each record. An offset takes 8 bytes
// of memory, or up to 9 bytes if the index was made by a scan.
//
// Thread-compatible: an immutable value.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_RECORD_INDEX_H_
#define SYSTOLE_CORE_RECORD_SOURCE_RECORD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace systole {

// The most damaged records of a file that are listed. All others are only counted. Otherwise the
// list for a badly damaged file could fill the memory.
inline constexpr size_t kMaxDamagedListed = 100;

// The most records of an index that is read from an index file. The places of so many records take
// 4 GiB of memory. A file of more records is scanned each time.
inline constexpr uint64_t kMaxIndexedRecords = uint64_t{1} << 29;

// The most records of a file that is not on this machine, because a server could claim or send
// records without end. The places of so many records take 256 MiB of memory. A scan of such a file
// also ends at this limit.
inline constexpr uint64_t kMaxFarRecords = uint64_t{1} << 25;

// The error ResourceExhausted: the file `name` has more than `max_records` records. The message has
// the base name of the file.
absl::Status TooManyRecords(absl::string_view name, uint64_t max_records);

// The stretch of a file that one record takes, framing included. A stretch in which no record can
// be read counts as one record, too.
struct RecordSpan {
  uint64_t offset = 0;  // From the file's beginning.
  uint64_t size = 0;

  bool operator==(const RecordSpan&) const = default;
};

// A record that cannot be read.
struct DamagedRecord {
  int64_t record = 0;
  RecordSpan span;
  std::string cause;  // What was found and what was expected. Names no file, offset or record.
};

class RecordIndex {
 public:
  // The index of an empty file.
  RecordIndex() = default;

  // `ends[i]` is where record i ends and record i + 1 begins. Record 0 begins at 0. `num_damaged`
  // records are known to be unreadable. `damaged` has the first of them, at most kMaxDamagedListed.
  // REQUIRES: `ends` rises strictly, and its first number is above 0. `damaged` is sorted by
  // record, and has `num_damaged` entries or kMaxDamagedListed.
  explicit RecordIndex(std::vector<uint64_t> ends, std::vector<DamagedRecord> damaged = {},
                       int64_t num_damaged = 0);

  int64_t num_records() const { return static_cast<int64_t>(ends_.size()); }
  // Where the last record ends.
  uint64_t end() const { return ends_.empty() ? 0 : ends_.back(); }

  // REQUIRES: 0 <= record < num_records().
  RecordSpan span(int64_t record) const {
    const uint64_t begin = record == 0 ? 0 : ends_[record - 1];
    return {.offset = begin, .size = ends_[record] - begin};
  }

  // A hint: the processor loads the memory of span() into its cache. REQUIRES: as for span().
  void PrefetchSpan(int64_t record) const { __builtin_prefetch(&ends_[record]); }

  // The number of records that are known to be unreadable.
  int64_t num_damaged() const { return num_damaged_; }
  // The damaged records with the lowest numbers, in order, at most kMaxDamagedListed.
  const std::vector<DamagedRecord>& damaged() const { return damaged_; }
  // Whether there are records and all of them are known to be unreadable. If so, the file is
  // probably not a shard, but a file of another kind.
  bool all_damaged() const { return num_damaged_ > 0 && num_damaged_ == num_records(); }

  // The same index with this damage in place of the old damage. REQUIRES: as for the constructor.
  RecordIndex WithDamage(std::vector<DamagedRecord> damaged, int64_t num_damaged) &&;

 private:
  std::vector<uint64_t> ends_;
  std::vector<DamagedRecord> damaged_;
  int64_t num_damaged_ = 0;
};

// The damaged records that a scan finds. Lists the first kMaxDamagedListed, and counts all.
class DamageList {
 public:
  // REQUIRES: `record` is larger than in all earlier calls.
  void Add(int64_t record, RecordSpan span, std::string cause) {
    if (list_.size() < kMaxDamagedListed) {
      list_.push_back({.record = record, .span = span, .cause = std::move(cause)});
    }
    ++count_;
  }
  RecordIndex MoveInto(RecordIndex index) {
    return std::move(index).WithDamage(std::move(list_), count_);
  }

 private:
  std::vector<DamagedRecord> list_;
  int64_t count_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_RECORD_INDEX_H_
