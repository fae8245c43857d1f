#include "core/dataset/open_shards.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/concurrency/worker_pool.h"
#include "core/dataset/known_shards.h"
#include "core/dataset/manifest.h"
#include "core/interrupt/interrupt.h"
#include "core/record/each_shard.h"
#include "core/record/shard_formats.h"
#include "core/record/source/client_reason.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The error of ListShards(), which names patterns.
absl::Status CannotList(const absl::Status& error) {
  return WithClientReason(error, absl::IsNotFound(error) ? "no file matches its pattern"
                                                         : "its files cannot be listed");
}

// The error of OpenShard() for an object on a server. `error` may name the server, the address of a
// redirect, variables, or files of certificate authorities. So clients see another text, which
// names only the shard.
absl::Status CannotOpen(const absl::Status& error, const std::string& path) {
  return WithLogAsReason(
      error, absl::StrCat("shard \"", ForeignName(NameForClients(path)), "\" cannot be opened"));
}

// The error of CompareWithManifests() if any shard is on a server. `error` may name the same things
// as the error in CannotOpen().
absl::Status CannotCompare(const absl::Status& error) {
  return WithLogAsReason(error, "a manifest beside its shards cannot be read");
}

// `status` without the folder of `path`. Clients see these errors, too, and must not learn the
// server's folders. A message has the path either unchanged, or in its form for messages.
absl::Status WithoutFolder(const absl::Status& status, const std::string& path) {
  const std::string shown = ShownName(path);
  const absl::string_view base = BaseName(path);
  return absl::Status(
      status.code(),
      absl::StrReplaceAll(status.message(),
                          {{path, base}, {shown, base}, {ForeignText(shown), ForeignText(base)}}));
}

// `what` is "records" or "bytes". `seen` is the dataset's number of records or bytes.
absl::Status CheckExpected(absl::string_view name, absl::string_view what, int64_t seen,
                           int64_t wanted) {
  if (wanted < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("dataset '", name, "': expect_", what, " is ", wanted, ", want 0 or more"));
  }
  if (wanted == 0 || wanted == seen) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "dataset '", name, "': its shards have ", seen, " ", what, ", expect_", what, " says ",
      wanted, "; check for missing or cut shards (`systole verify`), or set the new number"));
}

// For ShardOptions::for_each.
void ForEachFile(int64_t count, absl::FunctionRef<void(int64_t i)> work) {
  ParallelFor(kShardsOpenedAtOnce, count, work);
}

// Writes the facts of the shards for the next start. If the facts cannot be kept, `note` says why.
void KeepFacts(const KnownShards& known, const OpenedShards& shards, bool write_index,
               std::string& note) {
  std::vector<KnownShard> facts;
  for (const std::unique_ptr<const RecordSource>& shard : shards) {
    std::optional<KnownShard> of = KnownShardOf(*shard);
    if (of.has_value()) facts.push_back(*std::move(of));
  }
  const absl::Status kept = known.Keep(facts, write_index);
  if (kept.ok()) return;
  absl::StrAppend(&note, note.empty() ? "" : "; ",
                  "the next start opens each shard again, because the index of their folder is not "
                  "kept: ",
                  kept.message());
}

}  // namespace

absl::StatusOr<OpenedShards> OpenShards(absl::string_view name,
                                        absl::Span<const std::string> patterns,
                                        const ShardOptions& options,
                                        const ExpectedContent& expected, std::string& note) {
  absl::StatusOr<ShardList> list = ListShardStates(patterns);
  if (!list.ok()) return CannotList(list.status());
  std::vector<std::string> names;
  for (const ListedFile& file : list->shards) names.push_back(file.name);
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<NamedShard> files,
                           GroupShards(std::move(names), options.formats));
  const bool are_files = !files.empty() && !files.front().is_group();
  const KnownShards known = options.index_use == IndexUse::kUse && are_files
                                ? KnownShards::Read(*list, options.index_dir)
                                : KnownShards();
  note = known.note();
  OpenedShards shards(files.size());
  ShardOptions sharing = options;
  if (sharing.chunks == nullptr) sharing.chunks = std::make_shared<ChunkCache>();
  if (sharing.for_each == nullptr) sharing.for_each = ForEachFile;
  // listed_state uses `list`. So it is set only for a group, which is opened in this function. A
  // shard that is a single file may be opened later, when `list` no longer exists.
  if (!are_files) {
    sharing.listed_state = [&list](absl::string_view file) { return list->StateOf(file); };
  }
  SYSTOLE_RETURN_IF_ERROR(ForEachShard(
      static_cast<int64_t>(files.size()), kShardsOpenedAtOnce, [&](int64_t number) -> absl::Status {
        const auto i = static_cast<size_t>(number);
        NamedShard& each = files[i];
        // If `are_files`, files[i] is the file list->shards[i].
        const ShardFacts* const facts = are_files ? known.Find(list->shards[i]) : nullptr;
        absl::StatusOr<std::unique_ptr<RecordSource>> shard = std::unique_ptr<RecordSource>();
        if (facts != nullptr) shard = DeferShard(each.path, *facts, sharing);
        if (shard.ok() && *shard == nullptr) {
          shard = OpenShard(
              {.path = each.path, .format = each.format, .group = std::move(each.group)}, sharing);
        }
        if (!shard.ok()) {
          if (HasClientReason(shard.status())) return shard.status();
          return IsOnServer(each.path) ? CannotOpen(shard.status(), each.path)
                                       : WithoutFolder(shard.status(), each.path);
        }
        shards[i] = *std::move(shard);
        return absl::OkStatus();
      }));
  std::vector<ShardCount> opened;
  ExpectedContent seen;
  size_t opened_shards = 0;
  for (const std::unique_ptr<const RecordSource>& shard : shards) {
    // The comparison with manifests would report a file of another kind as a cut shard, so this
    // check comes first.
    SYSTOLE_RETURN_IF_ERROR(shard->CheckHoldsRecords());
    // Manifests list files of records, and no groups.
    if (!files[opened_shards++].is_group()) {
      opened.push_back({std::string(shard->path()), shard->num_records(), shard->file_bytes()});
    }
    seen.records += shard->num_records();
    seen.bytes += static_cast<int64_t>(shard->file_bytes());
  }
  const absl::StatusOr<std::vector<ShardDifference>> differences =
      CompareWithManifests(patterns, opened, list->folders);
  absl::Status whole = differences.status();
  if (whole.ok()) whole = CheckNoDifferences(*differences);
  if (!whole.ok()) {
    const absl::Status named(whole.code(), absl::StrCat("dataset '", name, "': ", whole.message()));
    const bool may_name_server =
        !differences.ok() && std::any_of(opened.begin(), opened.end(), [](const ShardCount& shard) {
          return IsOnServer(shard.path);
        });
    return may_name_server ? CannotCompare(named) : named;
  }
  SYSTOLE_RETURN_IF_ERROR(CheckExpected(name, "records", seen.records, expected.records));
  SYSTOLE_RETURN_IF_ERROR(CheckExpected(name, "bytes", seen.bytes, expected.bytes));
  if (options.index_use == IndexUse::kUse && are_files && !InterruptRequested()) {
    KeepFacts(known, shards, options.write_index, note);
  }
  return shards;
}

}  // namespace systole
