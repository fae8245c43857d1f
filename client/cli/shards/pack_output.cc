#include "client/cli/shards/pack_output.h"

#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/record/images/class_labels.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/local/file_sink.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

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
  // A sink that is dropped leaves nothing. In a folder of this machine the file may be there, and
  // the folder need not be.
  if (!output.is_local_) SYSTOLE_RETURN_IF_ERROR(CreateStored(output.manifest_path_).status());
  return output;
}

absl::Status PackOutput::WriteWhole(const std::string& path, absl::string_view text) const {
  return is_local_ ? WriteFileAtomically(path, text) : PutStored(path, text);
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
  if (!there.ok() && !IsAbsent(there.status(), labels_path_)) return there.status();
  if (is_local_ || there.ok()) return absl::OkStatus();
  SYSTOLE_RETURN_IF_ERROR(WriteWhole(labels_path_, labels_));
  wrote_labels_ = true;
  return absl::OkStatus();
}

absl::Status PackOutput::MakeRoomFor(const std::vector<std::string>& shards) {
  if (is_local_) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) {
      return absl::PermissionDeniedError(
          absl::StrCat("cannot make the folder ", folder_, ": ", error.message()));
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

absl::Status PackOutput::Finish(absl::Span<const ShardCount> shards) const {
  if (!wrote_labels_) SYSTOLE_RETURN_IF_ERROR(WriteWhole(labels_path_, labels_));
  return WriteWhole(manifest_path_, ManifestText(shards));
}

absl::Status PackOutput::Undo(const absl::Status& error,
                              absl::Span<const ShardCount> shards) const {
  std::vector<std::string> names;
  for (const ShardCount& shard : shards) names.push_back(shard.path);
  if (wrote_labels_) names.push_back(labels_path_);
  std::vector<std::string> left;
  for (const std::string& name : names) {
    const absl::Status removed = RemoveStored(name);
    if (!removed.ok() && !absl::IsNotFound(removed)) left.push_back(ForeignText(ShownName(name)));
  }
  if (left.empty()) return error;
  return absl::Status(error.code(), absl::StrCat(error.message(),
                                                 "; and these files of this run could not be "
                                                 "removed: ",
                                                 absl::StrJoin(left, ", ")));
}

}  // namespace systole
