#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/damaged_records.h"
#include "client/cli/commands/permitted_answer.h"
#include "client/cli/commands/security_flags.h"
#include "client/servers/server_status.h"
#include "core/json/json_writer.h"
#include "core/status/status_macros.h"
#include "core/text/duration_text.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr absl::Duration kLongestWait = absl::Hours(24);

// The damage that feeds met while they read the dataset. Empty if the status does not list the
// dataset.
v1::DatasetStatus MetIn(const v1::ServerStatusResponse& status, const std::string& dataset) {
  for (const v1::DatasetStatus& one : status.datasets()) {
    if (one.name() == dataset) return one;
  }
  return {};
}

std::string ReportAsJson(const v1::ListDatasetsResponse& list,
                         const std::vector<v1::DescribeDatasetResponse>& datasets,
                         const v1::ServerStatusResponse& status) {
  JsonWriter json;
  json.BeginObject().Key("datasets").BeginArray();
  for (const v1::DescribeDatasetResponse& dataset : datasets) {
    const v1::DatasetSummary& summary = dataset.summary();
    json.BeginObject().Field("name", ForeignName(summary.name()));
    json.Field("records", summary.num_records());
    json.Field("fingerprint", absl::StrFormat("%016x", summary.fingerprint()));
    json.Key("features").BeginArray();
    for (const v1::FeatureSummary& feature : dataset.features()) {
      json.BeginObject().Field("name", ForeignName(feature.name()));
      json.Field("kind", ForeignName(feature.kind())).EndObject();
    }
    json.EndArray().Key("shards").BeginArray();
    for (const v1::ShardSummary& shard : dataset.shards()) {
      json.BeginObject().Field("name", ForeignName(shard.name())).Field("bytes", shard.bytes());
      json.Field("records", shard.num_records());
      json.Field("damaged", shard.num_damaged_records()).EndObject();
    }
    json.EndArray().Field("damaged", summary.num_damaged_records());
    AppendDamagedRecords("damaged_records", dataset.damaged_records(), json);
    const v1::DatasetStatus met = MetIn(status, summary.name());
    json.Field("masked_examples", met.masked_examples());
    AppendDamagedRecords("damaged_records_met", met.damaged_records(), json);
    json.EndObject();
  }
  json.EndArray().Key("refused").BeginArray();
  for (const v1::RefusedDataset& refused : list.refused()) {
    json.BeginObject().Field("name", ForeignName(refused.name()));
    json.Field("reason", ForeignText(refused.reason())).EndObject();
  }
  return json.EndArray().EndObject().text();
}

class DatasetsCommand final : public Command {
 public:
  std::string name() const override { return "datasets"; }
  std::string summary() const override {
    return "List what a server serves: datasets, records, shards, damage";
  }
  std::string example() const override { return "systole datasets --server 127.0.0.1:8470"; }

  void Declare(OptionList& options) override {
    options.Required("--server", "ADDRESS", &server_, "HOST:PORT or unix:PATH");
    options.Flag("--shards", &shards_, "List each shard too");
    options.Optional("--connect-timeout", &timeout_, "How long to wait for each answer");
    security_.Declare(options);
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_RETURN_IF_ERROR(
        CheckDuration("--connect-timeout", timeout_, absl::Milliseconds(1), kLongestWait));
    SYSTOLE_ASSIGN_OR_RETURN(const v1::ListDatasetsResponse list,
                             AskDatasets(server_, timeout_, security_.security()));
    // A client that may list datasets may lack the permission to ask for the status. Such a client
    // is not shown the damage that was met while reading.
    SYSTOLE_ASSIGN_OR_RETURN(
        const v1::ServerStatusResponse status,
        PermittedAnswer(AskServerStatus(server_, timeout_, security_.security())));
    std::vector<v1::DescribeDatasetResponse> datasets;
    int64_t damaged = 0;
    for (const v1::DatasetSummary& summary : list.datasets()) {
      SYSTOLE_ASSIGN_OR_RETURN(v1::DescribeDatasetResponse dataset,
                               AskDataset(server_, summary.name(), timeout_, security_.security()));
      const bool any = dataset.summary().num_damaged_records() > 0 ||
                       !MetIn(status, summary.name()).damaged_records().empty();
      damaged += any ? 1 : 0;
      datasets.push_back(std::move(dataset));
    }
    if (console.json) {
      console.out << ReportAsJson(list, datasets, status) << "\n";
    } else {
      Print(console, list, datasets, status);
    }
    if (damaged == 0 && list.refused().empty()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        damaged, damaged == 1 ? " dataset has" : " datasets have", " damaged records, ",
        list.refused_size(), list.refused_size() == 1 ? " is" : " are", " refused"));
  }

 private:
  void Print(const Console& console, const v1::ListDatasetsResponse& list,
             const std::vector<v1::DescribeDatasetResponse>& datasets,
             const v1::ServerStatusResponse& status) const {
    for (const v1::DescribeDatasetResponse& dataset : datasets) {
      const v1::DatasetSummary& summary = dataset.summary();
      console.out << ForeignName(summary.name()) << ": " << summary.num_records() << " records in "
                  << summary.num_shards() << " shards, fingerprint "
                  << absl::StrFormat("%016x", summary.fingerprint()) << "\n";
      for (const v1::ShardSummary& shard : dataset.shards()) {
        if (!shards_) break;
        console.out << "  " << ForeignName(shard.name()) << "  " << shard.num_records()
                    << " records, " << shard.bytes() << " bytes\n";
      }
      if (summary.num_damaged_records() > 0) {
        console.out << "  " << FoundWhileIndexing(summary.num_damaged_records())
                    << (summary.num_damaged_records() > dataset.damaged_records_size()
                            ? "; the first of them:\n"
                            : ":\n");
        PrintDamagedRecords(dataset.damaged_records(), console.out);
      }
      const v1::DatasetStatus met = MetIn(status, summary.name());
      if (met.masked_examples() == 0 && met.damaged_records().empty()) continue;
      console.out << "  " << MetWhileReading(met.masked_examples(), met.damaged_records_size())
                  << "\n";
      PrintDamagedRecords(met.damaged_records(), console.out);
    }
    for (const v1::RefusedDataset& refused : list.refused()) {
      console.out << ForeignName(refused.name()) << ": refused: " << ForeignText(refused.reason())
                  << "\n";
    }
  }

  std::string server_;
  bool shards_ = false;
  absl::Duration timeout_ = absl::Seconds(10);
  SecurityFlags security_;
};

}  // namespace

std::unique_ptr<Command> MakeDatasetsCommand() { return std::make_unique<DatasetsCommand>(); }

}  // namespace systole
