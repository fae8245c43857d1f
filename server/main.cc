// systole-server: serves TFRecord shards as ready batches.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/cache/disk_store.h"
#include "core/compression/chunk_cache.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/processors.h"
#include "core/image/jpeg/entropy_check.h"
#include "core/log/event_log.h"
#include "core/numeric/simd_target.h"
#include "core/process/allocator.h"
#include "core/process/exit_code.h"
#include "core/process/memory_trim.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/local/file_sink.h"
#include "core/text/duration_text.h"
#include "core/text/foreign_text.h"
#include "core/text/size_text.h"
#include "core/text/unknown_argument.h"
#include "core/textproto/message_text.h"
#include "proto/framing/grpc_log.h"
#include "proto/slots/slot_socket.h"
#include "server/config/config_flags.h"
#include "server/config_reload.h"
#include "server/dataset_log.h"
#include "server/otlp/otlp_options.h"
#include "server/otlp/span_exporter.h"
#include "server/server.h"
#include "server/service_manager/passed_socket.h"
#include "server/service_manager/service_notifier.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace systole {
namespace {

// The complete config. It has the values of the config file `path` (empty: no file), but those of
// `flags` override them. Fields that are set in neither have their defaults.
absl::StatusOr<v1::ServerConfig> ConfigOf(const std::string& path, const v1::ServerConfig& flags) {
  v1::ServerConfig config;
  if (!path.empty()) SYSTOLE_RETURN_IF_ERROR(LoadMessage(path, config));
  Override(flags, config);
  absl::StatusOr<v1::ServerConfig> complete = CompleteConfig(std::move(config));
  if (complete.ok()) return complete;
  // Flags have been checked, so the error is in the file.
  return absl::InvalidArgumentError(
      absl::StrCat(ForeignName(path), ": ", complete.status().message()));
}

// Logs each line of the message on its own. An error in textproto has a line for each mistake.
void LogError(const absl::Status& error, EventLog& events) {
  for (const absl::string_view line : absl::StrSplit(error.message(), '\n')) {
    events.Add(LogCause::kProgram, LogLevel::kError, line);
  }
}

// Reads the config file again, and begins to bring it into force.
void ReadAgain(const std::string& path, const v1::ServerConfig& flags, ConfigReload& reload,
               EventLog& events) {
  absl::StatusOr<v1::ServerConfig> config = ConfigOf(path, flags);
  if (config.ok()) {
    events.Add(LogCause::kProgram, LogLevel::kInfo,
               absl::StrCat("SIGHUP: ", ForeignName(path), " was read again"));
    reload.Begin(*std::move(config));
    return;
  }
  LogError(config.status(), events);
  events.Add(LogCause::kProgram, LogLevel::kError,
             "SIGHUP: the config file has errors; the server goes on as before");
}

int ThreadsOf(const v1::ServerConfig& config) {
  return config.threads() > 0 ? static_cast<int>(config.threads()) : UsableProcessors();
}

// A descriptor stays open for each shard, and the usual soft limit is 1,024.
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

// Writes one line of the log. spdlog adds the time and the level to a line of text. A line of JSON
// has both already, and spdlog adds nothing.
void WriteLine(LogLevel level, const std::string& line) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err};
  spdlog::log(kLevels[static_cast<int>(level)], "{}", line);
}

// gRPC's sink is a plain function, so it finds the log through this pointer.
std::atomic<EventLog*> grpc_events = nullptr;

// Besides the slices, threads may take a quarter of the memory budget as scratch memory, and at
// least this much. With less, threads would wait for each other even with ordinary images. If
// kMinScratchBytes is more than the quarter, the excess is a part of the 64 MiB below.
constexpr int64_t kMinScratchBytes = int64_t{32} << 20;

// The server may take 64 MiB more than its budget, its caches and its idle memory. Once it takes
// half of the 64 MiB, memory is trimmed. The other half is for what it takes until the next tick.
constexpr int64_t kTrimBeyondBytes = int64_t{32} << 20;

// Call it with each tick. `given_bytes` are the server's budget, caches and idle memory.
void KeepMemoryBounded(int64_t given_bytes, MemoryTrim& trim, EventLog& events) {
  const int64_t before = OwnResidentBytes();
  if (!trim.IsDue(before, given_bytes + kTrimBeyondBytes)) return;
  ReturnFreedMemory();
  const int64_t after = OwnResidentBytes();
  trim.Done(after);
  events.Add(LogCause::kProgram, LogLevel::kDebug,
             absl::StrCat("freed memory went back to the system: ", before >> 20,
                          " MiB were resident before, ", after >> 20, " MiB are now; ",
                          given_bytes >> 20, " MiB are for budget, caches and idle memory"));
}

// At the end of the server, the most time to send the last spans. It is a part of --drain-timeout.
constexpr absl::Duration kLastSpansTimeout = absl::Seconds(2);

// The signals that the server waits for.
sigset_t AwaitedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

// Writes the file atomically, so a program that waits for the file never reads half a number.
absl::Status WritePort(const std::string& file, int port) {
  if (file.empty()) return absl::OkStatus();
  return WriteFileAtomically(file, absl::StrCat(port, "\n"), {.sync = false});
}

// Opens the admin port of `config`, if it has one. Blocks AwaitedSignals() meanwhile: the port's
// thread inherits this mask, so it never gets one of these signals.
absl::StatusOr<std::unique_ptr<AdminPort>> OpenAdmin(const v1::ServerConfig& config,
                                                     std::shared_ptr<AccessControl> access,
                                                     EventLog& events) {
  const sigset_t signals = AwaitedSignals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  absl::StatusOr<std::unique_ptr<AdminPort>> admin =
      Server::OpenAdmin(config, std::move(access), &events);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!admin.ok() || *admin == nullptr) return admin;
  SYSTOLE_RETURN_IF_ERROR(WritePort(config.admin_port_file(), (*admin)->port()));
  events.Add(LogCause::kProgram, LogLevel::kInfo,
             absl::StrCat("probes and metrics on http", config.has_tls() ? "s" : "", "://",
                          (*admin)->address(), "/"));
  return admin;
}

// Where spans are sent; nullopt: nowhere. A bad address in the flag is an error. A bad variable of
// the environment is logged and ignored, because it may be meant for other programs.
absl::StatusOr<std::optional<OtlpOptions>> SpansOf(const v1::ServerConfig& config,
                                                   EventLog& events) {
  absl::StatusOr<std::optional<OtlpOptions>> options =
      OtlpOptionsOf(config.otlp_endpoint(), SYSTOLE_VERSION, VariableOfServer);
  if (options.ok() || !config.otlp_endpoint().empty()) return options;
  events.Add(LogCause::kProgram, LogLevel::kWarn,
             absl::StrCat("no spans are sent: ", options.status().message()));
  return std::optional<OtlpOptions>();
}

// Serves until a signal ends the server. `path` is the config file (empty: no file). Each time that
// the file is read, `flags` override its values.
absl::Status Run(const v1::ServerConfig& config, const std::string& path,
                 const v1::ServerConfig& flags, EventLog& events) {
  SYSTOLE_RETURN_IF_ERROR(ForceSimdTargetFromEnvironment());
  SYSTOLE_ASSIGN_OR_RETURN(
      OwnedFd passed,
      TakePassedSocket(UnixSocketPath(config.listen()).value_or(""), VariableOfServer, ::getpid()));
  ServiceNotifier notifier = ServiceNotifier::OfEnvironment(
      VariableOfServer, ::getpid(),
      [&events](absl::string_view why) { events.Add(LogCause::kProgram, LogLevel::kWarn, why); });
  std::shared_ptr<AccessControl> access;
  if (config.has_access()) {
    SYSTOLE_ASSIGN_OR_RETURN(access,
                             AccessControl::Create(config.access(), Catalogue::NamesOf(config)));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const std::optional<OtlpOptions> otlp, SpansOf(config, events));
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<AdminPort> admin, OpenAdmin(config, access, events));
  const auto chunks = std::make_shared<ChunkCache>(SizeOf(config.decompression_cache()));
  ShardOptions options;
  options.index_dir = config.index_dir();
  options.write_index = config.write_index();
  options.chunks = chunks;
  notifier.Starting("opening the datasets");
  SYSTOLE_ASSIGN_OR_RETURN(Catalogue catalogue, Catalogue::Open(config, options));
  for (const auto& [name, dataset] : catalogue.datasets()) LogServed(*dataset, events);
  const absl::Status serves = catalogue.CheckServes();
  for (const auto& [name, refusal] : catalogue.refused()) {
    // If no dataset is served, the program ends with the error of the first one.
    if (!serves.ok() && name == catalogue.refused().begin()->first) continue;
    LogRefused(name, refusal, events);
  }
  SYSTOLE_RETURN_IF_ERROR(serves);
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<ValueCache> cache,
                           ValueCache::Create({.memory_bytes = SizeOf(config.cache_memory()),
                                               .disk_folder = config.cache_disk(),
                                               .disk_bytes = SizeOf(config.cache_disk_size())}));
  // Up to here a signal ends the process at once, because building indexes may take minutes. From
  // here on only sigtimedwait() sees a signal, because the server's threads inherit the mask.
  const sigset_t signals = AwaitedSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // Set member by member: for an aggregate in the call, g++ 12 warns of uninitialised members.
  FeedServiceOptions service;
  service.engine.threads = ThreadsOf(config);
  service.engine.read_timeout = TimeOf(config.read_timeout());
  const int64_t budget = SizeOf(config.memory_budget());
  service.engine.memory_budget_bytes = budget - budget / 4;
  service.engine.scratch_budget_bytes = std::max(budget / 4, kMinScratchBytes);
  const int64_t read_budget = config.has_read_budget() ? SizeOf(config.read_budget()) : budget / 4;
  service.engine.read_budget_bytes = read_budget;
  if (!config.block_cache().empty()) {
    SYSTOLE_ASSIGN_OR_RETURN(
        service.engine.block_cache,
        DiskStore::Open(config.block_cache(), SizeOf(config.block_cache_bytes())));
    service.read_room.disk_bytes = SizeOf(config.block_cache_bytes());
  }
  service.read_room.memory_bytes = read_budget;
  service.cache = cache;
  service.stalled_stream_timeout = TimeOf(config.stalled_stream_timeout());
  service.access = access;
  service.events = &events;
  if (otlp.has_value()) {
    SYSTOLE_ASSIGN_OR_RETURN(service.spans, SpanExporter::Create(*otlp, &events));
  }
  SYSTOLE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Server> server,
      Server::Start(std::move(catalogue), config, service, std::move(admin), std::move(passed)));
  SYSTOLE_RETURN_IF_ERROR(WritePort(config.port_file(), server->port()));
  const auto tell_ready = [&] {
    const size_t served = server->catalogue()->datasets().size();
    notifier.Ready(absl::StrCat("serving ", served, served == 1 ? " dataset on " : " datasets on ",
                                server->address()));
  };
  const auto tell = [&events](LogLevel level, absl::string_view text) {
    events.Add(LogCause::kProgram, level, text);
  };
  tell(LogLevel::kInfo, absl::StrCat("serving on ", server->address(), " with ",
                                     service.engine.threads, " threads"));
  if (config.insecure() && !config.has_tls() && server->port() != 0) {
    tell(LogLevel::kWarn,
         "--insecure: anyone who reaches this address can read every dataset, and batches cross "
         "the network unencrypted");
  }
  if (service.spans != nullptr) {
    tell(LogLevel::kInfo, absl::StrCat("spans go to ", service.spans->collector()));
  }
  if (server->sharing().ok()) {
    tell(LogLevel::kInfo, "clients on this machine get batches through shared memory");
  } else if (server->port() == 0) {
    tell(LogLevel::kInfo,
         absl::StrCat("batches are sent, not shared: ", server->sharing().message()));
  }
  if (!OwnJpegEntropyDecoding().ok()) {
    tell(LogLevel::kWarn,
         absl::StrCat("JPEGs are decoded by libjpeg alone, at about half the speed: ",
                      OwnJpegEntropyDecoding().message()));
  }
  if (!server->open_files().ok()) tell(LogLevel::kWarn, server->open_files().message());

  ReturnFreedMemory();  // Reading the shards' indexes took some memory.
  const int64_t idle_bytes = OwnResidentBytes();
  MemoryTrim trim;
  // The loop below checks the process's memory in each tick, because memory can grow fast. Once a
  // second the loop calls Tick() of the log and of the server: neither has a thread for this.
  ConfigReload reload(config, options, *server, access, events);
  bool reloading = false;
  tell_ready();
  constexpr timespec kTick = {.tv_sec = 0, .tv_nsec = 100'000'000};
  constexpr int kTicksPerSecond = 10;
  int signal;
  for (int tick = 1;; ++tick) {
    signal = sigtimedwait(&signals, nullptr, &kTick);
    if (signal == SIGHUP && !path.empty()) {
      notifier.Reloading();
      reloading = true;
      ReadAgain(path, flags, reload, events);
    } else if (signal >= 0) {
      break;  // SIGHUP without a file: the server runs by hand, and its terminal was closed.
    }
    reload.Tick();
    if (reloading && !reload.busy()) {
      tell_ready();
      reloading = false;
    }
    // Counts the bytes that the caches hold now, not their bounds, which may be far larger.
    KeepMemoryBounded(idle_bytes + budget + static_cast<int64_t>(chunks->held_bytes()) +
                          cache->stats().memory_bytes + server->read_ahead_bytes(),
                      trim, events);
    if (tick >= kTicksPerSecond) {
      tick = 0;
      events.Tick();
      server->Tick();
    }
    // Comes last, so that no sign of life is given while something above hangs.
    notifier.Alive();
  }
  notifier.Stopping(absl::StrCat("draining for at most ", config.drain_timeout()));
  tell(LogLevel::kInfo,
       absl::StrCat(strsignal(signal), ": draining for at most ", config.drain_timeout()));
  // From here on, a second signal has its default effect: it ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  // `patience` is the part of the timeout that StopWork() gets for threads that still compute. They
  // notice after about one row of an image that they must stop.
  const absl::Duration timeout = TimeOf(config.drain_timeout());
  const absl::Duration patience = std::min(timeout / 10, absl::Milliseconds(300));
  const MonotonicClock clock = SteadyClock();
  const absl::Duration begin = clock();
  const bool drained = server->Drain(timeout - patience);
  const bool sent =
      service.spans == nullptr ||
      service.spans->End(
          std::min(kLastSpansTimeout, std::max(patience, timeout - patience - (clock() - begin))));
  events.Flush();
  if (drained) {
    tell(LogLevel::kInfo, "drained");
  } else {
    tell(LogLevel::kWarn,
         "not all calls ended in time, probably because a client had stopped reading; closed all "
         "connections");
  }
  const bool stopped = server->StopWork(patience);
  if (!reload.Stop(patience) || !stopped || !sent) {
    tell(LogLevel::kWarn,
         "a thread still works, most likely because its read of a shard hangs; not waiting for it");
    spdlog::shutdown();
    std::_Exit(kExitOk);
  }
  return absl::OkStatus();
}

// Declares the flags of ConfigFlags(). When the command line is parsed, sets them in `config`.
void AddFlags(CLI::App& app, v1::ServerConfig& config) {
  for (const ConfigFlag& flag : ConfigFlags()) {
    CLI::Option* option = nullptr;
    if (flag.is_switch()) {
      const std::string off = absl::StrCat("--no-", flag.name.substr(2));
      const bool is_on = flag.about->default_value() == "true";
      option = app.add_flag_function(
          absl::StrCat(flag.name, ",!", off),
          [&flag, &config](int64_t count) { SetFlag(flag, count > 0 ? "true" : "false", config); },
          absl::StrCat(flag.about->help(), ". Default: ", is_on ? flag.name : off));
    } else {
      option = app.add_option(
          flag.name,
          [&flag, &config](const CLI::results_t& texts) {
            for (const std::string& text : texts) SetFlag(flag, text, config);
            return true;
          },
          flag.about->help());
      option->type_name(flag.about->value())->default_str(flag.about->default_value());
    }
    option->check([&flag](const std::string& text) {
      return std::string(CheckFlagText(flag, text).message());
    });
    if (flag.is_list()) {
      option->take_all()->allow_extra_args(false);
    } else {
      option->take_last();  // A user's flag may come after the same flag in a script.
    }
  }
}

int Main(int argc, char** argv) {
  RaiseFileLimit();
  spdlog::set_default_logger(spdlog::stderr_logger_mt("systole-server"));
  spdlog::set_level(spdlog::level::debug);  // EventLog decides which lines are written.

  CLI::App app(
      "Serves TFRecord shards as ready batches over gRPC.\n\n"
      "Example:\n"
      "  systole-server --dataset flowers='data/flowers-train-*.tfrecord'\n");
  app.set_version_flag("--version", SYSTOLE_VERSION);
  std::string path;
  app.add_option("--config", path,
                 "A ServerConfig (systole/v1/config.proto): textproto, or JSON if named .json. It "
                 "can set all that flags set; a flag overrides it")
      ->type_name("FILE");
  v1::ServerConfig flags;
  AddFlags(app, flags);
  app.footer(absl::StrCat(kDurationText, "\n", kSizeText, "\n", kExitCodesText));
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
  const absl::StatusOr<v1::ServerConfig> config = ConfigOf(path, flags);
  if (config.ok()) KeepFreedMemory(ThreadsOf(*config) + 1);  // + 1: for threads that do not decode.
  // If the config has errors, the flags alone say how to log them.
  const v1::ServerConfig& log = config.ok() ? *config : flags;
  const bool json = log.log_format() == "json";
  if (json) spdlog::set_pattern("%v");
  EventLog events(WriteLine, {.least = LevelOf(log.log_level()),
                              .format = json ? LogFormat::kJson : LogFormat::kText});
  grpc_events = &events;
  RedirectGrpcLog([](absl::string_view message) {
    if (EventLog* const to = grpc_events; to != nullptr) {
      to->Add(LogCause::kGrpc, LogLevel::kDebug, absl::StrCat("gRPC: ", message));
    }
  });
  const absl::Status status = config.ok() ? Run(*config, path, flags, events) : config.status();
  if (!status.ok()) LogError(status, events);
  grpc_events = nullptr;  // gRPC's threads may outlive the log.
  return ExitCodeFor(status);
}

}  // namespace
}  // namespace systole

int main(int argc, char** argv) { return systole::Main(argc, argv); }
