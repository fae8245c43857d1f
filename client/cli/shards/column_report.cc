#include "client/cli/shards/column_report.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/column/column_file.h"
#include "core/record/source/index_path.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The files of columns in `folder`, sorted. Empty if the folder is missing or may not be listed.
absl::StatusOr<std::vector<std::string>> ColumnFilesIn(const std::string& folder) {
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(folder));
  absl::StatusOr<std::vector<std::string>> names = store->ListFolder(folder);
  if (absl::IsPermissionDenied(names.status()) || absl::IsNotFound(names.status())) {
    return std::vector<std::string>();
  }
  SYSTOLE_RETURN_IF_ERROR(names.status());
  std::erase_if(*names,
                [](const std::string& name) { return !absl::EndsWith(name, kColumnSuffix); });
  std::sort(names->begin(), names->end());
  return names;
}

absl::StatusOr<Column> ReadColumn(const std::string& file, const ShardSummary& shard) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenStored(file));
  return ReadColumnFile(*source, {.hash = shard.content_hash, .num_records = shard.records},
                        /*feature=*/"");
}

void Add(const Column& column, ColumnSummary& summary) {
  summary.feature = column.feature;
  ++summary.shards;
  summary.records += column.CountPresent();
  summary.damaged += column.CountOf(kDamagedRecord);
  summary.bytes |= column.facts.first_bytes >= 0;
  summary.floats |= column.facts.first_float >= 0;
  summary.int64s |= column.facts.first_int64 >= 0;
  summary.lists |= column.facts.first_long >= 0;
}

std::vector<std::string> KindsOf(const ColumnSummary& column) {
  std::vector<std::string> kinds;
  if (column.bytes) kinds.emplace_back(FeatureKindName(FeatureKind::kBytes));
  if (column.floats) kinds.emplace_back(FeatureKindName(FeatureKind::kFloat));
  if (column.int64s) kinds.emplace_back(FeatureKindName(FeatureKind::kInt64));
  return kinds;
}

}  // namespace

absl::StatusOr<ColumnReport> ReportColumns(absl::Span<const ShardSummary> shards,
                                           absl::string_view index_dir) {
  ColumnReport report;
  std::map<std::string, std::vector<std::string>> files;  // By folder.
  std::map<std::string, ColumnSummary> columns;           // By feature.
  for (const ShardSummary& shard : shards) {
    if (shard.indexed_path.empty()) continue;
    // The folder ends where the base name begins. (The base name is not always the end of `index`:
    // in a web address a query may follow.)
    const std::string index = IndexPath(shard.indexed_path, index_dir);
    const absl::string_view base = BaseName(index);
    const std::string folder = index.substr(0, static_cast<size_t>(base.data() - index.data()));
    const auto [found, is_new] = files.try_emplace(folder);
    if (is_new) {
      SYSTOLE_ASSIGN_OR_RETURN(found->second, ColumnFilesIn(folder));
    }
    const std::string begin = absl::StrCat(base, ".");
    for (auto file = std::lower_bound(
             found->second.begin(), found->second.end(), begin,
             [](const std::string&a, const std::string&b) { return BaseName(a) < b; });
         file != found->second.end() && absl::StartsWith(BaseName(*file), begin); ++file) {
      const absl::StatusOr<Column> column = ReadColumn(*file, shard);
      if (column.ok()) {
        Add(*column, columns[column->feature]);
      } else {
        report.unusable.push_back(absl::StrCat(ForeignText(ShownName(*file)), ": ",
                                               ForeignText(column.status().message())));
      }
    }
  }
  for (auto& [feature, summary] : columns) report.columns.push_back(std::move(summary));
  return report;
}

std::string ColumnsAsText(const ColumnReport& report, size_t num_shards) {
  std::string text;
  if (!report.columns.empty()) text = "columns, for `where`:\n";
  for (const ColumnSummary& column : report.columns) {
    absl::StrAppendFormat(&text, "  %-12s %-7s in %d records", ForeignName(column.feature),
                          absl::StrJoin(KindsOf(column), "+"), column.records);
    if (column.lists) absl::StrAppend(&text, "  lists");
    if (column.damaged > 0) absl::StrAppend(&text, "  ", column.damaged, " damaged");
    const int64_t lacking = static_cast<int64_t>(num_shards) - column.shards;
    if (lacking > 0) absl::StrAppend(&text, "  missing in ", lacking, " shards");
    absl::StrAppend(&text, "\n");
  }
  for (const std::string& each : report.unusable) {
    absl::StrAppend(&text, "  ", each, "; `systole index --columns` makes it anew\n");
  }
  return text;
}

void AppendColumns(const ColumnReport& report, JsonWriter& json) {
  json.Key("columns").BeginArray();
  for (const ColumnSummary& column : report.columns) {
    json.BeginObject().Field("feature", ForeignName(column.feature)).Key("kinds").BeginArray();
    for (const std::string& kind : KindsOf(column)) json.String(kind);
    json.EndArray().Field("lists", column.lists).Field("shards", column.shards);
    json.Field("records", column.records).Field("damaged", column.damaged).EndObject();
  }
  json.EndArray().Key("unusable_columns").BeginArray();
  for (const std::string& each : report.unusable) json.String(each);
  json.EndArray();
}

}  // namespace systole
