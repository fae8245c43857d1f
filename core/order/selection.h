// Which records of a dataset a feed has, and their order before the shuffle. The records and their
// order are those of tf.data's skip, take, shard, filter, interleave and auto-shard on a list of
// files, but each record is computed from its position alone. A record's number counts the records
// of all shards, in the order of the shards (shard_map.h).
//
// Thread-compatible: const throughout.
#ifndef SYSTOLE_CORE_ORDER_SELECTION_H_
#define SYSTOLE_CORE_ORDER_SELECTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/checksum/xxh3.h"
#include "core/order/interleave.h"
#include "core/order/record_list.h"
#include "core/order/shard_map.h"

namespace systole {

// The steps of a selection. Each step is applied to the result of the previous step.
struct SkipRecords {
  int64_t count = 0;
};
struct TakeRecords {
  int64_t count = 0;
};
// Every `count`-th record, from `index` on.
struct ShardRecords {
  int64_t count = 0;
  int64_t index = 0;
};
// Every `count`-th shard, from `index` on. Allowed only as the first step.
struct ShardFiles {
  int64_t count = 0;
  int64_t index = 0;
};
// Interleaves the shards (interleave.h). Only ShardFiles may come before this step.
struct InterleaveFiles {
  int64_t cycle_length = 0;
  int64_t block_length = 0;
};
// Keeps the records at the positions that are in `list`. These are positions in the result of the
// earlier steps.
struct ListedRecords {
  std::shared_ptr<const RecordList> list;
};
using SelectionStep = std::variant<SkipRecords, TakeRecords, ShardRecords, ShardFiles,
                                   InterleaveFiles, ListedRecords>;

// Most steps of a selection.
inline constexpr int kMaxSelectionSteps = 32;

class Selection;

// A cache that makes it cheaper to look up all positions of a selection in ascending order. A value
// type, empty at first. Use a walk with one selection only.
struct SelectionWalk {
  Interleave::Round round;
  std::vector<SelectionWalk> members;
};

// The records of a dataset that a member of a mixture or concatenation contributes.
struct SelectedRecords {
  // How many records the datasets of all earlier members have together. RecordAt() adds this to a
  // record's number in its dataset, so that no two records of the members have the same number.
  int64_t begin = 0;
  // The number of records of the dataset.
  int64_t num_records = 0;
  // Null: all records of the dataset, in their order.
  std::shared_ptr<const Selection> selection;

  int64_t size() const;
  // The record at `position`: `begin` + its number in its dataset, or kUnknownRecord. `walk` as in
  // Selection::RecordAt(). REQUIRES: 0 <= position < size().
  int64_t RecordAt(int64_t position, SelectionWalk* walk = nullptr) const;
  // Adds to `hasher` everything that decides which records these are, except `begin`.
  void Hash(Xxh3Hasher& hasher) const;
};

// Whether a selection may have no record. This is allowed for a member of a concatenation, which is
// then skipped.
enum class NoRecords { kRefused, kAllowed };

class Selection {
 public:
  // Selects by `steps` from all records of the shards.
  //   InvalidArgument  a step is out of range or at a wrong place, or it leaves no record and
  //                    `no_records` is kRefused. The message names the step: "select[1]".
  // REQUIRES: the list of a ListedRecords was chosen from as many positions as the steps before it
  // leave (RecordList::num_positions(), CHECK).
  static absl::StatusOr<Selection> Create(absl::Span<const int64_t> records_per_shard,
                                          absl::Span<const SelectionStep> steps,
                                          NoRecords no_records = NoRecords::kRefused);

  // Selects by `steps` from the records of `members`, one member after the other. At least one
  // member must have a selection. Otherwise use Create() over the shards of all members.
  //   InvalidArgument  as Create(), or a step takes whole shards, or the members have no record.
  static absl::StatusOr<Selection> Concatenate(std::vector<SelectedRecords> members,
                                               absl::Span<const SelectionStep> steps);

  // Whether Create() needs each shard's number of records, or only the sum of these numbers.
  static bool NeedsShards(absl::Span<const SelectionStep> steps);

  // Records selected; at least 1 unless NoRecords::kAllowed.
  int64_t num_records() const { return num_records_; }
  // Whether the selection has all records of the dataset, in the dataset's order.
  bool is_whole() const;
  // The number in the dataset of the record at `position`. Each record has at most one position.
  // kUnknownRecord if a list of the steps is not known in this process. Takes O(1), or
  // O(cycle_length) if shards are interleaved. With `walk`, and positions in ascending order, an
  // interleave adds only O(1) on average while most of its slots have a file. Each list adds the
  // time of RecordList::At(). REQUIRES: 0 <= position < num_records() (CHECK).
  int64_t RecordAt(int64_t position, SelectionWalk* walk = nullptr) const;

  // Hash of the steps as they were given, and of a concatenation's members. A list counts with its
  // RecordList::hash().
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  Selection() = default;

  // Applies the steps to the records that the selection has so far.
  absl::Status ApplySteps(absl::Span<const int64_t> records_per_shard,
                          absl::Span<const SelectionStep> steps, NoRecords no_records,
                          Xxh3Hasher& hasher);
  absl::Status ApplyFileStep(absl::Span<const int64_t> records_per_shard,
                             const SelectionStep& step);
  absl::Status ApplyRecordStep(const SelectionStep& step);

  // Keeps some of the records that the previous filter keeps. Record p of this filter is record
  // begin + list[p] * stride of the previous filter. The first filter chooses from the base: the
  // records of `files_` or `members_`, or all records of the dataset.
  struct Filter {
    int64_t begin = 0;
    int64_t stride = 1;
    std::shared_ptr<const RecordList> list;
  };

  // The record at a position of the base.
  int64_t BaseRecordAt(int64_t at, SelectionWalk* walk) const;

  // Record p of the selection is record begin_ + p * stride_ of the last filter. Without filters,
  // it is this record of the base.
  std::vector<Filter> filters_;
  int64_t begin_ = 0;
  int64_t stride_ = 1;
  int64_t num_records_ = 0;
  int64_t num_dataset_records_ = 0;  // Set by Create().
  // The records of some shards, one shard after the other or interleaved.
  struct Files {
    std::vector<int64_t> shard_begins;  // Per shard: the dataset's number of its first record.
    std::vector<int64_t> sizes;
    std::optional<ShardMap> map;           // Set if the files come one after the other.
    std::optional<Interleave> interleave;  // Set if the files are interleaved.
  };
  std::optional<Files> files_;
  // For a concatenation, instead of `files_`.
  struct Members {
    ShardMap map;
    std::vector<SelectedRecords> records;
  };
  std::optional<Members> members_;
  uint64_t fingerprint_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_SELECTION_H_
