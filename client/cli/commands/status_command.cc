#include <algorithm>
#include <cstdint>
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
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/damaged_records.h"
#include "client/cli/commands/security_flags.h"
#include "client/servers/server_status.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/pace.h"
#include "core/concurrency/worker_pool.h"
#include "core/json/json_writer.h"
#include "core/program/duration_text.h"
#include "core/status/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace systole {
namespace {

constexpr absl::Duration kLongestWait = absl::Hours(24);
// Servers asked at a time. One that is down takes the whole --connect-timeout.
constexpr size_t kMaxAskedAtOnce = 32;

double MegaBytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

// Calls `take` with the name and the value of each count in `counts`, a message of nothing else.
template <typename Take>
void ForEachCount(const google::protobuf::Message& counts, Take take) {
  const google::protobuf::Descriptor& type = *counts.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    take(type.field(i)->name(), counts.GetReflection()->GetInt64(counts, type.field(i)));
  }
}

void AppendCounts(absl::string_view key, const google::protobuf::Message& counts,
                  JsonWriter& json) {
  json.Key(key).BeginObject();
  ForEachCount(counts,
               [&json](const std::string& name, int64_t count) { json.Field(name, count); });
  json.EndObject();
}

// "2 not permitted, 1 no place": those that are not 0.
std::string CountsText(const google::protobuf::Message& counts) {
  std::vector<std::string> parts;
  ForEachCount(counts, [&parts](const std::string& name, int64_t count) {
    if (count != 0) {
      parts.push_back(absl::StrCat(count, " ", absl::StrReplaceAll(name, {{"_", " "}})));
    }
  });
  return absl::StrJoin(parts, ", ");
}

struct Answer {
  bool asked = false;
  absl::StatusOr<v1::ServerStatusResponse> status = absl::UnknownError("not asked");
  absl::Duration at;  // When it came.
  // By dataset: damaged stretches that the server found while indexing.
  std::map<std::string, int64_t> found = {};
};

// What a server did between two answers.
struct Rates {
  double steps_per_second = 0;
  double examples_per_second = 0;
  double megabytes_per_second = 0;
  double cpus_busy = 0;
};

struct ServerReport {
  std::string address;
  absl::StatusOr<v1::ServerStatusResponse> status;  // The last answer.
  std::optional<Rates> rates;                       // Unless only one answer was asked for.
  std::map<std::string, int64_t> found;             // As in Answer.

  int64_t Found(const std::string& dataset) const {
    const auto known = found.find(dataset);
    return known == found.end() ? 0 : known->second;
  }
};

// nullopt if there are no two answers, or the server was started anew between them.
std::optional<Rates> RatesBetween(const Answer& before, const Answer& after) {
  if (!before.status.ok() || !after.status.ok()) return std::nullopt;
  const v1::ServerStatusResponse& a = *before.status;
  const v1::ServerStatusResponse& b = *after.status;
  const double seconds = absl::ToDoubleSeconds(after.at - before.at);
  if (seconds <= 0 || b.steps_served() < a.steps_served() ||
      b.examples_made() < a.examples_made() || b.cpu_seconds() < a.cpu_seconds() ||
      b.payload_bytes_sent() < a.payload_bytes_sent()) {
    return std::nullopt;
  }
  const auto rate = [seconds](int64_t from, int64_t to) {
    return static_cast<double>(to - from) / seconds;
  };
  return Rates{.steps_per_second = rate(a.steps_served(), b.steps_served()),
               .examples_per_second = rate(a.examples_made(), b.examples_made()),
               .megabytes_per_second = rate(a.payload_bytes_sent(), b.payload_bytes_sent()) / 1e6,
               .cpus_busy = (b.cpu_seconds() - a.cpu_seconds()) / seconds};
}

void AppendServer(const ServerReport& report, JsonWriter& json) {
  json.BeginObject().Field("address", report.address);
  if (!report.status.ok()) {
    json.Field("error", report.status.status().message()).EndObject();
    return;
  }
  const v1::ServerStatusResponse& status = *report.status;
  json.Field("version", status.version()).Field("content_version", status.content_version());
  json.Field("draining", status.draining()).Field("active_streams", status.active_streams());
  json.Field("streams_opened", status.streams_opened());
  AppendCounts("stream_ends", status.stream_ends(), json);
  AppendCounts("refusals", status.refusals(), json);
  AppendCounts("connections", status.connections(), json);
  json.Field("masked_examples", status.masked_examples());
  json.Field("steps_served", status.steps_served());
  json.Field("examples_made", status.examples_made());
  json.Field("payload_bytes_sent", status.payload_bytes_sent());
  json.Field("payload_bytes_shared", status.payload_bytes_shared());
  json.Field("slices_shared", status.slices_shared());
  json.Field("threads", status.threads()).Field("threads_stuck", status.threads_stuck());
  json.Field("reads_timed_out", status.reads_timed_out());
  json.Field("memory_budget_bytes", status.memory_budget_bytes());
  json.Field("memory_used_bytes", status.memory_used_bytes());
  json.Field("resident_bytes", status.resident_bytes());
  json.Field("cpu_seconds", status.cpu_seconds()).Field("cpus", status.cpus());
  json.Field("jpeg_fallback", status.jpeg_fallback());
  if (report.rates.has_value()) {
    json.Field("steps_per_second", report.rates->steps_per_second);
    json.Field("examples_per_second", report.rates->examples_per_second);
    json.Field("megabytes_per_second", report.rates->megabytes_per_second);
    json.Field("cpus_busy", report.rates->cpus_busy);
  }
  const v1::CacheStatus& cache = status.cache();
  json.Key("cache").BeginObject();
  json.Field("memory_hits", cache.memory_hits()).Field("disk_hits", cache.disk_hits());
  json.Field("misses", cache.misses());
  json.Field("memory_bytes", cache.memory_bytes());
  json.Field("memory_budget_bytes", cache.memory_budget_bytes());
  json.Field("disk_bytes", cache.disk_bytes());
  json.Field("disk_budget_bytes", cache.disk_budget_bytes());
  json.Field("damaged_entries", cache.damaged_entries()).EndObject();
  json.Key("datasets").BeginArray();
  for (const v1::DatasetStatus& dataset : status.datasets()) {
    json.BeginObject().Field("name", dataset.name());
    json.Field("damaged", report.Found(dataset.name()));
    json.Field("masked_examples", dataset.masked_examples());
    AppendDamagedRecords("damaged_records", dataset.damaged_records(), json);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

// What transforms `cache` keep, if the server keeps anything.
void PrintCache(const v1::CacheStatus& cache, std::ostream& out) {
  const double hits = static_cast<double>(cache.memory_hits()) + cache.disk_hits();
  const double lookups = hits + static_cast<double>(cache.misses());
  if (cache.memory_budget_bytes() == 0 && cache.disk_budget_bytes() == 0) return;
  out << absl::StrFormat("  cache      %.0f %% of %.0f look-ups found",
                         lookups == 0 ? 0 : 100 * hits / lookups, lookups);
  if (cache.memory_budget_bytes() > 0) {
    out << absl::StrFormat("; %.1f of %.1f MB memory", MegaBytes(cache.memory_bytes()),
                           MegaBytes(cache.memory_budget_bytes()));
  }
  if (cache.disk_budget_bytes() > 0) {
    out << absl::StrFormat("; %.1f of %.1f MB disk", MegaBytes(cache.disk_bytes()),
                           MegaBytes(cache.disk_budget_bytes()));
  }
  if (cache.damaged_entries() > 0) {
    out << absl::StrFormat("; %d damaged entries made anew", cache.damaged_entries());
  }
  out << "\n";
}

void PrintServer(const ServerReport& report, std::ostream& out) {
  if (!report.status.ok()) return;  // The error that the command ends with names it.
  const v1::ServerStatusResponse& status = *report.status;
  out << report.address << ": version " << status.version() << ", content version "
      << status.content_version() << (status.draining() ? ", DRAINING" : "") << "\n";
  out << "  streams    " << status.active_streams();
  if (status.streams_opened() > 0) {
    out << ", " << status.streams_opened() << " opened since the start";
    if (const std::string ends = CountsText(status.stream_ends()); !ends.empty()) {
      out << "; ended: " << ends;
    }
  }
  out << "\n";
  if (const std::string connections = CountsText(status.connections()); !connections.empty()) {
    out << "  connected  " << connections << "\n";
  }
  if (const std::string refusals = CountsText(status.refusals()); !refusals.empty()) {
    out << "  refused    " << refusals << "\n";
  }
  if (status.masked_examples() > 0) {
    out << "  masked     " << status.masked_examples() << " examples, of all datasets\n";
  }
  out << "  served     " << status.steps_served() << " steps, " << status.examples_made()
      << " examples made, "
      << absl::StrFormat("%.1f MB sent, %.1f MB of it through shared memory\n",
                         MegaBytes(status.payload_bytes_sent()),
                         MegaBytes(status.payload_bytes_shared()));
  if (status.slices_shared() > 0) {
    out << "  together   " << status.slices_shared()
        << " slices were made for another client of the same feed\n";
  }
  if (report.rates.has_value()) {
    out << absl::StrFormat(
        "  now        %.1f steps/s, %.0f examples/s, %.1f MB/s, %.2f CPUs busy\n",
        report.rates->steps_per_second, report.rates->examples_per_second,
        report.rates->megabytes_per_second, report.rates->cpus_busy);
  }
  out << absl::StrFormat("  memory     %.1f of %.1f MB; %.1f MB of the process\n",
                         MegaBytes(status.memory_used_bytes()),
                         MegaBytes(status.memory_budget_bytes()),
                         MegaBytes(status.resident_bytes()));
  PrintCache(status.cache(), out);
  out << absl::StrFormat("  processor  %.1f CPU-seconds since the start, %d CPUs to use\n",
                         status.cpu_seconds(), status.cpus());
  if (status.threads_stuck() > 0 || status.reads_timed_out() > 0) {
    out << "  storage    " << status.threads_stuck() << " threads wait for reads that hang, "
        << status.reads_timed_out() << " steps failed for such reads since the start\n";
  }
  for (const v1::DatasetStatus& dataset : status.datasets()) {
    const int64_t found = report.Found(dataset.name());
    const bool met = dataset.masked_examples() > 0 || !dataset.damaged_records().empty();
    out << "  dataset    " << dataset.name() << ": ";
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
    out << "  note: libjpeg decodes JPEGs alone, at about half the speed: "
        << status.jpeg_fallback() << "\n";
  }
}

// The servers that gave no answer, or else what is damaged.
absl::Status Verdict(const std::vector<ServerReport>& reports) {
  std::vector<std::string> errors;
  absl::StatusCode code = absl::StatusCode::kOk;
  int64_t damaged = 0;
  for (const ServerReport& report : reports) {
    if (!report.status.ok()) {
      if (errors.empty()) code = report.status.status().code();
      errors.emplace_back(report.status.status().message());
      continue;
    }
    for (const v1::DatasetStatus& dataset : report.status->datasets()) {
      damaged += dataset.damaged_records().empty() && report.Found(dataset.name()) == 0 ? 0 : 1;
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
    options.Required("--server", "A[,B..]", &servers_,
                     "The servers to ask, each HOST:PORT or unix:PATH");
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
    const std::vector<std::string> servers = absl::StrSplit(servers_, ',');
    std::vector<Answer> before(servers.size());
    if (interval_ > absl::ZeroDuration()) {
      const absl::Duration end = clock_() + interval_;
      before = AskAll(servers, before);
      const bool any_answered = std::any_of(
          before.begin(), before.end(), [](const Answer& answer) { return answer.status.ok(); });
      if (any_answered) PaceUntil(end, {.now = clock_});
    }
    std::vector<Answer> after = AskAll(servers, before);
    std::vector<ServerReport> reports;
    for (size_t i = 0; i < servers.size(); ++i) {
      std::optional<Rates> rates = RatesBetween(before[i], after[i]);
      reports.push_back({servers[i], std::move(after[i].status), rates, std::move(after[i].found)});
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
  // A server that failed to answer `before` is not asked again.
  std::vector<Answer> AskAll(const std::vector<std::string>& servers,
                             const std::vector<Answer>& before) const {
    std::vector<Answer> answers = before;
    WorkerPool threads(static_cast<int>(std::min(servers.size(), kMaxAskedAtOnce)));
    ParallelFor(threads, static_cast<int64_t>(servers.size()), [&](int64_t i) {
      const size_t server = static_cast<size_t>(i);
      if (answers[server].asked && !answers[server].status.ok()) return;
      answers[server].asked = true;
      answers[server].status = AskServerStatus(servers[server], timeout_, security_.security());
      answers[server].at = clock_();
      if (!answers[server].status.ok()) return;
      const absl::StatusOr<v1::ListDatasetsResponse> list =
          AskDatasets(servers[server], timeout_, security_.security());
      if (!list.ok()) {
        answers[server].status = list.status();
        return;
      }
      for (const v1::DatasetSummary& dataset : list->datasets()) {
        answers[server].found[dataset.name()] = dataset.num_damaged_records();
      }
    });
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
