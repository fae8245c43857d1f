#include "client/shard_set/shard_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/interrupt/interrupt.h"
#include "core/record/each_shard.h"
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

std::string FolderOf(const std::string& prefix) {
  const size_t slash = prefix.rfind('/');
  return slash == std::string::npos ? "./" : prefix.substr(0, slash + 1);
}

// Removes digits from the beginning of `text`. False if there are fewer than five.
bool ConsumeNumber(absl::string_view& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(end);
  return end >= 5;
}

}  // namespace

std::string NumberedShardPath(absl::string_view prefix, int64_t shard, int64_t shards) {
  return absl::StrFormat("%s-%05d-of-%05d.tfrecord", prefix, shard, shards);
}

bool IsNumberedShard(absl::string_view rest) {
  return ConsumeNumber(rest) && absl::ConsumePrefix(&rest, "-of-") && ConsumeNumber(rest) &&
         rest == ".tfrecord";
}

bool ShardSet::IsGoneAfter(const absl::Status& removed) {
  return removed.ok() || absl::IsNotFound(removed);
}

ShardSet::ShardSet(const std::string& prefix)
    : prefix_(prefix),
      folder_(FolderOf(prefix)),
      is_local_(SchemeOf(prefix).empty()),
      manifest_path_(prefix + kManifestSuffix) {}

absl::StatusOr<ShardSet> ShardSet::Create(const std::string& prefix) {
  ShardSet set(prefix);
  // Checks that the store can be written. The sink is destroyed at once, without a Close(), so no
  // object is made. A folder of this machine cannot be checked like this: its manifest may exist
  // already, or the folder may be missing.
  if (!set.is_local_) SYSTOLE_RETURN_IF_ERROR(CreateStored(set.manifest_path_).status());
  return set;
}

bool ShardSet::MayBeThere(const absl::Status& closed) {
  return closed.ok() || absl::IsUnavailable(closed) || absl::IsDeadlineExceeded(closed) ||
         absl::IsCancelled(closed);
}

absl::Status ShardSet::WriteWhole(const std::string& path, absl::string_view text,
                                  bool& may_be_there) const {
  if (is_local_) return WriteFileAtomically(path, text);
  const absl::Status written = PutStored(path, text);
  may_be_there = MayBeThere(written);
  return written;
}

absl::Status ShardSet::MakeRoomFor(const std::vector<std::string>& shards,
                                   absl::FunctionRef<bool(absl::string_view rest)> of_set) const {
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
  const std::string begin = absl::StrCat(BaseName(prefix_), "-");
  std::set<absl::string_view> ours;
  for (const std::string& shard : shards) ours.insert(BaseName(shard));
  for (const std::string& path : there) {
    const absl::string_view name = BaseName(path);
    if (absl::StartsWith(name, begin) && absl::EndsWith(name, ".tfrecord") &&
        of_set(name.substr(begin.size())) && !ours.contains(name)) {
      return absl::AlreadyExistsError(
          absl::StrCat(ForeignText(ShownName(path)),
                       " is left from another run and would be taken for a part of this set; "
                       "remove it or choose another prefix"));
    }
  }
  RemoveLeftovers(shards);
  return absl::OkStatus();
}

void ShardSet::RemoveOldManifest() const {
  RemoveStored(manifest_path_).IgnoreError();  // There may be no manifest.
}

absl::StatusOr<RecordWriter> ShardSet::CreateShard(const std::string& path,
                                                   Compression compression) const {
  if (is_local_) return RecordWriter::Create(path, compression);
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<ByteSink> sink, CreateStored(path));
  return RecordWriter::Create(std::move(sink), compression);
}

absl::Status ShardSet::WriteManifest(absl::Span<const ShardCount> shards) {
  return WriteWhole(manifest_path_, ManifestText(shards), wrote_manifest_);
}

ShardSet::Leftover ShardSet::Remove(absl::Span<const ShardCount> shards) const {
  const InterruptFlag never;
  const InterruptScope scope(never);
  std::vector<std::string> names;
  for (const ShardCount& shard : shards) names.push_back(shard.path);
  if (wrote_manifest_) names.push_back(manifest_path_);
  std::vector<char> removed(names.size());  // Unlike vector<bool>, safe for threads.
  Leftover left;
  left.outage = ForEachShard(
      static_cast<int64_t>(names.size()), kShardsOpenedAtOnce, [&](int64_t i) -> absl::Status {
        const absl::Status status = RemoveStored(names[i]);
        removed[i] = IsGoneAfter(status);
        // A permission may be missing for this file alone, so the other files are still tried.
        return IsOutage(status) && !absl::IsPermissionDenied(status) ? status : absl::OkStatus();
      });
  for (size_t i = 0; i < names.size(); ++i) {
    if (!removed[i]) left.files.push_back(ForeignText(ShownName(names[i])));
  }
  return left;
}

absl::Status ShardSet::WithLeft(const absl::Status& error, std::vector<std::string> left) {
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
