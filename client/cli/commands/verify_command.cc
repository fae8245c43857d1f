// `systole verify`: reads everything and names what is damaged.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/console/progress_bar.h"
#include "client/cli/console/thread_count.h"
#include "client/cli/shards/shard_differences.h"
#include "client/cli/shards/verifier.h"
#include "core/concurrency/worker_pool.h"
#include "core/json/json_writer.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

std::string ReportAsJson(const VerifyReport& report,
                         absl::Span<const ShardDifference> differences) {
  JsonWriter json;
  json.BeginObject()
      .Field("shards", static_cast<int64_t>(report.shards.size()))
      .Field("records", report.records);
  json.Field("bytes", report.bytes).Field("jpegs", report.jpegs);
  json.Key("not_decoded").BeginObject();
  for (const auto& [kind, values] : report.not_decoded) json.Field(kind, values);
  json.EndObject().Key("bad").BeginArray();
  for (const BadRecord& bad : report.bad) {
    json.BeginObject().Field("shard", ShownName(bad.shard)).Field("record", bad.record);
    json.Field("offset", bad.offset);
    if (!bad.file.empty()) json.Field("file", ForeignName(bad.file));
    json.Field("cause", bad.cause).EndObject();
  }
  json.EndArray().Field("stretches", report.stretches);
  AppendShardDifferences(differences, json);
  return json.EndObject().text();
}

// The damage that was found, as a sentence; empty if there is none.
std::string FoundText(const VerifyReport& report, size_t differences) {
  std::vector<std::string> found;
  if (!report.bad.empty()) {
    found.push_back(absl::StrCat(report.bad.size(), report.stretches > 0 ? " or more" : "", " of ",
                                 report.records, " records are damaged"));
  }
  if (report.stretches > 0) {
    found.push_back(
        "a stretch without a readable header counts as one record, but may have held many");
  }
  if (differences > 0) found.push_back(ShardDifferencesText(differences));
  return absl::StrJoin(found, "; ");
}

// What was not checked; empty if everything was checked.
std::string NotDecodedText(const VerifyReport& report, bool framing_only) {
  if (framing_only) return "payloads were not checked: --framing-only\n";
  std::string text;
  for (const auto& [kind, values] : report.not_decoded) {
    absl::StrAppend(
        &text, text.empty() ? "checksums match, but only JPEGs are decoded; not decoded: " : ", ",
        values, " ", kind);
  }
  return text.empty() ? "" : text + "\n";
}

// The bytes of all files. In a store far away each file costs a request, so several requests run at
// once.
absl::StatusOr<int64_t> TotalBytes(const std::vector<std::string>& paths, int threads) {
  std::vector<absl::StatusOr<StoredState>> states(paths.size());
  WorkerPool pool(threads);
  ParallelFor(pool, static_cast<int64_t>(paths.size()),
              [&](int64_t i) { states[i] = StatStored(paths[i]); });
  int64_t total_bytes = 0;
  for (const absl::StatusOr<StoredState>& state : states) {
    SYSTOLE_RETURN_IF_ERROR(state.status());
    total_bytes += static_cast<int64_t>(state->size_bytes);
  }
  return total_bytes;
}

class VerifyCommand final : public Command {
 public:
  std::string name() const override { return "verify"; }
  std::string summary() const override {
    return "Check every checksum, parse every record, decode every JPEG; list what is damaged";
  }
  std::string example() const override { return "systole verify 'data/packed/flowers-*.tfrecord'"; }

  void Declare(OptionList& options) override {
    options.PositionalList("GLOB", &globs_, "Shards or images: paths or quoted patterns");
    options.Flag("--framing-only", &framing_only_,
                 "Check only framing and checksums: for records that are not tf.train.Example");
    options.Optional("--threads", "N", &threads_, "Threads; 0 = one for each processor");
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(const int threads, ThreadCount(threads_));
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListShards(globs_));
    SYSTOLE_ASSIGN_OR_RETURN(const int64_t total_bytes, TotalBytes(paths, threads));
    absl::StatusOr<VerifyReport> report;
    {
      ProgressBar bar(console,
                      {.label = "verifying", .total = total_bytes, .unit = ProgressUnit::kBytes});
      report = Verify(paths, {.framing_only = framing_only_, .threads = threads},
                      [&](int64_t bytes) { bar.Add(bytes); });
    }
    SYSTOLE_RETURN_IF_ERROR(report.status());
    std::vector<ShardDifference> differences;
    if (!report->is_group) {
      SYSTOLE_ASSIGN_OR_RETURN(differences, CompareWithManifests(globs_, report->shards));
    }
    if (console.json) {
      console.out << ReportAsJson(*report, differences) << "\n";
    } else {
      for (const BadRecord& bad : report->bad) {
        console.out << ShownName(bad.shard) << ": " << bad.place << ": " << bad.cause << "\n";
      }
      PrintShardDifferences(differences, console.out);
      console.out << report->shards.size() << " shards, " << report->records << " records, "
                  << report->bytes << " bytes, " << report->jpegs << " JPEGs decoded, "
                  << report->bad.size() << (report->stretches > 0 ? " or more" : "")
                  << " bad records\n"
                  << NotDecodedText(*report, framing_only_);
    }
    const std::string found = FoundText(*report, differences.size());
    return found.empty() ? absl::OkStatus() : absl::DataLossError(found);
  }

 private:
  std::vector<std::string> globs_;
  bool framing_only_ = false;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeVerifyCommand() { return std::make_unique<VerifyCommand>(); }

}  // namespace systole
