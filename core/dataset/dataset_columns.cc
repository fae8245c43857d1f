#include "core/dataset/dataset_columns.h"

#include <algorithm>
#include <cstddef>
#include <optional>

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

// The error of reading a shard's file of columns. Clients see it, and must not learn the folder of
// the file or its server, which `error` names.
absl::Status CannotRead(const RecordSource& shard, const absl::Status& error) {
  const bool may_pass =
      absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) || absl::IsCancelled(error);
  return absl::Status(may_pass ? error.code() : absl::StatusCode::kFailedPrecondition,
                      absl::StrCat(ShardText(shard), ": its file of columns cannot be read (",
                                   absl::StatusCodeToString(error.code()),
                                   "); check who may read it, or note the columns anew"));
}

// How many shards are looked at at a time, so that their columns take at most some 256 MiB, or are
// those of one shard. Reading a column takes up to 24 bytes a record.
int ShardsAtOnce(absl::Span<const std::shared_ptr<const RecordSource>> shards, size_t features) {
  constexpr int64_t kMostBytes = 256 << 20;
  int64_t most_records = 1;
  for (const auto& shard : shards) most_records = std::max(most_records, shard->num_records());
  const int64_t bytes = 24 * static_cast<int64_t>(std::max<size_t>(features, 1)) * most_records;
  return static_cast<int>(std::clamp<int64_t>(kMostBytes / bytes, 1, kShardsOpenedAtOnce));
}

// `features` as the option of `systole index` takes them.
std::string OptionText(const std::vector<std::string>& features) {
  return absl::StrJoin(features, ",", [](std::string* text, const std::string& feature) {
    absl::StrAppend(text, ForeignName(feature));
  });
}

}  // namespace

std::shared_ptr<const ByteSource> DatasetColumns::UnkeptOf(const RecordSource* shard) const {
  MutexLock lock(mu_);
  const auto found = unkept_.find(shard);
  return found == unkept_.end() ? nullptr : found->second;
}

absl::StatusOr<std::string> DatasetColumns::Note(Shards shards,
                                                 std::vector<std::string> features) const {
  SYSTOLE_ASSIGN_OR_RETURN(features, CheckColumnNames(std::move(features)));
  if (features.empty()) return "";
  std::vector<std::string> notes(shards.size());
  std::vector<int64_t> damaged(shards.size());
  SYSTOLE_RETURN_IF_ERROR(ForEachShard(
      static_cast<int64_t>(shards.size()), kShardsOpenedAtOnce,
      [&](int64_t number) -> absl::Status {
        const auto i = static_cast<size_t>(number);
        const std::shared_ptr<const ByteSource> unkept = UnkeptOf(shards[i].get());
        absl::StatusOr<NotedColumns> made =
            NoteColumns(*shards[i], features,
                        {.index_dir = index_dir_, .write_index = write_index_, .unkept = unkept});
        if (!made.ok()) {
          return WithLogAsReason(
              made.status(),
              absl::StrCat("the columns of ", ShardText(*shards[i]), " cannot be made"));
        }
        NotedColumns noted = *std::move(made);
        notes[i] = std::move(noted.note);
        if (!noted.columns.empty()) damaged[i] = noted.columns[0].CountOf(kDamagedRecord);
        if (noted.unkept == nullptr) return absl::OkStatus();
        MutexLock lock(mu_);
        unkept_[shards[i].get()] = std::move(noted.unkept);
        return absl::OkStatus();
      }));
  std::string note;
  for (size_t i = 0; i < shards.size(); ++i) {
    if (damaged[i] > 0) {
      absl::StrAppend(&notes[i], notes[i].empty() ? "" : "; ", damaged[i],
                      " damaged, which no `where` selects");
    }
    // One shard is told for all, because they mostly have the same note.
    if (note.empty() && !notes[i].empty()) {
      note = absl::StrCat(ShardText(*shards[i]), ": ", notes[i]);
    }
  }
  return note;
}

absl::StatusOr<std::vector<std::vector<uint64_t>>> DatasetColumns::RecordsThatMeet(
    Shards shards, const Condition& condition) const {
  const std::vector<std::string> features = FeaturesOf(condition);
  std::vector<std::vector<uint64_t>> bits(shards.size());
  // facts[f][i] are those of feature f in shard i.
  std::vector<std::vector<ShardColumnFacts>> facts(features.size());
  for (std::vector<ShardColumnFacts>& of_feature : facts) of_feature.resize(shards.size());
  SYSTOLE_RETURN_IF_ERROR(
      ForEachShard(static_cast<int64_t>(shards.size()), ShardsAtOnce(shards, features.size()),
                   [&](int64_t number) -> absl::Status {
                     const auto i = static_cast<size_t>(number);
                     const RecordSource& shard = *shards[i];
                     const std::shared_ptr<const ByteSource> unkept = UnkeptOf(&shard);
                     const absl::StatusOr<std::vector<Column>> columns =
                         ReadShardColumns(shard, index_dir_, unkept.get(), features);
                     if (absl::IsNotFound(columns.status())) {
                       return absl::FailedPreconditionError(absl::StrCat(
                           ShardText(shard), ": ", columns.status().message(),
                           "; run `systole index --columns ", OptionText(features),
                           "` over all shards of the dataset, with the --index-dir of the "
                           "server if it has one. Or name the features in `columns` of the "
                           "server's dataset, and "
                           "restart the server"));
                     }
                     if (!columns.ok()) return CannotRead(shard, columns.status());
                     for (size_t f = 0; f < features.size(); ++f) {
                       facts[f][i] = {.shard = ShardText(shard), .facts = (*columns)[f].facts};
                     }
                     bits[i] = systole::RecordsThatMeet(condition, *columns, shard.num_records());
                     return absl::OkStatus();
                   }));
  for (size_t f = 0; f < features.size(); ++f) {
    SYSTOLE_RETURN_IF_ERROR(CheckComparable(condition, features[f], facts[f]));
  }
  return bits;
}

}  // namespace systole
