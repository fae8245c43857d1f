#include "client/cli/shards/pack_output.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/interrupt/interrupt.h"
#include "core/record/each_shard.h"
#include "core/record/images/class_labels.h"
#include "core/record/source/record_source.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/local/file_sink.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The most files that an error lists.
constexpr size_t kMostNamed = 10;

bool IsGoneAfter(const absl::Status& removed) { return removed.ok() || absl::IsNotFound(removed); }

std::string FolderOf(const std::string& prefix) {
  const size_t slash = prefix.rfind('/');
  return slash == std::string::npos ? "./" : prefix.substr(0, slash + 1);
}

}  // namespace

PackOutput::PackOutput(const std::string& prefix)
    : prefix_(prefix),
      folder_(FolderOf(prefix)),
      is_local_(SchemeOf(prefix).empty()),
      labels_path_(folder_ + kLabelsFileName),
      manifest_path_(prefix + kManifestSuffix) {}

absl::StatusOr<PackOutput> PackOutput::Create(const std::string& prefix) {
  PackOutput output(prefix);
  // This only checks that the store can be written: a sink that is dropped leaves nothing. In a
  // folder of this machine the check would not work, because the file may be there, and the folder
  // need not be.
  if (!output.is_local_) SYSTOLE_RETURN_IF_ERROR(CreateStored(output.manifest_path_).status());
  return output;
}

bool PackOutput::MayBeThere(const absl::Status& closed) {
  return closed.ok() || absl::IsUnavailable(closed) || absl::IsDeadlineExceeded(closed) ||
         absl::IsCancelled(closed);
}

absl::Status PackOutput::WriteWhole(const std::string& path, absl::string_view text,
                                    bool& may_be_there) const {
  if (is_local_) return WriteFileAtomically(path, text);
  const absl::Status written = PutStored(path, text);
  may_be_there = MayBeThere(written);
  return written;
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
  // A file that may not be read (IsAbsent) may belong to another user, so it is not replaced.
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  if (is_local_ || there.ok()) return absl::OkStatus();
  return WriteWhole(labels_path_, labels_, wrote_labels_);
}

absl::Status PackOutput::MakeRoomFor(const std::vector<std::string>& shards) {
  if (is_local_) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) {
      return absl::PermissionDeniedError(absl::StrCat(
          "cannot make the folder ", ForeignText(ShownName(folder_)), ": ", error.message()));
    }
  }
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(folder_));
  SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> there, store->ListFolder(folder_));
  const absl::string_view base = BaseName(prefix_);
  std::set<absl::string_view> ours;
  for (const std::string& shard : shards) ours.insert(BaseName(shard));
  for (const std::string& path : there) {
    const absl::string_view name = BaseName(path);
    const bool of_prefix = absl::StartsWith(name, absl::StrCat(base, "-train-")) ||
                           absl::StartsWith(name, absl::StrCat(base, "-validation-"));
    if (of_prefix && absl::EndsWith(name, ".tfrecord") && !ours.contains(name)) {
      return absl::AlreadyExistsError(
          absl::StrCat(ForeignText(ShownName(path)),
                       " is left from another run and would be taken for a part of this set; "
                       "remove it or choose another prefix"));
    }
  }
  RemoveLeftovers(shards);
  RemoveStored(manifest_path_).IgnoreError();  // There may be none.
  return absl::OkStatus();
}

absl::StatusOr<RecordWriter> PackOutput::CreateShard(const std::string& path,
                                                     Compression compression) const {
  if (is_local_) return RecordWriter::Create(path, compression);
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<ByteSink> sink, CreateStored(path));
  return RecordWriter::Create(std::move(sink), compression);
}

absl::Status PackOutput::Finish(absl::Span<const ShardCount> shards) {
  if (!wrote_labels_) {
    bool is_there = false;  // It was there before this run, so it stays.
    SYSTOLE_RETURN_IF_ERROR(WriteWhole(labels_path_, labels_, is_there));
  }
  return WriteWhole(manifest_path_, ManifestText(shards), wrote_manifest_);
}

absl::StatusOr<bool> PackOutput::IsAloneInFolder(absl::Span<const std::string> ours) const {
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(folder_));
  SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> there, store->ListFolder(folder_));
  std::set<absl::string_view> known;
  for (const std::string& path : ours) known.insert(BaseName(path));
  return std::all_of(there.begin(), there.end(), [&](const std::string& path) {
    return known.contains(BaseName(path)) ||
           !(absl::EndsWith(path, ".tfrecord") || absl::EndsWith(path, kManifestSuffix));
  });
}

absl::Status PackOutput::Undo(const absl::Status& error,
                              absl::Span<const ShardCount> shards) const {
  const InterruptFlag never;
  const InterruptScope scope(never);
  std::vector<std::string> names;
  for (const ShardCount& shard : shards) names.push_back(shard.path);
  if (wrote_manifest_) names.push_back(manifest_path_);
  std::vector<char> removed(names.size());  // Not vector<bool>: threads write neighbours.
  const absl::Status outage = ForEachShard(
      static_cast<int64_t>(names.size()), kShardsOpenedAtOnce, [&](int64_t i) -> absl::Status {
        const absl::Status status = RemoveStored(names[i]);
        removed[i] = IsGoneAfter(status);
        // Without the permission for one file, another may still be removed.
        return IsOutage(status) && !absl::IsPermissionDenied(status) ? status : absl::OkStatus();
      });
  std::vector<std::string> left;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!removed[i]) left.push_back(ForeignText(ShownName(names[i])));
  }
  if (wrote_labels_) {
    const absl::StatusOr<bool> is_alone =
        outage.ok() ? IsAloneInFolder(names) : absl::StatusOr<bool>(outage);
    const bool is_needed = is_alone.ok() && !*is_alone;
    // If it is not known whether another run needs the file, the file stays, too.
    const bool is_gone = is_alone.ok() && *is_alone && IsGoneAfter(RemoveStored(labels_path_));
    if (!is_needed && !is_gone) left.push_back(ForeignText(ShownName(labels_path_)));
  }
  if (left.empty()) {
    return absl::IsCancelled(error) ? absl::CancelledError(absl::StrCat(
                                          error.message(), ": no shard of this run is left"))
                                    : error;
  }
  const size_t named = std::min(left.size(), kMostNamed);
  const size_t more = left.size() - named;
  left.resize(named);
  return absl::Status(
      error.code(),
      absl::StrCat(
          error.message(), "; and these files of this run could not be removed, and may be left: ",
          absl::StrJoin(left, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

}  // namespace systole
