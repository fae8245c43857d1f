// systole-server: serves TFRecord shards as ready batches.
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/compression/chunk_cache.h"
#include "core/compression/compression.h"
#include "core/concurrency/processors.h"
#include "core/image/jpeg/jpeg_check.h"
#include "core/log/event_log.h"
#include "core/numeric/simd_target.h"
#include "core/program/allocator.h"
#include "core/program/duration_text.h"
#include "core/program/exit_code.h"
#include "core/program/memory_trim.h"
#include "core/program/unknown_argument.h"
#include "core/status/foreign_text.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"
#include "core/text/message_text.h"
#include "proto/framing/grpc_log.h"
#include "server/server.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace systole {
namespace {

struct Flags {
  std::string listen = ServerOptions().listen;
  bool insecure = false;
  TlsOptions tls;
  bool share_memory = true;
  int64_t max_connections = 0;
  int64_t max_connections_per_peer = 0;
  absl::Duration handshake_timeout = ServerOptions().handshake_timeout;
  absl::Duration idle_timeout = ServerOptions().idle_timeout;
  std::string port_file;
  std::vector<std::string> datasets;
  std::string config;
  int threads = UsableProcessors();
  uint64_t memory_budget = static_cast<uint64_t>(StepEngineOptions().memory_budget_bytes);
  std::string index_dir;
  std::string compression{CompressionName(Compression::kDetect)};
  uint64_t decompression_cache = ChunkCache::kDefaultBytes;
  ValueCacheOptions cache = {.disk_bytes = int64_t{16} << 30};
  absl::Duration read_timeout = StepEngineOptions().read_timeout;
  absl::Duration drain_timeout = absl::Seconds(10);
  absl::Duration stalled_stream_timeout = FeedServiceOptions().stalled_stream_timeout;
  std::string log_level = "info";
  std::string log_format = "text";
};

absl::StatusOr<v1::ServerConfig> ConfigOf(const Flags& flags) {
  v1::ServerConfig config;
  if (!flags.config.empty()) SYSTOLE_RETURN_IF_ERROR(LoadMessage(flags.config, config));
  for (const std::string& entry : flags.datasets) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--dataset ", ForeignText(entry), ": want NAME=GLOB, such as flowers='data/*.tfrecord'"));
    }
    const std::string name = entry.substr(0, equals);
    // Several globs of one name are one dataset.
    v1::DatasetConfig* dataset = nullptr;
    for (v1::DatasetConfig& known : *config.mutable_datasets()) {
      if (known.name() == name) dataset = &known;
    }
    if (dataset == nullptr) {
      dataset = config.add_datasets();
      dataset->set_name(name);
      dataset->set_compression(
          static_cast<v1::DatasetConfig::Compression>(CompressionNamed(flags.compression).value()));
    }
    dataset->add_shards(entry.substr(equals + 1));
  }
  return config;
}

absl::StatusOr<TlsOptions> TlsOf(const Flags& flags, const v1::ServerConfig& config) {
  if (!config.has_tls()) return flags.tls;
  if (flags.tls.on()) {
    return absl::InvalidArgumentError(
        "TLS is set by flags (--tls-certificate, --tls-key, --tls-client-ca) and by `tls` in the "
        "config file: leave one of them out");
  }
  TlsOptions tls = {.certificate = config.tls().certificate(),
                    .key = config.tls().key(),
                    .client_ca = config.tls().client_ca()};
  if (tls.on()) return tls;
  return absl::InvalidArgumentError(
      "`tls` in the config file is empty: give it certificate and key, or leave it out");
}

// A descriptor stays open for each shard; the usual soft limit is 1,024.
void RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

LogLevel LevelOf(const std::string& name) {
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn}) {
    if (name == kLogLevelNames[static_cast<int>(level)]) return level;
  }
  return LogLevel::kError;
}

// The log's lines are one line each already, so nothing but time and level is added; to JSON, which
// has them, nothing.
void WriteLine(LogLevel level, const std::string& line) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err};
  spdlog::log(kLevels[static_cast<int>(level)], "{}", line);
}

// gRPC's sink is a plain function, so it has to find the log by itself.
std::atomic<EventLog*> grpc_events = nullptr;

// Damaged records that a start tells of each dataset, besides their number.
constexpr size_t kMaxDamagedTold = 5;

void TellDataset(const Dataset& dataset, EventLog& events) {
  // One line for each dataset that the configuration names is no flood.
  events.Add(LogCause::kProgram, LogLevel::kInfo,
             absl::StrCat("dataset '", dataset.name(), "': ", dataset.num_records(), " records in ",
                          dataset.shards().size(), " shards"),
             {.dataset = dataset.name()});
  for (const std::shared_ptr<const Shard>& shard : dataset.shards()) {
    if (shard->index_note().empty()) continue;
    events.Add(LogCause::kIndex, LogLevel::kInfo,
               absl::StrCat(ForeignName(shard->path()), ": ", shard->index_note()),
               {.dataset = dataset.name(), .shard = std::string(shard->base_name())});
  }
  if (dataset.num_damaged_records() == 0) return;
  events.Add(LogCause::kProgram, LogLevel::kWarn,
             absl::StrCat("dataset '", dataset.name(), "': ", dataset.num_damaged_records(),
                          dataset.num_damaged_records() == 1 ? " damaged stretch was"
                                                             : " damaged stretches were",
                          " found while indexing; `systole datasets` lists the first of them"),
             {.dataset = dataset.name()});
  for (const DamageLog::Entry& entry : dataset.DamagedRecords(kMaxDamagedTold)) {
    events.Add(
        LogCause::kDamage, LogLevel::kWarn,
        absl::StrCat("dataset '", dataset.name(), "': shard '", ForeignName(entry.shard),
                     "', offset ", entry.offset, " (record_id ", entry.record, "): ", entry.cause),
        {.dataset = dataset.name(), .shard = entry.shard, .record = entry.record});
  }
}

// A quarter of the budget is for what threads take beside slices, or this: with less, threads would
// wait for each other even over ordinary images. What is beyond the quarter then is a part of the
// 64 MiB below.
constexpr int64_t kMinScratchBytes = int64_t{32} << 20;

// What the server may take beside its budget, its caches and what it has when it is idle: 64 MiB.
// Half of that is left for what comes until the next tick.
constexpr int64_t kTrimBeyondBytes = int64_t{32} << 20;

// To be called with each tick. `given_bytes` is the server's to have.
void KeepMemoryBounded(int64_t given_bytes, MemoryTrim& trim, EventLog& events) {
  const int64_t before = OwnResidentBytes();
  if (!trim.IsDue(before, given_bytes + kTrimBeyondBytes)) return;
  ReturnFreedMemory();
  const int64_t after = OwnResidentBytes();
  trim.Done(after);
  events.Add(
      LogCause::kProgram, LogLevel::kDebug,
      absl::StrCat("freed memory went back to the system: ", before >> 20, " MiB were resident, ",
                   after >> 20, " are, ", given_bytes >> 20, " are its own to keep"));
}

absl::Status Run(const Flags& flags, EventLog& events) {
  SYSTOLE_RETURN_IF_ERROR(ForceSimdTargetFromEnvironment());
  SYSTOLE_ASSIGN_OR_RETURN(const v1::ServerConfig config, ConfigOf(flags));
  SYSTOLE_ASSIGN_OR_RETURN(const TlsOptions tls, TlsOf(flags, config));
  const auto chunks = std::make_shared<ChunkCache>(flags.decompression_cache);
  SYSTOLE_ASSIGN_OR_RETURN(
      Catalogue catalogue,
      Catalogue::Open(config, {.index_dir = flags.index_dir, .chunks = chunks}));
  for (const auto& [name, dataset] : catalogue.datasets()) TellDataset(*dataset, events);
  const absl::Status serves = catalogue.CheckServes();
  for (const auto& [name, refusal] : catalogue.refused()) {
    // The error that the program ends with says it of the first.
    if (!serves.ok() && name == catalogue.refused().begin()->first) continue;
    events.Add(LogCause::kProgram, LogLevel::kError,
               absl::StrCat("dataset '", name, "' is not served: ", refusal.status.message()),
               {.dataset = name});
  }
  SYSTOLE_RETURN_IF_ERROR(serves);
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<ValueCache> cache,
                           ValueCache::Create(flags.cache));
  std::shared_ptr<AccessControl> access;
  if (config.has_access()) {
    std::set<std::string> names;
    for (const v1::DatasetConfig& dataset : config.datasets()) names.insert(dataset.name());
    SYSTOLE_ASSIGN_OR_RETURN(access, AccessControl::Create(config.access(), std::move(names)));
  }
  // Until here a signal ends the process at once: building indexes may take minutes. From here on
  // only sigtimedwait() sees it, because the server's threads inherit the mask. SIGHUP is a
  // terminal that was closed.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&stop_signals, signal);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  // Not an aggregate in the call: g++ 12 would warn of members that it takes for uninitialised.
  ServerOptions options;
  options.listen = flags.listen;
  options.insecure = flags.insecure;
  options.tls = tls;
  options.share_memory = flags.share_memory;
  options.max_connections = flags.max_connections;
  options.max_connections_per_peer = flags.max_connections_per_peer;
  options.handshake_timeout = flags.handshake_timeout;
  options.idle_timeout = flags.idle_timeout;
  options.service.engine.threads = flags.threads;
  options.service.engine.read_timeout = flags.read_timeout;
  const auto budget = static_cast<int64_t>(flags.memory_budget);
  options.service.engine.memory_budget_bytes = budget - budget / 4;
  options.service.engine.scratch_budget_bytes = std::max(budget / 4, kMinScratchBytes);
  options.service.cache = cache;
  options.service.stalled_stream_timeout = flags.stalled_stream_timeout;
  options.service.access = std::move(access);
  options.service.events = &events;
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
                           Server::Start(std::move(catalogue), options));
  if (!flags.port_file.empty()) {
    // Whoever waits for the file never reads half a number.
    SYSTOLE_RETURN_IF_ERROR(
        WriteFileAtomically(flags.port_file, absl::StrCat(server->port(), "\n"), {.sync = false}));
  }
  const auto tell = [&events](LogLevel level, absl::string_view text) {
    events.Add(LogCause::kProgram, level, text);
  };
  tell(LogLevel::kInfo,
       absl::StrCat("serving on ", server->address(), " with ", flags.threads, " threads"));
  if (flags.insecure && !tls.on() && server->port() != 0) {
    tell(LogLevel::kWarn,
         "--insecure: whoever reaches this address can read every dataset, and batches cross the "
         "network unencrypted");
  }
  if (server->sharing().ok()) {
    tell(LogLevel::kInfo, "clients on this machine get batches through shared memory");
  } else if (server->port() == 0) {
    tell(LogLevel::kInfo,
         absl::StrCat("batches are sent, not shared: ", server->sharing().message()));
  }
  if (!OwnJpegEntropyDecoding().ok()) {
    tell(LogLevel::kWarn, absl::StrCat("libjpeg decodes JPEGs alone, at about half the speed: ",
                                       OwnJpegEntropyDecoding().message()));
  }
  if (!server->open_files().ok()) tell(LogLevel::kWarn, server->open_files().message());

  ReturnFreedMemory();  // Reading the shards' indexes took some.
  const int64_t idle_bytes = OwnResidentBytes();
  MemoryTrim trim;
  // Wakes up now and then for its memory, which grows fast; and each second for the log and the
  // service, which have no thread to look at the time.
  constexpr timespec kTick = {.tv_sec = 0, .tv_nsec = 100'000'000};
  constexpr int kTicksPerSecond = 10;
  int signal;
  for (int tick = 1; (signal = sigtimedwait(&stop_signals, nullptr, &kTick)) < 0; ++tick) {
    // Of the caches what is in them: their bounds may be far larger.
    KeepMemoryBounded(idle_bytes + budget + static_cast<int64_t>(chunks->held_bytes()) +
                          cache->stats().memory_bytes,
                      trim, events);
    if (tick < kTicksPerSecond) continue;
    tick = 0;
    events.Tick();
    server->Tick();
  }
  tell(LogLevel::kInfo, absl::StrCat(strsignal(signal), ": draining for at most ",
                                     absl::FormatDuration(flags.drain_timeout)));
  // From here on a second signal ends the process the ordinary way.
  pthread_sigmask(SIG_UNBLOCK, &stop_signals, nullptr);
  // What is left of the timeout is for threads that still compute: they see each row or so that
  // nobody waits any more.
  const absl::Duration timeout = flags.drain_timeout;
  const absl::Duration patience = std::min(timeout / 10, absl::Milliseconds(300));
  const bool drained = server->Drain(timeout - patience);
  events.Flush();
  if (drained) {
    tell(LogLevel::kInfo, "drained");
  } else {
    tell(LogLevel::kWarn, "a client has stopped reading; hung up on it");
  }
  if (!server->StopWork(patience)) {
    tell(LogLevel::kWarn,
         "a thread still works, most likely because its read of a shard hangs; leaving without it");
    spdlog::shutdown();
    std::_Exit(kExitOk);
  }
  return absl::OkStatus();
}

// An option that takes a time from `least` to `most`.
void AddTime(CLI::App& app, const std::string& name, absl::Duration least, absl::Duration most,
             absl::Duration* field, const std::string& help) {
  CLI::callback_t store = [field](const CLI::results_t& texts) {
    *field = ParseDurationText(texts.back()).value();  // Checked before.
    return true;
  };
  app.add_option(name, std::move(store), help)
      ->type_name("TIME")
      ->default_str(absl::FormatDuration(*field))
      ->check([name, least, most](const std::string& text) -> std::string {
        const std::optional<absl::Duration> time = ParseDurationText(text);
        if (!time.has_value()) return absl::StrCat("wants a time, such as 3s or 500ms, got ", text);
        return std::string(CheckDuration(name, *time, least, most).message());
      });
}

int Main(int argc, char** argv) {
  RaiseFileLimit();
  spdlog::set_default_logger(spdlog::stderr_logger_mt("systole-server"));
  spdlog::set_level(spdlog::level::debug);  // Which lines there are is the EventLog's choice.

  Flags flags;
  CLI::App app(
      "Serves TFRecord shards as ready batches over gRPC.\n\n"
      "Example:\n"
      "  systole-server --dataset flowers='data/flowers-train-*.tfrecord'\n");
  app.set_version_flag("--version", SYSTOLE_VERSION);
  app.add_option("--listen", flags.listen, "HOST:PORT (port 0: any free one) or unix:PATH")
      ->type_name("ADDRESS")
      ->take_last()  // So that a script's default can be overridden behind it.
      ->capture_default_str();
  app.add_flag(
      "--insecure", flags.insecure,
      "Allow an address that other machines can reach without TLS, though nothing is encrypted");
  app.add_option("--tls-certificate", flags.tls.certificate,
                 "Serve TLS 1.2 and 1.3 alone, with this certificate (PEM, then those of its CA's "
                 "chain). The three files may be replaced while the server runs")
      ->type_name("FILE");
  app.add_option("--tls-key", flags.tls.key, "Its key (PEM, mode 0600)")->type_name("FILE");
  app.add_option("--tls-client-ca", flags.tls.client_ca,
                 "Clients must show a certificate of one of these CAs (PEM)")
      ->type_name("FILE");
  app.add_flag("--shared-memory,!--no-shared-memory", flags.share_memory,
               "Whether clients of the same user on a Unix socket get batches in shared memory. "
               "Default: they do");
  app.add_option(
         "--max-connections", flags.max_connections,
         "Most connections at once; a further one is closed at once. Default: what the limit "
         "of open files allows, 4096 at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
  app.add_option("--max-connections-per-peer", flags.max_connections_per_peer,
                 "The same for one address, or on a Unix socket one user. Default: half of that")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
  AddTime(app, "--handshake-timeout", absl::Milliseconds(100), absl::Hours(1),
          &flags.handshake_timeout,
          "Drop a connection that has not said within this time what it wants");
  AddTime(app, "--idle-timeout", absl::Milliseconds(100), absl::Hours(24), &flags.idle_timeout,
          "Drop a connection that has had no open call for this time");
  app.add_option("--port-file", flags.port_file,
                 "Once the server serves, write its port's number and a newline here")
      ->type_name("FILE");
  app.add_option(
         "--dataset", flags.datasets,
         "Serve the shards that GLOB matches, or that lie in the folder GLOB, under NAME. Give it "
         "again for another dataset, or with the same NAME for more shards of it")
      ->type_name("NAME=GLOB")
      ->allow_extra_args(false);
  app.add_option("--config", flags.config,
                 "A ServerConfig (systole/v1/config.proto): textproto, or JSON if named .json")
      ->type_name("FILE");
  app.add_option("--threads", flags.threads,
                 "Threads that read, decode and transform at a time. Where they wait for storage, "
                 "up to four times as many do, to keep as many processors busy")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--memory-budget", flags.memory_budget,
                 "Memory for batches in flight, and a quarter of it for what threads need to make "
                 "them, such as 512MB or 4GB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 46, "1 MiB to 64 TiB"))
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--index-dir", flags.index_dir,
                 "Folder for shard indexes, which must exist. Default: beside each shard")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  app.add_option("--compression", flags.compression,
                 "How the shards of --dataset are compressed: detect (each by its first bytes), "
                 "none, gzip, zlib or zstd")
      ->type_name("KIND")
      ->check(CLI::IsMember(
          std::vector<std::string>(CompressionNames().begin(), CompressionNames().end()),
          CLI::ignore_case))
      ->capture_default_str();
  app.add_option("--decompression-cache", flags.decompression_cache,
                 "Memory for decompressed parts of compressed shards, such as 512MB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(uint64_t{16} << 20, uint64_t{1} << 46, "16 MiB to 64 TiB"))
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--cache-memory", flags.cache.memory_bytes,
                 "Memory for what transforms `cache {}` ask to be kept, such as 8GB. Default: none")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 46, "0 to 64 TiB"))
      ->type_name("SIZE");
  app.add_option("--cache-disk", flags.cache.disk_folder,
                 "Folder for what transforms `cache { store: DISK }` ask to be kept, also over "
                 "restarts; for one server alone. Default: none")
      ->type_name("DIR");
  app.add_option("--cache-disk-size", flags.cache.disk_bytes,
                 "The most that is kept in that folder")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 50, "1 MiB to 1 PiB"))
      ->type_name("SIZE")
      ->capture_default_str();
  AddTime(app, "--read-timeout", absl::Milliseconds(100), absl::Hours(24), &flags.read_timeout,
          "A read of a shard that does not return for this long fails its step; clients ask "
          "another server");
  AddTime(app, "--drain-timeout", absl::ZeroDuration(), absl::Hours(24), &flags.drain_timeout,
          "How long clients have to finish their step after SIGTERM, SIGINT or SIGHUP");
  AddTime(app, "--stalled-stream-timeout", absl::Seconds(1), absl::Hours(24),
          &flags.stalled_stream_timeout,
          "A stream whose client takes nothing for so long ends; a client asks again");
  app.add_option(
         "--log-level", flags.log_level,
         "The least level told on stderr: debug (also gRPC's own lines), info (also streams "
         "opened and ended, requests refused), warn (also damage, streams that failed) or "
         "error")
      ->type_name("LEVEL")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kLogLevelNames), std::end(kLogLevelNames))))
      ->capture_default_str();
  app.add_option("--log-format", flags.log_format,
                 "text, or json: each line an object with time, level, cause, message and, where "
                 "it is about them, feed, client, identity, dataset, step, shard, record")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.footer(absl::StrCat(kDurationText, "\n", kExitCodesText));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (!app.remaining().empty()) {
      std::vector<std::string> known;
      for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      }
      std::cerr << UnknownArgumentText("systole-server", app.remaining().front(), known) << "\n";
      return kExitUsage;
    }
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  KeepFreedMemory(flags.threads + 1);  // One for all that do not decode.
  const bool json = flags.log_format == "json";
  if (json) spdlog::set_pattern("%v");
  EventLog events(WriteLine, {.least = LevelOf(flags.log_level),
                              .format = json ? LogFormat::kJson : LogFormat::kText});
  grpc_events = &events;
  RedirectGrpcLog([](absl::string_view message) {
    if (EventLog* const to = grpc_events; to != nullptr) {
      to->Add(LogCause::kGrpc, LogLevel::kDebug, absl::StrCat("gRPC: ", message));
    }
  });
  const absl::Status status = Run(flags, events);
  if (!status.ok()) {
    // Textproto has an error a line.
    for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
      events.Add(LogCause::kProgram, LogLevel::kError, line);
    }
  }
  grpc_events = nullptr;  // gRPC's threads may outlive the log.
  return ExitCodeFor(status);
}

}  // namespace
}  // namespace systole

int main(int argc, char** argv) { return systole::Main(argc, argv); }
