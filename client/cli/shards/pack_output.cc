#include "client/cli/shards/pack_output.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/record/images/class_labels.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {

PackOutput::PackOutput(ShardSet set)
    : set_(std::move(set)), labels_path_(set_.folder() + kLabelsFileName) {}

absl::StatusOr<PackOutput> PackOutput::Create(const std::string& prefix) {
  SYSTOLE_ASSIGN_OR_RETURN(ShardSet set, ShardSet::Create(prefix));
  return PackOutput(std::move(set));
}

absl::Status PackOutput::BeginWith(const std::string& labels) {
  labels_ = labels;
  const absl::StatusOr<std::string> there = GetStored(labels_path_, kMaxLabelsBytes);
  if (there.ok() && *there != labels) {
    return absl::AlreadyExistsError(
        absl::StrCat(ForeignText(ShownName(labels_path_)),
                     " names other classes: another data set was packed into this folder. Pack "
                     "into another folder, or remove that file"));
  }
  // A labels.txt that this process may not read is not replaced, because it may belong to another
  // user.
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  if (set_.is_local() || there.ok()) return absl::OkStatus();
  return set_.WriteWhole(labels_path_, labels_, wrote_labels_);
}

absl::Status PackOutput::MakeRoomFor(const std::vector<std::string>& shards) {
  SYSTOLE_RETURN_IF_ERROR(set_.MakeRoomFor(shards, [](absl::string_view rest) {
    return absl::StartsWith(rest, "train-") || absl::StartsWith(rest, "validation-");
  }));
  set_.RemoveOldManifest();
  return absl::OkStatus();
}

absl::Status PackOutput::Finish(absl::Span<const ShardCount> shards) {
  if (!wrote_labels_) {
    bool is_there = false;  // Not used: Undo() removes only a labels.txt that BeginWith() wrote.
    SYSTOLE_RETURN_IF_ERROR(set_.WriteWhole(labels_path_, labels_, is_there));
  }
  return set_.WriteManifest(shards);
}

absl::StatusOr<bool> PackOutput::IsAloneInFolder(absl::Span<const ShardCount> ours) const {
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(set_.folder()));
  SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> there, store->ListFolder(set_.folder()));
  std::set<absl::string_view> known;
  if (set_.wrote_manifest()) known.insert(BaseName(set_.manifest_path()));
  for (const ShardCount& shard : ours) known.insert(BaseName(shard.path));
  return std::all_of(there.begin(), there.end(), [&](const std::string& path) {
    return known.contains(BaseName(path)) ||
           !(absl::EndsWith(path, ".tfrecord") || absl::EndsWith(path, kManifestSuffix));
  });
}

absl::Status PackOutput::Undo(const absl::Status& error,
                              absl::Span<const ShardCount> shards) const {
  const InterruptFlag never;
  const InterruptScope scope(never);
  ShardSet::Leftover left = set_.Remove(shards);
  if (wrote_labels_) {
    const absl::StatusOr<bool> is_alone =
        left.outage.ok() ? IsAloneInFolder(shards) : absl::StatusOr<bool>(left.outage);
    const bool is_needed = is_alone.ok() && !*is_alone;
    // If the folder could not be listed, labels.txt stays, too, because another run may need it.
    const bool is_gone =
        is_alone.ok() && *is_alone && ShardSet::IsGoneAfter(RemoveStored(labels_path_));
    if (!is_needed && !is_gone) left.files.push_back(ForeignText(ShownName(labels_path_)));
  }
  return ShardSet::WithLeft(error, std::move(left.files));
}

}  // namespace systole
