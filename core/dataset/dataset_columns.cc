#include "core/dataset/dataset_columns.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/column/shard_columns.h"
#include "core/record/each_shard.h"
#include "core/record/source/client_reason.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

std::string ShardText(const RecordSource& shard) {
  return absl::StrCat("shard '", ForeignName(shard.base_name()), "'");
}

// The error for a column of `shard` that cannot be read because of `error`. `error` may name the
// folder or the server of the column's file. Clients see the result, so it must not name them.
absl::Status CannotRead(const RecordSource& shard, const absl::Status& error) {
  const bool may_pass =
      absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) || absl::IsCancelled(error);
  return absl::Status(
      may_pass ? error.code() : absl::StatusCode::kFailedPrecondition,
      absl::StrCat(
          ShardText(shard), ": a column cannot be read (", absl::StatusCodeToString(error.code()),
          "); check that this process may read the column's file, or make the columns anew"));
}

// What Note() found in a shard.
struct OfShard {
  std::vector<ColumnCounts> counts;
  // Columns of features that no record of this shard has. Such a column is kept if another shard
  // has the feature.
  std::vector<std::shared_ptr<const Column>> empty;
  std::string note;
  absl::Status kept;
};

// Whether this error of reading a column means that the column must be made anew.
bool IsLacking(const absl::Status& error) {
  return absl::IsNotFound(error) || absl::IsFailedPrecondition(error) ||
         absl::IsInvalidArgument(error);
}

// The facts of one feature that decide whether its values can be compared. For each kind of value
// (bytes, float, int64, list of several values), only the facts of the first shard that has this
// kind are kept. So the memory does not grow with the number of shards.
class DecidingFacts {
 public:
  void Add(size_t shard, const ColumnFacts& facts) {
    for (int64_t ColumnFacts::*const first :
         {&ColumnFacts::first_bytes, &ColumnFacts::first_float, &ColumnFacts::first_int64,
          &ColumnFacts::first_long}) {
      const auto is_known = [&](const auto& one) { return one.second.*first >= 0; };
      // The entries up to `end` are those of earlier shards.
      const auto end = facts_.lower_bound(shard);
      if (facts.*first >= 0 && std::none_of(facts_.begin(), end, is_known)) facts_[shard] = facts;
    }
  }

  std::vector<ShardColumnFacts> Of(DatasetColumns::Shards shards) const {
    std::vector<ShardColumnFacts> facts;
    for (const auto& [shard, one] : facts_) {
      facts.push_back({.shard = ShardText(*shards[shard]), .facts = one});
    }
    return facts;
  }

 private:
  std::map<size_t, ColumnFacts> facts_;  // By shard.
};

// `features` as one text, in the form of the option --columns of `systole index`.
std::string OptionText(const std::vector<std::string>& features) {
  return absl::StrJoin(features, ",", [](std::string* text, const std::string& feature) {
    absl::StrAppend(text, ForeignName(feature));
  });
}

// The error for a shard that lacks a column. `error` is what reading the column returned.
absl::Status Lacking(const RecordSource& shard, const std::vector<std::string>& features,
                     const absl::Status& error) {
  return absl::FailedPreconditionError(absl::StrCat(
      ShardText(shard), ": ", error.message(), "; run `systole index --columns ",
      OptionText(features),
      "` over all shards of the dataset, with the --index-dir of the server if it has one. Or name "
      "the features in `columns` of the server's dataset, and restart the server"));
}

}  // namespace

int DatasetColumns::ShardsAtOnce(Shards shards, size_t features) {
  constexpr int64_t kMostBytes = 256 << 20;
  int64_t most_records = 1;
  for (const auto& shard : shards) most_records = std::max(most_records, shard->num_records());
  // Each column takes up to 12 bytes for each record. While a column is read or written, 24 more
  // bytes for each record are needed.
  const int64_t bytes_per_record = 12 * (static_cast<int64_t>(features) + 2);
  return static_cast<int>(
      std::clamp<int64_t>(kMostBytes / bytes_per_record / most_records, 1, kShardsOpenedAtOnce));
}

ColumnsInMemory DatasetColumns::InMemory(const RecordSource* shard) const {
  MutexLock lock(mu_);
  const auto found = in_memory_.find(shard);
  return found == in_memory_.end() ? ColumnsInMemory() : found->second;
}

void DatasetColumns::Hold(const RecordSource* shard, std::shared_ptr<const Column> column) const {
  MutexLock lock(mu_);
  in_memory_[shard][column->feature] = std::move(column);
}

absl::Status DatasetColumns::KeepOrHold(const RecordSource& shard,
                                        std::shared_ptr<const Column> column) const {
  absl::Status kept;
  if (!shard.indexed_path().empty()) {
    kept = KeepColumn(shard, *column, index_dir_, write_index_);
    if (kept.ok()) {
      MutexLock lock(mu_);
      const auto found = in_memory_.find(&shard);
      if (found != in_memory_.end()) found->second.erase(column->feature);
      return absl::OkStatus();
    }
  }
  Hold(&shard, std::move(column));
  return kept;
}

absl::StatusOr<NotedColumns> DatasetColumns::Note(Shards shards, std::vector<std::string> features,
                                                  const NoteColumnsOptions& options) const {
  SYSTOLE_ASSIGN_OR_RETURN(features, CheckColumnNames(std::move(features)));
  NotedColumns noted;
  if (features.empty()) return noted;
  std::vector<OfShard> found(shards.size());
  SYSTOLE_RETURN_IF_ERROR(ForEachShard(
      static_cast<int64_t>(shards.size()),
      std::min(options.at_once, ShardsAtOnce(shards, features.size())),
      [&](int64_t number) -> absl::Status {
        const RecordSource& shard = *shards[static_cast<size_t>(number)];
        OfShard& of = found[static_cast<size_t>(number)];
        absl::StatusOr<MadeColumns> made = MakeColumns(
            shard, features,
            {.index_dir = index_dir_, .rebuild = options.rebuild, .in_memory = InMemory(&shard)});
        if (!made.ok()) {
          return WithLogAsReason(
              made.status(), absl::StrCat("the columns of ", ShardText(shard), " cannot be made"));
        }
        of.counts = std::move(made->counts);
        of.note = std::move(made->note);
        for (Column& each : made->columns) {
          auto column = std::make_shared<const Column>(std::move(each));
          if (column->CountPresent() == 0) {
            of.empty.push_back(std::move(column));
          } else {
            of.kept.Update(KeepOrHold(shard, std::move(column)));
          }
        }
        if (options.shard_done != nullptr) options.shard_done();
        return absl::OkStatus();
      }));
  for (size_t f = 0; f < features.size(); ++f) {
    int64_t records = 0;
    for (const OfShard& of : found) records += of.counts[f].present;
    if (records == 0) noted.absent.push_back(features[f]);
    noted.features.push_back({.name = features[f], .records = records});
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    OfShard& of = found[i];
    for (std::shared_ptr<const Column>& column : of.empty) {
      if (std::binary_search(noted.absent.begin(), noted.absent.end(), column->feature)) {
        noted.absent_columns.push_back({.shard = i, .column = std::move(column)});
      } else {
        of.kept.Update(KeepOrHold(*shards[i], std::move(column)));
      }
    }
    if (!of.kept.ok()) {
      noted.kept = false;
      absl::StrAppend(&of.note, of.note.empty() ? "" : "; ",
                      "columns not kept: ", of.kept.message());
    }
    if (const int64_t damaged = of.counts[0].damaged; damaged > 0) {
      noted.damaged += damaged;
      absl::StrAppend(&of.note, of.note.empty() ? "" : "; ", damaged,
                      damaged == 1 ? " damaged record" : " damaged records",
                      ", which no `where` selects");
    }
    // The note of one shard is enough, because most shards have the same note.
    if (noted.note.empty() && !of.note.empty()) {
      noted.note = absl::StrCat(ShardText(*shards[i]), ": ", of.note);
    }
  }
  return noted;
}

void DatasetColumns::Keep(Shards shards, const NotedColumns& noted) const {
  for (const NotedColumns::AbsentColumn& absent : noted.absent_columns) {
    // A column that cannot be kept stays in memory, as in Note().
    KeepOrHold(*shards[absent.shard], absent.column).IgnoreError();
  }
}

absl::StatusOr<std::vector<std::vector<uint64_t>>> DatasetColumns::RecordsThatMeet(
    Shards shards, const Condition& condition, int64_t bytes, std::set<std::string>& found) const {
  const std::vector<std::string> features = FeaturesOf(condition);
  std::vector<std::vector<uint64_t>> bits(shards.size());
  Mutex mu;  // For `facts` and `found`.
  std::map<std::string, DecidingFacts> facts;
  int64_t most_records = 0;
  bool are_far = false;
  for (const auto& shard : shards) {
    most_records = std::max(most_records, shard->num_records());
    are_far = are_far || shard->is_far();
  }
  SYSTOLE_RETURN_IF_ERROR(ForEachShard(
      static_cast<int64_t>(shards.size()), ShardsTestedAtOnce(most_records, are_far, bytes),
      [&](int64_t number) -> absl::Status {
        const auto i = static_cast<size_t>(number);
        const RecordSource& shard = *shards[i];
        const ColumnsInMemory in_memory = InMemory(&shard);
        const auto get = [&](const std::string& feature) -> absl::StatusOr<Column> {
          absl::StatusOr<Column> column = ReadShardColumn(shard, index_dir_, in_memory, feature);
          if (IsLacking(column.status())) {
            return Lacking(shard, features, column.status());
          }
          if (!column.ok()) return CannotRead(shard, column.status());
          const bool is_present = column->CountPresent() > 0;
          MutexLock lock(mu);
          facts[feature].Add(i, column->facts);
          if (is_present) found.insert(feature);
          return column;
        };
        SYSTOLE_ASSIGN_OR_RETURN(bits[i], systole::RecordsThatMeet(condition, get));
        return absl::OkStatus();
      }));
  for (const auto& [feature, deciding] : facts) {
    SYSTOLE_RETURN_IF_ERROR(CheckComparable(condition, feature, deciding.Of(shards)));
  }
  return bits;
}

int ShardsTestedAtOnce(int64_t most_records, bool are_far, int64_t bytes) {
  const int64_t shards = bytes / kTestedRecordBytes / std::max<int64_t>(most_records, 1);
  return static_cast<int>(
      std::clamp<int64_t>(shards, 1, are_far ? kShardsOpenedAtOnce : kNearShardsTestedAtOnce));
}

}  // namespace systole
