// Which records of a dataset a feed has, and their order before the shuffle. The result is that of
// tf.data's skip, take, shard, filter, interleave and auto-shard on a list of files, as a function
// of the position. Records are numbered over the dataset's shards in order (shard_map.h).
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

// The steps. Each is applied to the result of the previous one.
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
// Keeps the positions that are in `list`. A position counts the records that the earlier steps have
// left.
struct ListedRecords {
  std::shared_ptr<const RecordList> list;
};
using SelectionStep = std::variant<SkipRecords, TakeRecords, ShardRecords, ShardFiles,
                                   InterleaveFiles, ListedRecords>;

// Most steps of a selection.
inline constexpr int kMaxSelectionSteps = 32;

class Selection;

// Makes it cheaper to look up all positions of a selection in ascending order. A value type, empty
// at first. Use it with one selection only.
struct SelectionWalk {
  Interleave::Round round;
  std::vector<SelectionWalk> members;
};

// The records of a dataset that a member of a mixture or concatenation contributes.
struct SelectedRecords {
  // The number of the dataset's first record, if the records of all members are counted together.
  int64_t begin = 0;
  // The number of records of the dataset.
  int64_t num_records = 0;
  // Null: all records of the dataset, in their order.
  std::shared_ptr<const Selection> selection;

  int64_t size() const;
  // The record at `position`, or kUnknownRecord. Like `begin`, its number counts the records of all
  // members. `walk` as in Selection.
  // REQUIRES: 0 <= position < size().
  int64_t RecordAt(int64_t position, SelectionWalk* walk = nullptr) const;
  // Adds to the hash everything that decides which records these are, except `begin`.
  void Hash(Xxh3Hasher& hasher) const;
};

// Whether a selection without records is allowed. It is allowed for a member of a concatenation:
// the member is then skipped.
enum class NoRecords { kRefused, kAllowed };

class Selection {
 public:
  // Selects by `steps` from all records of the shards.
  //   InvalidArgument  a step is out of range or at a wrong place, or it leaves no record and
  //                    `no_records` is kRefused. The message names the step: "select[1]".
  // REQUIRES: a ListedRecords has a list of as many positions as the steps before leave.
  static absl::StatusOr<Selection> Create(absl::Span<const int64_t> records_per_shard,
                                          absl::Span<const SelectionStep> steps,
                                          NoRecords no_records = NoRecords::kRefused);

  // Selects by `steps` from the records of `members`, one member after the other. At least one
  // member must have a selection. Otherwise use Create() over the shards of all members.
  //   InvalidArgument  as Create(), or a step takes whole shards, or the members have no record.
  static absl::StatusOr<Selection> Concatenate(std::vector<SelectedRecords> members,
                                               absl::Span<const SelectionStep> steps);

  // Whether Create() looks at the shards, or only at the number of records.
  static bool NeedsShards(absl::Span<const SelectionStep> steps);

  // Records selected; at least 1 unless NoRecords::kAllowed.
  int64_t num_records() const { return num_records_; }
  // Whether the selection has all records of the dataset, in the dataset's order.
  bool is_whole() const;
  // The record at `position`, by its number in the dataset. Each record has at most one position.
  // O(1), or O(cycle_length) if shards are interleaved. kUnknownRecord if a list is not known in
  // this process. With `walk`, a call takes O(1) if positions ascend. REQUIRES: 0 <= position <
  // num_records() (CHECK).
  int64_t RecordAt(int64_t position, SelectionWalk* walk = nullptr) const;

  // Hash of the steps as they were given. For a list, the hash of its positions counts.
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

  // A list that chooses from the choice of the previous filter: position p of the new choice is
  // position begin + list[p] * stride of the previous choice. The first filter chooses from the
  // records that `files_` or `members_` give.
  struct Filter {
    int64_t begin = 0;
    int64_t stride = 1;
    std::shared_ptr<const RecordList> list;
  };

  // The record at a position of `files_` or `members_`, or of the whole dataset.
  int64_t BaseRecordAt(int64_t at, SelectionWalk* walk) const;

  // Position p of the result is position begin_ + p * stride_ of the choice of the last filter.
  // Without filters, it is that position of the records that `files_` or `members_` give.
  std::vector<Filter> filters_;
  int64_t begin_ = 0;
  int64_t stride_ = 1;
  int64_t num_records_ = 0;
  int64_t num_dataset_records_ = 0;  // Set by Create().
  // The records of these files, one file after the other or interleaved. Without `files_`: all
  // records of the dataset in its order.
  struct Files {
    std::vector<int64_t> shard_begins;  // Per file: the number of its first record in the dataset.
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
