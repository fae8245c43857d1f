// `systole inspect`: shows what is in shards or in one record.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/feed_flags.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/console/thread_count.h"
#include "client/cli/shards/column_report.h"
#include "client/cli/shards/fetch_report.h"
#include "client/cli/shards/shard_differences.h"
#include "client/cli/shards/shard_inspector.h"
#include "core/json/json_writer.h"
#include "core/spec/order_spec.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/text/foreign_text.h"
#include "core/text/size_text.h"

namespace systole {
namespace {

// "3" or "160..240".
std::string ToText(const Range& range) {
  if (range.least == range.most) return absl::StrCat(range.least);
  return absl::StrCat(range.least, "..", range.most);
}

void AddRange(JsonWriter& json, absl::string_view name, const Range& range) {
  json.Field(absl::StrCat(name, "_min"), range.least).Field(absl::StrCat(name, "_max"), range.most);
}

void AppendEpoch(const EpochBytes& epoch, JsonWriter& json) {
  json.Field("first_bytes", epoch.first_bytes).Field("later_bytes", epoch.later_bytes);
  json.Field("first_requests", epoch.first_requests).Field("held_bytes", epoch.held_bytes);
  json.Field("exact", epoch.exact);
}

void AppendFetches(const FetchReport& fetches, JsonWriter& json) {
  json.Key("epoch").BeginObject().Field("set_bytes", fetches.epoch.set_bytes);
  json.Field("keeps_all", fetches.epoch.keeps_all);
  AppendEpoch(fetches.epoch, json);
  if (fetches.window.has_value()) {
    json.Key("window").BeginObject().Field("block_records", fetches.window->block_records);
    json.Field("window_records", fetches.window->window_records);
    json.Field("read_budget", fetches.window->memory_bytes);
    AppendEpoch(fetches.window->epoch, json);
    json.EndObject();
  }
  json.EndObject();
}

// One dataset's shards, and what was found in them.
struct Inspected {
  std::string name;  // Empty: the command line names no dataset.
  std::vector<std::string> globs;
  InspectReport report = {};
  ColumnReport columns = {};
  std::vector<ShardDifference> differences = {};
};

// Adds the fields of a dataset to the JSON object that is open.
void AppendReport(const Inspected& inspected, JsonWriter& json) {
  const InspectReport& report = inspected.report;
  if (!inspected.name.empty()) json.Field("name", ForeignName(inspected.name));
  json.Field("records", report.records).Field("bytes", report.bytes);
  json.Key("shards").BeginArray();
  for (const ShardSummary& shard : report.shards) {
    json.BeginObject().Field("path", ShownName(shard.path)).Field("records", shard.records);
    json.Field("bytes", shard.bytes).Field("damaged", shard.damaged);
    json.Key("first_damaged").BeginArray();
    for (const PlacedDamage& bad : shard.first_damaged) {
      json.BeginObject().Field("record", bad.record).Field("offset", bad.offset);
      if (!bad.file.empty()) json.Field("file", ForeignName(bad.file));
      json.Field("cause", bad.cause).EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().Field("sampled", report.sampled).Field("no_example", report.no_example);
  json.Field("unreadable", report.unreadable).Key("features").BeginArray();
  for (const FeatureSummary& feature : report.features) {
    json.BeginObject().Field("name", feature.name);
    json.Field("kind", FeatureKindName(feature.kind)).Field("records", feature.records);
    json.Field("other_kind", feature.other_kind);
    AddRange(json, "values", feature.values);
    if (feature.kind == FeatureKind::kBytes) {
      AddRange(json, "bytes", feature.bytes);
      json.Field("jpegs", feature.jpegs);
    }
    if (feature.jpegs > 0) {
      AddRange(json, "width", feature.width);
      AddRange(json, "height", feature.height);
    }
    json.EndObject();
  }
  json.EndArray();
  AppendColumns(inspected.columns, json);
  AppendShardDifferences(inspected.differences, json);
}

// If the datasets have names, the JSON object has a list of them. Otherwise there is one dataset,
// and the object has its fields.
std::string AsJson(absl::Span<const Inspected> datasets,
                   const std::optional<FetchReport>& fetches) {
  JsonWriter json;
  json.BeginObject();
  if (datasets.front().name.empty()) {
    AppendReport(datasets.front(), json);
  } else {
    json.Key("datasets").BeginArray();
    for (const Inspected& dataset : datasets) {
      json.BeginObject();
      AppendReport(dataset, json);
      json.EndObject();
    }
    json.EndArray();
  }
  if (fetches.has_value()) AppendFetches(*fetches, json);
  return json.EndObject().text();
}

std::string ReportAsText(const InspectReport& report) {
  std::string text;
  for (const ShardSummary& shard : report.shards) {
    absl::StrAppend(&text, ShownName(shard.path), "  ", shard.records, " records  ", shard.bytes,
                    " bytes");
    if (shard.damaged > 0) {
      absl::StrAppend(&text, "  ", shard.damaged, report.is_group ? "" : " or more", " damaged");
    }
    absl::StrAppend(&text, "\n");
    for (const PlacedDamage& bad : shard.first_damaged) {
      absl::StrAppend(&text, "  ", bad.place, ": ", bad.cause, "\n");
    }
  }
  absl::StrAppend(&text, report.shards.size(), " shards, ", report.records, " records, ",
                  report.bytes, " bytes\n");
  if (report.sampled > 0) {
    absl::StrAppend(&text, "features of ", report.sampled, " records looked at:\n");
  }
  for (const FeatureSummary& feature : report.features) {
    absl::StrAppendFormat(&text, "  %-12s %-7s count %s", ForeignName(feature.name),
                          FeatureKindName(feature.kind), ToText(feature.values));
    if (feature.kind == FeatureKind::kBytes && feature.values.most > 0) {
      absl::StrAppend(&text, "  bytes ", ToText(feature.bytes));
    }
    if (feature.jpegs > 0) {
      absl::StrAppend(&text, "  JPEG ", ToText(feature.width), " x ", ToText(feature.height));
    }
    const int64_t missing = report.sampled - report.no_example - report.unreadable -
                            feature.records - feature.other_kind;
    if (missing > 0) absl::StrAppend(&text, "  missing in ", missing);
    if (feature.other_kind > 0) absl::StrAppend(&text, "  of another kind in ", feature.other_kind);
    absl::StrAppend(&text, "\n");
  }
  if (report.no_example > 0) {
    absl::StrAppend(&text, "  ", report.no_example, " are no ", report.example_name, "\n");
  }
  if (report.unreadable > 0) {
    absl::StrAppend(&text, "  ", report.unreadable, " are damaged; `systole verify` names them\n");
  }
  return text;
}

// The datasets that the spec names, in its order, with the globs of each. If the spec has a mixture
// or a zip, each glob must be NAME=GLOB. Otherwise all globs belong to one dataset, whose name is
// left empty.
absl::StatusOr<std::vector<Inspected>> DatasetsOfGlobs(const v1::FeedSpec& spec,
                                                       const std::vector<std::string>& globs) {
  if (MembersOf(spec).empty() && spec.zip().empty()) return {{{.name = "", .globs = globs}}};
  std::vector<Inspected> datasets;
  const auto find = [&](absl::string_view name) {
    return std::find_if(datasets.begin(), datasets.end(),
                        [&](const Inspected& dataset) { return dataset.name == name; });
  };
  std::vector<std::string> wanted;
  for (const std::string& name : DatasetsOf(spec)) {
    if (find(name) != datasets.end()) continue;
    datasets.push_back({.name = name, .globs = {}});
    wanted.push_back(absl::StrCat("'", ForeignName(name), "=GLOB'"));
  }
  for (const std::string& glob : globs) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(glob, absl::MaxSplits('=', 1));
    const auto found = find(parts.first);
    if (found == datasets.end() || parts.second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", ForeignName(glob),
                       "' must name the dataset that its shards belong to, because --spec has "
                       "several datasets; want ",
                       absl::StrJoin(wanted, " ")));
    }
    found->globs.emplace_back(parts.second);
  }
  for (const Inspected& dataset : datasets) {
    if (!dataset.globs.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--spec names dataset '", ForeignName(dataset.name),
                     "', and no shards of it are named; want ", absl::StrJoin(wanted, " ")));
  }
  return datasets;
}

std::string DetailAsJson(const RecordDetail& detail) {
  JsonWriter json;
  json.BeginObject().Field("shard", ShownName(detail.shard));
  json.Field("record_in_shard", detail.record_in_shard);
  if (!detail.file.empty()) json.Field("file", ForeignName(detail.file));
  json.Field("offset", detail.offset).Field("payload_bytes", detail.payload_bytes);
  if (!detail.no_example.empty()) json.Field("no_example", detail.no_example);
  json.Key("features").BeginArray();
  for (const FeatureDetail& feature : detail.features) {
    json.BeginObject().Field("name", feature.name);
    json.Field("kind", FeatureKindName(feature.kind)).Field("count", feature.count);
    json.Field("preview", feature.preview).EndObject();
  }
  return json.EndArray().EndObject().text();
}

std::string DetailAsText(const RecordDetail& detail) {
  std::string text = absl::StrCat(ShownName(detail.shard), ": ", detail.place, ", ",
                                  detail.payload_bytes, " bytes of payload\n");
  if (!detail.no_example.empty()) {
    absl::StrAppend(&text, "  no ", detail.example_name, ": ", detail.no_example, "\n");
  }
  for (const FeatureDetail& feature : detail.features) {
    absl::StrAppendFormat(&text, "  %-12s %-7s [%d]  %s\n", ForeignName(feature.name),
                          FeatureKindName(feature.kind), feature.count, feature.preview);
  }
  return text;
}

class InspectCommand final : public Command {
 public:
  std::string name() const override { return "inspect"; }
  std::string summary() const override {
    return "Show shards, record counts, features and columns, or one record; or what a feed "
           "fetches "
           "of them";
  }
  std::string example() const override {
    return "systole inspect 's3://bucket/flowers-train-*' --spec feed.textproto --read-budget 4GB";
  }

  void Declare(OptionList& options) override {
    options.PositionalList("GLOB", &globs_,
                           "Shards or images: paths or quoted patterns; NAME=GLOB for each dataset "
                           "of a --spec that names several");
    options.Optional("--record", "N", &record_,
                     "Show this record, counted from 0 over all shards in sorted order");
    options.Optional("--index-dir", "DIR", &index_dir_,
                     "Folder of the columns; default: beside each shard");
    options.Optional("--spec", "FILE", &spec_,
                     "Show how many bytes this feed spec's epochs fetch from shards in buckets and "
                     "on web servers, and propose numbers for the shuffle WINDOW");
    options.Optional("--read-budget", "SIZE", &read_budget_,
                     "For --spec: memory for what is read ahead, such as 4GB. Give the value of "
                     "the server's flag of this name; default: 256MB");
    options.Optional("--block-cache-bytes", "SIZE", &block_cache_bytes_,
                     "For --spec: the cache of blocks on disk, such as 64GB. Give the value "
                     "of the server's flag of this name; default: none");
  }

  absl::Status Run(const Console& console) override {
    // The options are checked before the shards are read, because reading may take long.
    v1::FeedSpec spec;
    ReadRoom room;
    for (const auto& [option, text] : {std::pair("--read-budget", &read_budget_),
                                       std::pair("--block-cache-bytes", &block_cache_bytes_)}) {
      if (spec_.empty() && !text->empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(option,
                         " has no effect without --spec; name the feed's spec with --spec, or "
                         "leave this option out"));
      }
    }
    if (!spec_.empty()) {
      if (record_.has_value()) {
        return absl::InvalidArgumentError("--record shows one record; leave out --spec");
      }
      SYSTOLE_ASSIGN_OR_RETURN(spec, LoadSpec(spec_));
      SYSTOLE_ASSIGN_OR_RETURN(room.memory_bytes,
                               ParseSize("--read-budget", read_budget_, kDefaultReadBudget));
      SYSTOLE_ASSIGN_OR_RETURN(room.disk_bytes,
                               ParseSize("--block-cache-bytes", block_cache_bytes_, 0));
    }
    if (record_.has_value()) {
      SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListShards(globs_));
      SYSTOLE_ASSIGN_OR_RETURN(const RecordDetail detail, InspectRecord(paths, *record_));
      console.out << (console.json ? DetailAsJson(detail) + "\n" : DetailAsText(detail));
      return absl::OkStatus();
    }
    SYSTOLE_ASSIGN_OR_RETURN(std::vector<Inspected> datasets, DatasetsOfGlobs(spec, globs_));
    ShardsOfDatasets shards;
    for (Inspected& dataset : datasets) {
      SYSTOLE_RETURN_IF_ERROR(Inspect(
          console, dataset,
          spec_.empty() ? nullptr : &shards[dataset.name.empty() ? spec.dataset() : dataset.name]));
    }
    std::optional<FetchReport> fetches;
    if (!spec_.empty()) {
      SYSTOLE_ASSIGN_OR_RETURN(fetches, ReportFetches(spec, std::move(shards), room));
    }
    return Print(console, datasets, fetches);
  }

 private:
  using Shards = std::vector<std::unique_ptr<const RecordSource>>;

  // Sets the reports in `dataset`. Keeps its shards open in `opened`; if that is null, closes them.
  absl::Status Inspect(const Console& console, Inspected& dataset, Shards* opened) const {
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListShards(dataset.globs));
    SYSTOLE_ASSIGN_OR_RETURN(const int threads, ThreadCount(0));
    absl::StatusOr<InspectReport> inspected;
    {
      ProgressBar bar(console,
                      {.label = "inspecting", .total = static_cast<int64_t>(paths.size())});
      inspected = InspectShards(
          paths, {.threads = threads, .file_done = [&bar] { bar.Add(1); }, .opened = opened});
    }
    SYSTOLE_ASSIGN_OR_RETURN(dataset.report, std::move(inspected));
    SYSTOLE_ASSIGN_OR_RETURN(dataset.columns, ReportColumns(dataset.report.shards, index_dir_));
    if (dataset.report.is_group) return absl::OkStatus();
    std::vector<ShardCount> counts;
    for (const ShardSummary& shard : dataset.report.shards) {
      counts.push_back({shard.path, shard.records, shard.file_bytes});
    }
    SYSTOLE_ASSIGN_OR_RETURN(dataset.differences, CompareWithManifests(dataset.globs, counts));
    return absl::OkStatus();
  }

  static absl::Status Print(const Console& console, absl::Span<const Inspected> datasets,
                            const std::optional<FetchReport>& fetches) {
    if (console.json) console.out << AsJson(datasets, fetches) << "\n";
    int64_t damaged = 0;
    size_t differences = 0;
    for (const Inspected& dataset : datasets) {
      damaged += dataset.report.unreadable;
      for (const ShardSummary& shard : dataset.report.shards) damaged += shard.damaged;
      differences += dataset.differences.size();
      if (console.json) continue;
      if (!dataset.name.empty()) {
        console.out << "dataset '" << ForeignName(dataset.name) << "':\n";
      }
      console.out << ReportAsText(dataset.report)
                  << ColumnsAsText(dataset.columns, dataset.report.shards.size());
    }
    if (!console.json) {
      if (fetches.has_value()) console.out << fetches->text;
      for (const Inspected& dataset : datasets) {
        PrintShardDifferences(dataset.differences, console.out);
      }
    }
    if (damaged > 0) {
      return absl::DataLossError("some records are damaged; `systole verify` names each of them");
    }
    if (differences == 0) return absl::OkStatus();
    return absl::DataLossError(ShardDifferencesText(differences));
  }

  // The server's default, too: a quarter of its default --memory-budget.
  static constexpr int64_t kDefaultReadBudget = int64_t{256} << 20;

  static absl::StatusOr<int64_t> ParseSize(absl::string_view option, absl::string_view text,
                                           int64_t if_empty) {
    if (text.empty()) return if_empty;
    const std::optional<int64_t> bytes = ParseSizeText(text);
    if (bytes.has_value()) return *bytes;
    return absl::InvalidArgumentError(
        absl::StrCat(option, " is '", ForeignText(text), "', want a size, such as 512MB or 4GB"));
  }

  std::vector<std::string> globs_;
  std::optional<int64_t> record_;
  std::string index_dir_;
  std::string spec_;
  std::string read_budget_;        // Empty: it was not given.
  std::string block_cache_bytes_;  // Empty: it was not given.
};

}  // namespace

std::unique_ptr<Command> MakeInspectCommand() { return std::make_unique<InspectCommand>(); }

}  // namespace systole
