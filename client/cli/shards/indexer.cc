#include "client/cli/shards/indexer.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/column/shard_columns.h"
#include "core/concurrency/worker_pool.h"
#include "core/interrupt/interrupt.h"
#include "core/record/each_shard.h"
#include "core/record/shard_formats.h"
#include "core/record/source/index_path.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/stored_file.h"

namespace systole {
namespace {

// Removes the unfinished index files of a killed run.
void RemoveLeftoversOf(const std::vector<NamedShard>& shards, const IndexerOptions& options) {
  std::vector<std::string> names;
  for (const NamedShard& each : shards) {
    const std::string index = IndexPathOf(each, options.index_dir);
    names.insert(names.end(), {index, RestartPath(index)});
    for (const std::string& column : options.columns) names.push_back(ColumnPath(index, column));
  }
  RemoveLeftovers(names);
}

// If the index file cannot be written, this is an error, because the index files are the purpose of
// the command. (A server logs a note instead, and goes on.)
absl::StatusOr<IndexedShard> IndexShard(NamedShard each, const IndexerOptions& options,
                                        absl::FunctionRef<void(int64_t files)> progress) {
  ShardOptions how = {.index_dir = options.index_dir,
                      .index_use = options.rebuild ? IndexUse::kRebuild : IndexUse::kKeep,
                      .file_done = [progress](uint64_t /*bytes*/) { progress(1); }};
  if (each.is_group()) {  // A group of files is the only shard, so all threads open its files.
    how.for_each = [&options](int64_t count, absl::FunctionRef<void(int64_t)> work) {
      ParallelFor(options.threads, count, work);
    };
  }
  if (options.list != nullptr) {
    how.listed_state = [&options](absl::string_view file) { return options.list->StateOf(file); };
  }
  const std::string shown = ShownName(each.path);
  const std::string index_path = ShownName(IndexPathOf(each, options.index_dir));
  // A copy for the second try below. A group of files may have many names, so it is not copied and
  // gets no second try.
  const NamedShard again = each.is_group() ? NamedShard() : each;
  absl::StatusOr<std::unique_ptr<RecordSource>> opened = OpenShard(std::move(each), how);
  if (absl::IsFailedPrecondition(opened.status()) && !again.path.empty() &&
      how.listed_state != nullptr) {
    // The shard may have been replaced since it was listed.
    how.listed_state = nullptr;
    opened = OpenShard(again, how);
  }
  SYSTOLE_RETURN_IF_ERROR(opened.status());
  const std::unique_ptr<RecordSource> shard = *std::move(opened);
  SYSTOLE_RETURN_IF_ERROR(shard->CheckHoldsRecords());
  return IndexedShard{.path = shown,
                      .index_path = index_path,
                      .records = shard->num_records(),
                      .bytes = shard->size_bytes(),
                      .damaged = shard->num_damaged(),
                      .first_damaged = FirstDamaged(*shard, kMaxDamagedListed),
                      .note = shard->note(),
                      .known = KnownShardOf(*shard)};
}

}  // namespace

absl::StatusOr<std::vector<IndexedShard>> IndexShards(
    std::vector<std::string> paths, const IndexerOptions& options,
    absl::FunctionRef<void(int64_t files)> progress) {
  if (options.threads < 1) return absl::InvalidArgumentError("want at least 1 thread");
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<NamedShard> shards, GroupShards(std::move(paths)));
  RemoveLeftoversOf(shards, options);
  std::vector<IndexedShard> indexed(shards.size());
  std::atomic<int64_t> finished = 0;
  const absl::Status status = ForEachShard(
      static_cast<int64_t>(shards.size()), options.threads, [&](int64_t number) -> absl::Status {
        const auto i = static_cast<size_t>(number);
        const bool is_group = shards[i].is_group();
        SYSTOLE_ASSIGN_OR_RETURN(indexed[i], IndexShard(std::move(shards[i]), options, progress));
        finished.fetch_add(1, std::memory_order_relaxed);
        if (!is_group) progress(1);
        return absl::OkStatus();
      });
  if (InterruptRequested()) {  // After an interruption `status` may be any error.
    return absl::CancelledError(absl::StrCat("interrupted: ", finished.load(), " of ",
                                             shards.size(),
                                             " shards have an index; index them again to go on"));
  }
  SYSTOLE_RETURN_IF_ERROR(status);
  return indexed;
}

absl::Status IndexFolders(const ShardList& list, const std::vector<IndexedShard>& shards,
                          const std::string& index_dir) {
  std::vector<KnownShard> known;
  for (const IndexedShard& shard : shards) {
    if (shard.known.has_value()) known.push_back(*shard.known);
  }
  return KnownShards::Read(list, index_dir).Keep(known, /*write_index=*/true);
}

}  // namespace systole
