// systole-server: serves TFRecord shards as ready batches.
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/flow/worker_pool.h"
#include "core/memory/allocator.h"
#include "core/numeric/simd_target.h"
#include "core/status/status_macros.h"
#include "proto/textproto/textproto.h"
#include "server/server.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace systole {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitUsage = 2;
constexpr int kExitUnavailable = 4;
constexpr int kExitInternal = 5;

struct Flags {
  std::string listen = ServerOptions().listen;
  bool insecure = false;
  bool share_memory = true;
  std::string port_file;
  std::vector<std::string> datasets;
  std::string config;
  int threads = UsableProcessors();
  uint64_t memory_budget = static_cast<uint64_t>(StepEngineOptions().memory_budget_bytes);
  std::string index_dir;
  double drain_timeout_s = 10;
};

absl::StatusOr<v1::ServerConfig> ConfigOf(const Flags& flags) {
  v1::ServerConfig config;
  if (!flags.config.empty()) SYSTOLE_RETURN_IF_ERROR(LoadMessage(flags.config, config));
  for (const std::string& entry : flags.datasets) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dataset ", entry, ": want NAME=GLOB, such as flowers='data/*.tfrecord'"));
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
    }
    dataset->add_shards(entry.substr(equals + 1));
  }
  return config;
}

// Renamed into place, so that whoever waits for the file never reads half a number.
absl::Status WritePortFile(const std::string& path, int port) {
  const std::string temporary = path + ".tmp";
  {
    std::ofstream out(temporary, std::ios::trunc);
    out << port << "\n";
    out.close();
    if (!out) return absl::InvalidArgumentError(absl::StrCat("cannot write '", temporary, "'"));
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write '", path, "'"));
  }
  return absl::OkStatus();
}

// A descriptor stays open for each shard; the usual soft limit is 1,024.
void RaiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kUnavailable:
      return kExitUnavailable;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return kExitInternal;
    default:
      return kExitUsage;
  }
}

absl::Status Run(const Flags& flags) {
  SYSTOLE_RETURN_IF_ERROR(ForceSimdTargetFromEnvironment());
  SYSTOLE_ASSIGN_OR_RETURN(const v1::ServerConfig config, ConfigOf(flags));
  SYSTOLE_ASSIGN_OR_RETURN(Catalogue catalogue,
                           Catalogue::Open(config, {.index_dir = flags.index_dir}));
  for (const auto& [name, dataset] : catalogue.datasets()) {
    spdlog::info("dataset '{}': {} records in {} shards", name, dataset->num_records(),
                 dataset->shards().size());
    for (const Shard& shard : dataset->shards()) {
      if (!shard.index_note().empty())
        spdlog::info("{}: {}", std::string(shard.path()), shard.index_note());
      for (const DamagedRecord& damaged : shard.index().damaged()) {
        spdlog::warn("{}: record {} at offset {} is damaged: {}", std::string(shard.path()),
                     damaged.record, damaged.span.offset, damaged.cause);
      }
    }
  }
  // Until here a signal ends the process at once: building indexes may take minutes. From here on
  // only sigwait() sees it, because the server's threads inherit the mask.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  SYSTOLE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Server> server,
      Server::Start(
          std::move(catalogue),
          {.listen = flags.listen,
           .insecure = flags.insecure,
           .share_memory = flags.share_memory,
           .service = {.engine = {.threads = flags.threads,
                                  .memory_budget_bytes = static_cast<int64_t>(flags.memory_budget)},
                       .not_shared = [](absl::string_view why) {
                         spdlog::info(
                             "batches are sent to a client on this machine, not shared: {}",
                             std::string(why));
                       }}}));
  if (!flags.port_file.empty()) {
    SYSTOLE_RETURN_IF_ERROR(WritePortFile(flags.port_file, server->port()));
  }
  spdlog::info("serving on {} with {} threads", server->address(), flags.threads);
  if (server->sharing().ok()) {
    spdlog::info("clients on this machine get batches through shared memory");
  } else if (server->port() == 0) {
    spdlog::info("batches are sent, not shared: {}", std::string(server->sharing().message()));
  }
  if (!server->open_files().ok()) {
    spdlog::warn("{}", std::string(server->open_files().message()));
  }

  int signal = 0;
  sigwait(&stop_signals, &signal);
  spdlog::info("{}: draining for at most {} s", strsignal(signal), flags.drain_timeout_s);
  // From here on a second signal ends the process the ordinary way.
  pthread_sigmask(SIG_UNBLOCK, &stop_signals, nullptr);
  if (!server->Drain(absl::Seconds(flags.drain_timeout_s))) {
    spdlog::warn("a client has stopped reading; leaving without it");
    spdlog::shutdown();
    std::_Exit(kExitOk);
  }
  spdlog::info("drained");
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  KeepFreedMemory();
  RaiseFileLimit();
  spdlog::set_default_logger(spdlog::stderr_logger_mt("systole-server"));

  Flags flags;
  CLI::App app(
      "Serves TFRecord shards as ready batches over gRPC.\n\n"
      "Example:\n"
      "  systole-server --dataset flowers='data/flowers-train-*.tfrecord'\n");
  app.set_version_flag("--version", SYSTOLE_VERSION);
  app.add_option("--listen", flags.listen, "HOST:PORT (port 0 = any) or unix:PATH")
      ->take_last()  // So that a script's default can be overridden behind it.
      ->capture_default_str();
  app.add_flag("--insecure", flags.insecure,
               "Allow an address that other machines can reach. Nothing is encrypted.");
  app.add_flag("--shared-memory,!--no-shared-memory", flags.share_memory,
               "On a Unix socket: pass batches to clients of the same user in shared memory "
               "(the default)");
  app.add_option("--port-file", flags.port_file,
                 "Write the port's number and a newline here once serving");
  app.add_option("--dataset", flags.datasets,
                 "NAME=GLOB, repeatable; globs of one name are one dataset")
      ->allow_extra_args(false);
  app.add_option("--config", flags.config, "ServerConfig as textproto (systole/v1/config.proto)");
  app.add_option("--threads", flags.threads, "Threads that read, decode and transform")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--memory-budget", flags.memory_budget,
                 "Bytes of batches in flight, such as 512MB or 4GB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 46, "1 MiB to 64 TiB"))
      ->capture_default_str();
  app.add_option("--index-dir", flags.index_dir,
                 "Folder for shard indexes; default: beside each shard")
      ->check(CLI::ExistingDirectory);
  app.add_option("--drain-timeout", flags.drain_timeout_s,
                 "Seconds that clients have to finish their step after SIGTERM")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  const absl::Status status = Run(flags);
  if (!status.ok()) spdlog::error("{}", std::string(status.message()));
  return ExitCodeOf(status);
}

}  // namespace
}  // namespace systole

int main(int argc, char** argv) { return systole::Main(argc, argv); }
