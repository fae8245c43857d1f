#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/damaged_records.h"
#include "client/cli/commands/permitted_answer.h"
#include "client/cli/commands/security_flags.h"
#include "client/cli/commands/stream_table.h"
#include "client/servers/server_list.h"
#include "client/servers/server_security.h"
#include "client/servers/server_status.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/pace.h"
#include "core/concurrency/worker_pool.h"
#include "core/json/json_writer.h"
#include "core/metrics/metric.h"
#include "core/metrics/metric_text.h"
#include "core/status/status_macros.h"
#include "core/text/duration_text.h"
#include "proto/metrics/metric_messages.h"

namespace systole {
namespace {

constexpr absl::Duration kLongestWait = absl::Hours(24);
// How many servers are asked at the same time. Each server that is down may take the whole
// --connect-timeout, which is too long if servers are asked one after the other.
constexpr size_t kMaxAskedAtOnce = 32;

// A server's answer, and when it came.
struct Answer {
  v1::ServerStatusResponse status;
  std::vector<MetricReading> metrics;
  absl::Duration at;
  // The number of damaged stretches that the server found while indexing, by dataset.
  std::map<std::string, int64_t> found;

  int64_t Found(const std::string& dataset) const {
    const auto known = found.find(dataset);
    return known == found.end() ? 0 : known->second;
  }
};

struct ServerReport {
  std::string address;
  absl::StatusOr<Answer> answer;  // The server's last answer.
  // How much each counter grew per second between two answers. Nullopt if there are not two
  // answers, or if the server was restarted between them.
  std::optional<std::vector<MetricReading>> rates;
  // The earlier of the two answers. Nullopt if there are not two.
  std::optional<v1::ServerStatusResponse> before;

  const v1::ServerStatusResponse* earlier() const {
    return before.has_value() ? &*before : nullptr;
  }
};

void AppendServer(const ServerReport& report, JsonWriter& json) {
  json.BeginObject().Field("address", report.address);
  if (!report.answer.ok()) {
    json.Field("error", report.answer.status().message()).EndObject();
    return;
  }
  const v1::ServerStatusResponse& status = report.answer->status;
  json.Field("version", status.version()).Field("content_version", status.content_version());
  json.Field("draining", status.draining()).Field("jpeg_fallback", status.jpeg_fallback());
  json.Key("metrics").BeginObject();
  AppendMetrics(report.answer->metrics, json);
  json.EndObject();
  if (report.rates.has_value()) {
    json.Key("per_second").BeginObject();
    AppendMetrics(*report.rates, json);
    json.EndObject();
  }
  AppendStreams(status, report.earlier(), json);
  json.Key("datasets").BeginArray();
  for (const v1::DatasetStatus& dataset : status.datasets()) {
    json.BeginObject().Field("name", dataset.name());
    json.Field("damaged", report.answer->Found(dataset.name()));
    json.Field("masked_examples", dataset.masked_examples());
    AppendDamagedRecords("damaged_records", dataset.damaged_records(), json);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void PrintServer(const ServerReport& report, std::ostream& out) {
  if (!report.answer.ok()) return;  // The command's error names this server.
  const v1::ServerStatusResponse& status = report.answer->status;
  out << report.address << ": version " << status.version() << ", content version "
      << status.content_version() << (status.draining() ? ", DRAINING" : "") << "\n";
  out << MetricsText(report.answer->metrics, report.rates.value_or(std::vector<MetricReading>()));
  PrintStreams(status, report.earlier(), out);
  for (const v1::DatasetStatus& dataset : status.datasets()) {
    const int64_t found = report.answer->Found(dataset.name());
    const bool met = dataset.masked_examples() > 0 || !dataset.damaged_records().empty();
    out << "  dataset " << dataset.name() << ": ";
    if (found > 0) {
      out << FoundWhileIndexing(found) << " (`systole datasets` lists them)\n";
    } else if (!met) {
      out << "no damage found or met\n";
    }
    if (!met) continue;
    if (found > 0) out << "    ";
    out << MetWhileReading(dataset.masked_examples(), dataset.damaged_records_size()) << "\n";
    PrintDamagedRecords(dataset.damaged_records(), out);
  }
  if (!status.jpeg_fallback().empty()) {
    out << "  note: JPEGs are decoded by libjpeg alone, at about half the speed: "
        << status.jpeg_fallback() << "\n";
  }
}

// Returns the errors of the servers that gave no answer. If all servers answered, returns DataLoss
// if a dataset is damaged, otherwise OK.
absl::Status Verdict(const std::vector<ServerReport>& reports) {
  std::vector<std::string> errors;
  absl::StatusCode code = absl::StatusCode::kOk;
  int64_t damaged = 0;
  for (const ServerReport& report : reports) {
    if (!report.answer.ok()) {
      if (errors.empty()) code = report.answer.status().code();
      errors.emplace_back(report.answer.status().message());
      continue;
    }
    for (const v1::DatasetStatus& dataset : report.answer->status.datasets()) {
      const bool found = report.answer->Found(dataset.name()) > 0;
      damaged += dataset.damaged_records().empty() && !found ? 0 : 1;
    }
  }
  if (!errors.empty()) return absl::Status(code, absl::StrJoin(errors, "; "));
  if (damaged == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(damaged, damaged == 1 ? " dataset has" : " datasets have", " damaged records"));
}

class StatusCommand final : public Command {
 public:
  std::string name() const override { return "status"; }
  std::string summary() const override {
    return "Show what servers are doing: streams, rates, memory, damage met";
  }
  std::string example() const override {
    return "systole status --server 127.0.0.1:8470,unix:/run/systole.sock";
  }

  void Declare(OptionList& options) override {
    options.Required(
        "--server", "A[,B..]", &servers_,
        "The servers to ask, each HOST:PORT, unix:PATH, dns:///NAME:PORT (all addresses "
        "of the name) or file:PATH (one address a line)");
    options.Optional("--interval", &interval_,
                     "Time between the two answers that the rates are taken from; 0 asks once and "
                     "shows no rates");
    options.Optional("--connect-timeout", &timeout_, "How long to wait for each answer");
    security_.Declare(options);
  }

  absl::Status Run(const Console& console) override {
    SYSTOLE_RETURN_IF_ERROR(
        CheckDuration("--interval", interval_, absl::ZeroDuration(), kLongestWait));
    SYSTOLE_RETURN_IF_ERROR(
        CheckDuration("--connect-timeout", timeout_, absl::Milliseconds(1), kLongestWait));
    const std::vector<std::string> given = absl::StrSplit(servers_, ',');
    SYSTOLE_ASSIGN_OR_RETURN(const ServerList list, ServerList::Create(given));
    ServerSecurity security = security_.security();
    SYSTOLE_ASSIGN_OR_RETURN(security.server_name, NameInCertificates(security, given));
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> servers, list.Read());
    std::vector<absl::StatusOr<Answer>> before;
    if (interval_ > absl::ZeroDuration()) {
      const absl::Duration end = clock_() + interval_;
      before = AskAll(servers.size(), [&](size_t i) { return Ask(servers[i], security); });
      const bool any_answered =
          std::any_of(before.begin(), before.end(),
                      [](const absl::StatusOr<Answer>& answer) { return answer.ok(); });
      if (any_answered) PaceUntil(end, {.now = clock_});
    }
    std::vector<absl::StatusOr<Answer>> after =
        AskAll(servers.size(), [&](size_t i) -> absl::StatusOr<Answer> {
          // A server whose earlier answer is an error is not asked again.
          if (!before.empty() && !before[i].ok()) return before[i].status();
          SYSTOLE_ASSIGN_OR_RETURN(Answer answer, Ask(servers[i], security));
          SYSTOLE_ASSIGN_OR_RETURN(answer.found, AskForDamage(servers[i], security));
          return answer;
        });
    std::vector<ServerReport> reports;
    for (size_t i = 0; i < servers.size(); ++i) {
      ServerReport report = {servers[i], std::move(after[i]), std::nullopt, std::nullopt};
      if (!before.empty() && before[i].ok() && report.answer.ok()) {
        report.rates = RatesBetween(before[i]->metrics, report.answer->metrics,
                                    absl::ToDoubleSeconds(report.answer->at - before[i]->at));
        report.before = std::move(before[i]->status);
      }
      reports.push_back(std::move(report));
    }
    if (console.json) {
      JsonWriter json;
      json.BeginObject().Key("servers").BeginArray();
      for (const ServerReport& report : reports) AppendServer(report, json);
      console.out << json.EndArray().EndObject().text() << "\n";
    } else {
      for (const ServerReport& report : reports) PrintServer(report, console.out);
    }
    return Verdict(reports);
  }

 private:
  // Asks for the status. Leaves Answer::found empty.
  absl::StatusOr<Answer> Ask(const std::string& server, const ServerSecurity& security) const {
    SYSTOLE_ASSIGN_OR_RETURN(v1::ServerStatusResponse status,
                             AskServerStatus(server, timeout_, security));
    const absl::Duration at = clock_();
    SYSTOLE_ASSIGN_OR_RETURN(std::vector<MetricReading> metrics, MetricsOf(status, server));
    return Answer{std::move(status), std::move(metrics), at, {}};
  }

  // Asks for the datasets. Returns the value for Answer::found.
  absl::StatusOr<std::map<std::string, int64_t>> AskForDamage(
      const std::string& server, const ServerSecurity& security) const {
    // A client that may ask for the status may lack the permission to list datasets. Then the list
    // is empty, and the command shows no damage that was found while indexing.
    SYSTOLE_ASSIGN_OR_RETURN(const v1::ListDatasetsResponse list,
                             PermittedAnswer(AskDatasets(server, timeout_, security)));
    std::map<std::string, int64_t> found;
    for (const v1::DatasetSummary& dataset : list.datasets()) {
      found[dataset.name()] = dataset.num_damaged_records();
    }
    return found;
  }

  // Calls `ask` with the numbers 0 to `servers` - 1, and returns the answers in this order.
  std::vector<absl::StatusOr<Answer>> AskAll(
      size_t servers, const std::function<absl::StatusOr<Answer>(size_t)>& ask) const {
    std::vector<absl::StatusOr<Answer>> answers(servers, absl::UnknownError("not asked"));
    WorkerPool threads(static_cast<int>(std::min(servers, kMaxAskedAtOnce)));
    ParallelFor(threads, static_cast<int64_t>(servers),
                [&](int64_t i) { answers[static_cast<size_t>(i)] = ask(static_cast<size_t>(i)); });
    return answers;
  }

  const MonotonicClock clock_ = SteadyClock();
  std::string servers_;
  absl::Duration interval_ = absl::Seconds(1);
  absl::Duration timeout_ = absl::Seconds(10);
  SecurityFlags security_;
};

}  // namespace

std::unique_ptr<Command> MakeStatusCommand() { return std::make_unique<StatusCommand>(); }

}  // namespace systole
