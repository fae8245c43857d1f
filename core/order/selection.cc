#include "core/order/selection.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/checksum/xxh3.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

bool IsFileStep(const SelectionStep& step) {
  return std::holds_alternative<ShardFiles>(step) || std::holds_alternative<InterleaveFiles>(step);
}

absl::Status CheckPart(absl::string_view what, int64_t count, int64_t index) {
  if (count >= 1 && index >= 0 && index < count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " has count: ", count, " and index: ", index,
                                                 ", want 0 <= index < count"));
}

// Hashes a step for the fingerprint: first its kind, then its fields.
void HashStep(const SelectionStep& step, Xxh3Hasher& hasher) {
  hasher.UpdateU64(step.index());
  const auto two = [&hasher](int64_t a, int64_t b) {
    hasher.UpdateU64(static_cast<uint64_t>(a));
    hasher.UpdateU64(static_cast<uint64_t>(b));
  };
  if (const auto* skip = std::get_if<SkipRecords>(&step)) two(skip->count, 0);
  if (const auto* take = std::get_if<TakeRecords>(&step)) two(take->count, 0);
  if (const auto* shard = std::get_if<ShardRecords>(&step)) two(shard->count, shard->index);
  if (const auto* files = std::get_if<ShardFiles>(&step)) two(files->count, files->index);
  if (const auto* cycle = std::get_if<InterleaveFiles>(&step)) {
    two(cycle->cycle_length, cycle->block_length);
  }
  if (const auto* listed = std::get_if<ListedRecords>(&step)) {
    hasher.UpdateU64(listed->list->hash());
    hasher.UpdateU64(static_cast<uint64_t>(listed->list->size()));
  }
}

}  // namespace

int64_t SelectedRecords::size() const {
  return selection == nullptr ? num_records : selection->num_records();
}

int64_t SelectedRecords::RecordAt(int64_t position, SelectionWalk* walk) const {
  if (selection == nullptr) return begin + position;
  const int64_t record = selection->RecordAt(position, walk);
  return record == kUnknownRecord ? kUnknownRecord : begin + record;
}

void SelectedRecords::Hash(Xxh3Hasher& hasher) const {
  hasher.UpdateU64(static_cast<uint64_t>(num_records));
  hasher.UpdateU64(selection == nullptr ? 0 : selection->fingerprint());
}

bool Selection::NeedsShards(absl::Span<const SelectionStep> steps) {
  return std::any_of(steps.begin(), steps.end(), IsFileStep);
}

absl::Status Selection::ApplyFileStep(absl::Span<const int64_t> records_per_shard,
                                      const SelectionStep& step) {
  if (!files_.has_value()) {
    files_.emplace();
    int64_t begin = 0;
    for (const int64_t size : records_per_shard) {
      files_->shard_begins.push_back(begin);
      files_->sizes.push_back(size);
      begin += size;
    }
  }
  if (const auto* shard = std::get_if<ShardFiles>(&step)) {
    SYSTOLE_RETURN_IF_ERROR(CheckPart("auto_shard", shard->count, shard->index));
    const auto num_files = static_cast<int64_t>(files_->sizes.size());
    if (num_files < shard->count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "auto_shard has policy: FILE and count: ", shard->count, ", but the dataset has only ",
          num_files, " shards; want at least one for each, or policy: DATA"));
    }
    std::vector<int64_t> begins;
    std::vector<int64_t> sizes;
    for (int64_t i = shard->index; i < num_files; i += shard->count) {
      begins.push_back(files_->shard_begins[static_cast<size_t>(i)]);
      sizes.push_back(files_->sizes[static_cast<size_t>(i)]);
    }
    files_->shard_begins = std::move(begins);
    files_->sizes = std::move(sizes);
    return absl::OkStatus();
  }
  const auto& interleave = std::get<InterleaveFiles>(step);
  if (interleave.cycle_length < 1 || interleave.cycle_length > kMaxCycleLength) {
    return absl::InvalidArgumentError(absl::StrCat(
        "interleave.cycle_length is ", interleave.cycle_length, ", want 1 to ", kMaxCycleLength));
  }
  if (interleave.block_length < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("interleave.block_length is ", interleave.block_length, ", want 1 or more"));
  }
  files_->interleave.emplace(files_->sizes, interleave.cycle_length, interleave.block_length);
  return absl::OkStatus();
}

absl::Status Selection::ApplyRecordStep(const SelectionStep& step) {
  if (const auto* skip = std::get_if<SkipRecords>(&step)) {
    if (skip->count < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("skip is ", skip->count, ", want 0 or more records"));
    }
    const int64_t skipped = std::min(skip->count, num_records_);
    begin_ += skipped * stride_;
    num_records_ -= skipped;
  } else if (const auto* take = std::get_if<TakeRecords>(&step)) {
    if (take->count < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("take is ", take->count, ", want 0 or more records"));
    }
    num_records_ = std::min(num_records_, take->count);
  } else if (const auto* listed = std::get_if<ListedRecords>(&step)) {
    SYSTOLE_CHECK(listed->list->num_positions() == num_records_);
    filters_.push_back({.begin = begin_, .stride = stride_, .list = listed->list});
    begin_ = 0;
    stride_ = 1;
    num_records_ = listed->list->size();
  } else {
    const auto& shard = std::get<ShardRecords>(step);
    SYSTOLE_RETURN_IF_ERROR(CheckPart("shard", shard.count, shard.index));
    if (shard.index >= num_records_) {
      num_records_ = 0;
    } else {
      num_records_ = (num_records_ - shard.index - 1) / shard.count + 1;
      begin_ += shard.index * stride_;
      // The stride of a single record does not matter, and the product might overflow.
      stride_ = num_records_ == 1 ? 1 : stride_ * shard.count;
    }
  }
  return absl::OkStatus();
}

absl::Status Selection::ApplySteps(absl::Span<const int64_t> records_per_shard,
                                   absl::Span<const SelectionStep> steps, NoRecords no_records,
                                   Xxh3Hasher& hasher) {
  if (steps.size() > kMaxSelectionSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("select has ", steps.size(), " steps, want at most ", kMaxSelectionSteps));
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const SelectionStep& step = steps[i];
    HashStep(step, hasher);
    absl::Status applied;
    if (!IsFileStep(step)) {
      applied = ApplyRecordStep(step);
    } else if (members_.has_value()) {
      applied = absl::InvalidArgumentError(
          "takes whole shards, but a member has a `select` of its own; let each member select its "
          "shards");
    } else if (i > 0 && !(i == 1 && std::holds_alternative<ShardFiles>(steps[0]) &&
                          std::holds_alternative<InterleaveFiles>(step))) {
      applied = absl::InvalidArgumentError(
          "takes whole shards, so it must be the first step; only an interleave may be the second, "
          "after auto_shard with policy: FILE");
    } else {
      applied = ApplyFileStep(records_per_shard, step);
      num_records_ = std::accumulate(files_->sizes.begin(), files_->sizes.end(), int64_t{0});
    }
    if (!applied.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("select[", i, "] ", applied.message()));
    }
    if (num_records_ == 0 && no_records == NoRecords::kRefused) {
      return absl::InvalidArgumentError(absl::StrCat("select[", i, "] leaves no record; ",
                                                     std::holds_alternative<ListedRecords>(step)
                                                         ? "none of the records meets the condition"
                                                         : "take more, skip less, or split less"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Selection> Selection::Create(absl::Span<const int64_t> records_per_shard,
                                            absl::Span<const SelectionStep> steps,
                                            NoRecords no_records) {
  Selection selection;
  Xxh3Hasher hasher;
  selection.num_records_ =
      std::accumulate(records_per_shard.begin(), records_per_shard.end(), int64_t{0});
  selection.num_dataset_records_ = selection.num_records_;
  SYSTOLE_RETURN_IF_ERROR(selection.ApplySteps(records_per_shard, steps, no_records, hasher));
  if (selection.files_.has_value() && !selection.files_->interleave.has_value()) {
    SYSTOLE_ASSIGN_OR_RETURN(selection.files_->map, ShardMap::Create(selection.files_->sizes));
  }
  selection.fingerprint_ = hasher.Digest64();
  return selection;
}

absl::StatusOr<Selection> Selection::Concatenate(std::vector<SelectedRecords> members,
                                                 absl::Span<const SelectionStep> steps) {
  Selection selection;
  Xxh3Hasher hasher;
  hasher.Update("systole concatenation 1");
  std::vector<int64_t> sizes;
  for (const SelectedRecords& member : members) {
    sizes.push_back(member.size());
    member.Hash(hasher);
  }
  SYSTOLE_ASSIGN_OR_RETURN(ShardMap map, ShardMap::Create(sizes));
  selection.num_records_ = map.num_records();
  if (selection.num_records_ == 0) {
    return absl::InvalidArgumentError(
        "the members of concatenation select no record; want at least one in all");
  }
  selection.members_ = {.map = std::move(map), .records = std::move(members)};
  SYSTOLE_RETURN_IF_ERROR(selection.ApplySteps({}, steps, NoRecords::kRefused, hasher));
  selection.fingerprint_ = hasher.Digest64();
  return selection;
}

int64_t Selection::RecordAt(int64_t position, SelectionWalk* walk) const {
  SYSTOLE_CHECK(position >= 0 && position < num_records_);
  int64_t at = begin_ + position * stride_;
  for (auto filter = filters_.rbegin(); filter != filters_.rend(); ++filter) {
    if (!filter->list->is_known()) return kUnknownRecord;
    at = filter->begin + filter->list->At(at) * filter->stride;
  }
  return BaseRecordAt(at, walk);
}

bool Selection::is_whole() const {
  return filters_.empty() && begin_ == 0 && stride_ == 1 && !files_.has_value() &&
         !members_.has_value() && num_records_ == num_dataset_records_;
}

int64_t Selection::BaseRecordAt(int64_t at, SelectionWalk* walk) const {
  if (members_.has_value()) {
    const ShardPlace place = members_->map.Find(at);
    const auto member = static_cast<size_t>(place.shard);
    if (walk != nullptr) walk->members.resize(members_->records.size());
    return members_->records[member].RecordAt(place.index,
                                              walk == nullptr ? nullptr : &walk->members[member]);
  }
  if (!files_.has_value()) return at;
  if (files_->interleave.has_value()) {
    const Interleave::At place = walk == nullptr ? files_->interleave->RecordAt(at)
                                                 : files_->interleave->RecordAt(at, walk->round);
    return files_->shard_begins[static_cast<size_t>(place.file)] + place.index;
  }
  const ShardPlace place = files_->map->Find(at);
  return files_->shard_begins[static_cast<size_t>(place.shard)] + place.index;
}

}  // namespace systole
