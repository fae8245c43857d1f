// Where every record of one shard lies: what makes a TFRecord file readable in any order. The
// records of an index cover their shard without gap or overlap, so it stores one offset for each
// record (8 bytes; up to an eighth more after a scan).
//
// Thread-compatible: an immutable value.
#ifndef SYSTOLE_CORE_RECORD_RECORD_INDEX_H_
#define SYSTOLE_CORE_RECORD_RECORD_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/record/record_format.h"

namespace systole {

// How many damaged records of a shard are listed; the others are only counted. A shard that is
// damaged all over must not fill the memory.
inline constexpr size_t kMaxDamagedListed = 100;

// A record that cannot be read.
struct DamagedRecord {
  int64_t record = 0;
  RecordSpan span;
  std::string cause;  // What was seen and what was wanted; no shard, offset or record in it.
};

class RecordIndex {
 public:
  // The index of an empty shard.
  RecordIndex() = default;

  // `ends[i]` is where record i ends and record i + 1 begins; record 0 begins at 0.
  // `damaged` are the first, kMaxDamagedListed at most, of the `num_damaged` records that are known
  // to be unreadable.
  // REQUIRES: `ends` strictly increasing from above 0, `damaged` sorted by record and, where it is
  // shorter than the limit, `num_damaged` long.
  explicit RecordIndex(std::vector<uint64_t> ends, std::vector<DamagedRecord> damaged = {},
                       int64_t num_damaged = 0);

  // Reads DALI's tfrecord2idx text: one `<offset> <size>\n` per record in file order.
  // InvalidArgument, naming the line, unless the records cover [0, shard_bytes) in order.
  static absl::StatusOr<RecordIndex> Parse(absl::string_view text, uint64_t shard_bytes);

  // The most bytes such a text can have for a shard of this size; a longer one is not worth
  // reading.
  static uint64_t MaxTextBytes(uint64_t shard_bytes);

  // The same text, byte for byte. A damaged stretch is one line like any other: a reader checks
  // each record's header anyway and finds the damage again.
  std::string ToText() const;

  int64_t num_records() const { return static_cast<int64_t>(ends_.size()); }
  uint64_t shard_bytes() const { return ends_.empty() ? 0 : ends_.back(); }

  // REQUIRES: 0 <= record < num_records().
  RecordSpan span(int64_t record) const {
    const uint64_t begin = record == 0 ? 0 : ends_[record - 1];
    return {.offset = begin, .size = ends_[record] - begin};
  }

  // Hint: lets the processor load into its cache what span() reads. REQUIRES: as for span().
  void PrefetchSpan(int64_t record) const { __builtin_prefetch(&ends_[record]); }

  // Records known to be unreadable: those with damaged framing and, if payloads were verified,
  // those with damaged payloads. Parse() gives an index without any.
  int64_t num_damaged() const { return num_damaged_; }
  // The first of them by number, kMaxDamagedListed at most.
  const std::vector<DamagedRecord>& damaged() const { return damaged_; }
  // Whether there are records and all of them are known to be unreadable: a file of another kind,
  // more often than a shard.
  bool all_damaged() const { return num_damaged_ > 0 && num_damaged_ == num_records(); }

  // The same index, with the damage that was found since. REQUIRES: as for the constructor.
  RecordIndex WithDamage(std::vector<DamagedRecord> damaged, int64_t num_damaged) &&;

 private:
  std::vector<uint64_t> ends_;
  std::vector<DamagedRecord> damaged_;
  int64_t num_damaged_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_RECORD_INDEX_H_
