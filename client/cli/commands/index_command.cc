// `systole index`: makes index files, with which a server starts without scanning its shards. On
// request it also makes columns. A column is a file with the values of a feature in one shard, by
// which a spec's `where` chooses records. Each index, and almost every column, is written as soon
// as its shard has been read. If a run is interrupted, the next run makes only the files that are
// missing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/console/interrupt.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/console/thread_count.h"
#include "client/cli/shards/indexer.h"
#include "core/column/shard_columns.h"
#include "core/dataset/dataset.h"
#include "core/dataset/dataset_columns.h"
#include "core/interrupt/interrupt.h"
#include "core/json/json_writer.h"
#include "core/plan/note_columns.h"
#include "core/record/each_shard.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

struct Totals {
  int64_t records = 0;
  int64_t damaged = 0;
};

std::string ReportAsJson(const std::vector<IndexedShard>& shards, const Totals& totals,
                         const NotedColumns& columns) {
  JsonWriter json;
  json.BeginObject().Field("records", totals.records).Field("damaged", totals.damaged);
  if (!columns.features.empty()) {
    json.Field("unlisted", columns.damaged).Key("columns").BeginArray();
    for (const NotedColumns::Feature& feature : columns.features) {
      json.BeginObject().Field("feature", ForeignName(feature.name));
      json.Field("records", feature.records).EndObject();
    }
    json.EndArray();
  }
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
    return "Make the index of each shard that has none, and print its number of records";
  }
  std::string example() const override {
    return "systole index 'data/packed/flowers-train-*' --index-dir data/index";
  }

  void Declare(OptionList& options) override {
    options.PositionalList("GLOB", &globs_, "Shards or images: paths or quoted patterns");
    options.Optional("--index-dir", "DIR", &index_dir_,
                     "Folder for the index files, which must exist; default: beside each shard");
    options.Optional("--columns", "FEATURES", &columns_,
                     "Write columns of these features, such as label,width, by which the `where` "
                     "of a spec can choose records; reads all records once");
    options.Flag("--rebuild", &rebuild_, "Make valid index files and columns anew, too");
    options.Optional("--threads", "N", &threads_,
                     "Shards at a time; 0 = one for each processor, and at least 16 if a server "
                     "has the shards");
  }

  absl::Status Run(const Console& console) override {
    std::vector<std::string> columns;
    if (!columns_.empty()) {
      SYSTOLE_ASSIGN_OR_RETURN(columns, CheckColumnNames(absl::StrSplit(columns_, ',')));
    }
    InterruptFlag unwanted;
    const InterruptCallback interrupt(console.interrupt, [&unwanted] { unwanted.Raise(); });
    const InterruptScope scope(unwanted);
    const absl::StatusOr<ShardList> listed = ListShardStates(globs_);
    if (unwanted.is_raised()) {
      return absl::CancelledError("interrupted before any shard was looked at");
    }
    SYSTOLE_RETURN_IF_ERROR(listed.status());
    std::vector<std::string> paths;
    for (const ListedFile& file : listed->shards) paths.push_back(file.name);
    const auto total = static_cast<int64_t>(paths.size());
    SYSTOLE_ASSIGN_OR_RETURN(int threads, ThreadCount(threads_));
    if (threads_ == 0 && IsOnServer(paths.front())) {
      threads = std::max(threads, kShardsOpenedAtOnce);  // Most of the threads wait.
    }
    absl::StatusOr<std::vector<IndexedShard>> shards;
    {
      ProgressBar bar(console, {.label = "indexing", .total = total});
      shards = IndexShards(std::move(paths),
                           {.index_dir = index_dir_,
                            .rebuild = rebuild_,
                            .threads = threads,
                            .columns = columns,
                            .list = &*listed},
                           [&bar](int64_t files) { bar.Add(files); });
    }
    SYSTOLE_RETURN_IF_ERROR(shards.status());
    SYSTOLE_RETURN_IF_ERROR(IndexFolders(*listed, *shards, index_dir_));
    NotedColumns noted;
    if (!columns.empty()) {
      SYSTOLE_ASSIGN_OR_RETURN(noted, NoteColumns(console, columns, threads));
      if (!noted.note.empty()) console.err << noted.note << "\n";
    }
    Totals totals;
    for (const IndexedShard& shard : *shards) {
      if (!shard.note.empty()) console.err << shard.path << ": " << shard.note << "\n";
      totals.records += shard.records;
      totals.damaged += shard.damaged;
    }
    Print(console, *shards, totals, noted);
    if (totals.damaged > 0) {
      return absl::DataLossError(absl::StrCat(
          totals.damaged, totals.damaged == 1 ? " damaged stretch" : " damaged stretches",
          " found; `systole verify` checks the payloads too"));
    }
    if (noted.damaged == 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        noted.damaged, noted.damaged == 1 ? " record is damaged or not an example, and no `where` "
                                            "selects it; `systole verify` names it"
                                          : " records are damaged or not examples, and no `where` "
                                            "selects them; `systole verify` names them"));
  }

 private:
  // Writes the columns of all shards in one call, because a feature is refused only if no shard has
  // it. If a column cannot be written to its file, this command fails. (A server would keep the
  // column in memory.)
  absl::StatusOr<NotedColumns> NoteColumns(const Console& console,
                                           const std::vector<std::string>& columns,
                                           int threads) const {
    SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<Dataset> dataset,
                             Dataset::Open(ForeignName(ShownName(globs_.front())), globs_,
                                           {.index_dir = index_dir_, .write_index = true}));
    ProgressBar bar(console, {.label = "making columns",
                              .total = static_cast<int64_t>(dataset->shards().size())});
    SYSTOLE_ASSIGN_OR_RETURN(
        NotedColumns noted,
        NoteColumnsOf(
            *dataset, columns,
            {.rebuild = rebuild_, .at_once = threads, .shard_done = [&bar] { bar.Add(1); }}));
    if (!noted.kept) return absl::PermissionDeniedError(noted.note);
    return noted;
  }

  static void Print(const Console& console, const std::vector<IndexedShard>& shards,
                    const Totals& totals, const NotedColumns& columns) {
    if (console.json) {
      console.out << ReportAsJson(shards, totals, columns) << "\n";
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
    console.out << shards.size() << " shards, " << totals.records << " records\n";
    for (const NotedColumns::Feature& feature : columns.features) {
      console.out << "column " << ForeignName(feature.name) << ": in " << feature.records
                  << " records\n";
    }
  }

  std::vector<std::string> globs_;
  std::string index_dir_;
  std::string columns_;
  bool rebuild_ = false;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeIndexCommand() { return std::make_unique<IndexCommand>(); }

}  // namespace systole
