// `systole index`: builds the index files that let a server start without scanning.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/console/thread_count.h"
#include "client/cli/shards/shard_inspector.h"
#include "core/concurrency/worker_pool.h"
#include "core/json/json_writer.h"
#include "core/record/shard_formats.h"
#include "core/record/source/index_path.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/stored_file.h"

namespace systole {
namespace {

struct IndexedShard {
  std::string path;        // As it may be shown.
  std::string index_path;  // As it may be shown.
  int64_t records = 0;
  uint64_t bytes = 0;
  int64_t damaged = 0;
  std::vector<PlacedDamage> first_damaged;
  std::string note;
};

std::string ReportAsJson(const std::vector<IndexedShard>& shards, int64_t records,
                         int64_t damaged) {
  JsonWriter json;
  json.BeginObject().Field("records", records).Field("damaged", damaged);
  json.Key("shards").BeginArray();
  for (const IndexedShard& shard : shards) {
    json.BeginObject().Field("path", shard.path).Field("index", shard.index_path);
    json.Field("records", shard.records).Field("damaged", shard.damaged);
    json.Field("bytes", shard.bytes).Field("note", shard.note).EndObject();
  }
  return json.EndArray().EndObject().text();
}

class IndexCommand final : public Command {
 public:
  std::string name() const override { return "index"; }
  std::string summary() const override {
    return "Rebuild the index of each shard and print its number of records";
  }
  std::string example() const override {
    return "systole index 'data/packed/flowers-train-*' --index-dir data/index";
  }

  void Declare(OptionList& options) override {
    options.PositionalList("GLOB", &globs_, "Shards or images: paths or quoted patterns");
    options.Optional("--index-dir", "DIR", &index_dir_,
                     "Folder for the index files, which must exist; default: beside each shard");
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(std::vector<std::string> paths, ListShards(globs_));
    SYSTOLE_ASSIGN_OR_RETURN(const int threads, ThreadCount(0));
    const auto total = static_cast<int64_t>(paths.size());
    SYSTOLE_ASSIGN_OR_RETURN(std::vector<NamedShard> files, GroupShards(std::move(paths)));
    RemoveLeftoversOf(files);
    WorkerPool pool(threads);
    std::vector<IndexedShard> shards;
    int64_t records = 0;
    int64_t damaged = 0;
    {
      ProgressBar bar(console, {.label = "indexing", .total = total});
      for (NamedShard& each : files) {
        const std::string shown = ShownName(each.path);
        const std::string index_path = ShownName(IndexPathOf(each, index_dir_));
        const bool is_group = each.is_group();
        // A server that cannot write an index file logs a note and goes on. Here that is an error,
        // because the index files are the purpose of the command.
        SYSTOLE_ASSIGN_OR_RETURN(
            const std::unique_ptr<RecordSource> shard,
            OpenShard(std::move(each),
                      {.index_dir = index_dir_,
                       .index_use = IndexUse::kRebuild,
                       .for_each =
                           [&pool](int64_t count, absl::FunctionRef<void(int64_t)> work) {
                             ParallelFor(pool, count, work);
                           },
                       .file_done = [&bar](uint64_t /*bytes*/) { bar.Add(1); }}));
        SYSTOLE_RETURN_IF_ERROR(shard->CheckHoldsRecords());
        if (!shard->note().empty()) console.err << shown << ": " << shard->note() << "\n";
        records += shard->num_records();
        damaged += shard->num_damaged();
        shards.push_back({.path = shown,
                          .index_path = index_path,
                          .records = shard->num_records(),
                          .bytes = shard->size_bytes(),
                          .damaged = shard->num_damaged(),
                          .first_damaged = FirstDamaged(*shard, kMaxDamagedListed),
                          .note = shard->note()});
        if (!is_group) bar.Add(1);
      }
    }
    Print(console, shards, records, damaged);
    if (damaged == 0) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(damaged, damaged == 1 ? " damaged stretch" : " damaged stretches",
                     " found; `systole verify` checks the payloads too"));
  }

 private:
  // Removes the unfinished index files of a killed run.
  void RemoveLeftoversOf(const std::vector<NamedShard>& files) const {
    std::vector<std::string> names;
    for (const NamedShard& each : files) {
      names.push_back(IndexPathOf(each, index_dir_));
      names.push_back(RestartPath(names.back()));
    }
    RemoveLeftovers(names);
  }

  static void Print(const Console& console, const std::vector<IndexedShard>& shards,
                    int64_t records, int64_t damaged) {
    if (console.json) {
      console.out << ReportAsJson(shards, records, damaged) << "\n";
      return;
    }
    for (const IndexedShard& shard : shards) {
      console.out << shard.path << "  " << shard.records << " records\n";
      for (const PlacedDamage& bad : shard.first_damaged) {
        console.out << shard.path << ": " << bad.place << ": " << bad.cause << "\n";
      }
      const int64_t unlisted = shard.damaged - static_cast<int64_t>(shard.first_damaged.size());
      if (unlisted > 0) console.out << shard.path << ": " << unlisted << " more are damaged\n";
    }
    console.out << shards.size() << " shards, " << records << " records\n";
  }

  std::vector<std::string> globs_;
  std::string index_dir_;
};

}  // namespace

std::unique_ptr<Command> MakeIndexCommand() { return std::make_unique<IndexCommand>(); }

}  // namespace systole
