#include "client/cli/pacing/load_level.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/pacing/core_queues.h"
#include "client/cli/pacing/paced_feed.h"
#include "client/servers/server_status.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/metrics/metric.h"
#include "core/status/status_macros.h"
#include "proto/metrics/metric_messages.h"

namespace systole {
namespace {

// How often the waiting thread reports the time that has passed.
constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr absl::Duration kStatusTimeout = absl::Seconds(10);
// More processors than any server has.
constexpr double kMostProcessors = 1 << 16;

// The trainers of one level, each on a thread of its own, and their progress.
class Trainers {
 public:
  static absl::StatusOr<std::unique_ptr<Trainers>> Create(const LoadOptions& options, int count) {
    std::vector<std::unique_ptr<CoreQueues>> queues;
    for (int i = 0; i < count; ++i) {
      v1::FeedSpec spec = options.spec;
      spec.set_seed(spec.seed() + static_cast<uint64_t>(i));
      SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<FeedClient> client,
                               FeedClient::Create(spec, options.client));
      SYSTOLE_ASSIGN_OR_RETURN(
          std::unique_ptr<CoreQueues> made,
          CoreQueues::Create(std::move(client), options.cores.infeed.queue_depth));
      queues.push_back(std::move(made));
    }
    return std::unique_ptr<Trainers>(new Trainers(options.cores.infeed, std::move(queues)));
  }

  ~Trainers() { Cancel(); }

  // Waits until every trainer has its first step. Returns false if a trainer ended before that.
  bool WaitForFirstSteps() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    while (started_ < count() && ended_ == 0) changed_.Wait(mu_);
    return started_ == count();
  }
  // Waits for `timeout`, or until a trainer has ended. Returns false if a trainer has ended, which
  // should not happen before Stop().
  bool WaitWhileRunning(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (ended_ == 0) changed_.WaitFor(mu_, timeout);
    return ended_ == 0;
  }
  // Ends the trainers and returns their results, or the first error.
  absl::StatusOr<std::vector<emulator::PacedResult>> Stop() ABSL_LOCKS_EXCLUDED(mu_) {
    Cancel();
    MutexLock lock(mu_);
    while (ended_ < count()) changed_.Wait(mu_);
    if (!error_.ok()) return error_;
    return std::move(results_);
  }

  // How many steps have arrived in full, at all trainers together. Counts steps and not bytes,
  // because the size of a step depends on the form in which it is sent.
  int64_t steps_received() const {
    int64_t steps = 0;
    for (const auto& queues : queues_) steps += queues->client().stats().steps_received;
    return steps;
  }

  int64_t retries() const {
    int64_t retries = 0;
    for (const auto& queues : queues_) retries += queues->client().stats().retries;
    return retries;
  }

  MissingTally missing() const {
    MissingTally missing;
    for (const auto& queues : queues_) missing.Add(queues->client().stats());
    return missing;
  }

 private:
  Trainers(const emulator::InfeedOptions& infeed, std::vector<std::unique_ptr<CoreQueues>> queues)
      : queues_(std::move(queues)),
        results_(queues_.size()),
        threads_(static_cast<int>(queues_.size())) {
    for (int i = 0; i < count(); ++i) {
      threads_.Submit([this, infeed, i] { Run(infeed, static_cast<size_t>(i)); });
    }
  }

  void Cancel() {
    for (const auto& queues : queues_) queues->Cancel();
  }

  int count() const { return static_cast<int>(queues_.size()); }

  void Run(const emulator::InfeedOptions& infeed, size_t trainer) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::StatusOr<emulator::PacedResult> result = emulator::RunPaced(
        ArrivalsOf(*queues_[trainer]),
        {.infeed = infeed, .on_step = [this](const emulator::StepRecord& record, absl::Duration) {
           if (record.step != 0) return;
           MutexLock lock(mu_);
           ++started_;
           changed_.SignalAll();
         }});
    MutexLock lock(mu_);
    ++ended_;
    if (result.ok()) {
      results_[trainer] = *std::move(result);
    } else if (error_.ok()) {
      error_ = result.status();
    }
    changed_.SignalAll();
  }

  const std::vector<std::unique_ptr<CoreQueues>> queues_;
  Mutex mu_;
  CondVar changed_;
  int started_ ABSL_GUARDED_BY(mu_) = 0;
  int ended_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  std::vector<emulator::PacedResult> results_ ABSL_GUARDED_BY(mu_);
  WorkerPool threads_;  // The last member: the threads use the other members.
};

struct ServerUse {
  double cpu_seconds = 0;
  int cpus = 0;
  int64_t resident_bytes = 0;
};

// What all servers together have used so far. Returns nullopt if a server does not answer, or
// if its number of processors is below 1 or above kMostProcessors.
std::optional<ServerUse> AskServers(const FeedClientOptions& options) {
  ServerUse sum;
  for (const std::string& server : options.servers) {
    const absl::StatusOr<v1::ServerStatusResponse> status =
        AskServerStatus(server, kStatusTimeout, options.security);
    if (!status.ok()) return std::nullopt;
    const absl::StatusOr<std::vector<MetricReading>> metrics = MetricsOf(*status, server);
    if (!metrics.ok()) return std::nullopt;
    const double cpus = FindMetric(*metrics, "cpus").value_or(0);
    if (cpus < 1 || cpus > kMostProcessors) return std::nullopt;
    sum.cpus += static_cast<int>(cpus);
    sum.cpu_seconds += FindMetric(*metrics, "cpu_seconds").value_or(0);
    sum.resident_bytes += static_cast<int64_t>(FindMetric(*metrics, "resident_bytes").value_or(0));
  }
  return sum;
}

}  // namespace

double LoadLevel::examples() const {
  return static_cast<double>(steps * cores.per_core_batch * cores.infeed.num_cores);
}

double LoadLevel::lowest_au() const {
  double lowest = 1;
  for (const emulator::PacedResult& trainer : trainers) {
    lowest = std::min(lowest, trainer.books.utilisation().au.value_or(0));
  }
  return lowest;
}

double LoadLevel::lowest_wall_au() const {
  double lowest = 1;
  for (const emulator::PacedResult& trainer : trainers) {
    lowest = std::min(lowest, trainer.wall_au.value_or(0));
  }
  return lowest;
}

double LoadLevel::cores_busy() const {
  double busy = 0;
  for (const emulator::PacedResult& trainer : trainers) {
    busy += trainer.books.utilisation().au.value_or(0) * cores.infeed.num_cores;
  }
  return busy;
}

emulator::LatencyHistogram LoadLevel::waits() const {
  emulator::LatencyHistogram waits;
  for (const emulator::PacedResult& trainer : trainers) waits.Merge(trainer.books.waits());
  return waits;
}

std::optional<double> LoadLevel::server_cpus_busy() const {
  if (!server_cpu_seconds.has_value()) return std::nullopt;
  return *server_cpu_seconds / absl::ToDoubleSeconds(window);
}

std::optional<double> LoadLevel::cores_fed_per_server_cpu() const {
  const std::optional<double> busy = server_cpus_busy();
  if (!busy.has_value() || *busy <= 0) return std::nullopt;
  return cores_worth() / *busy;
}

absl::StatusOr<LoadLevel> RunLoadLevel(const LoadOptions& options, int trainers,
                                       const std::function<void(absl::Duration)>& on_time) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<Trainers> running,
                           Trainers::Create(options, trainers));
  std::optional<ServerUse> server_before;
  if (running->WaitForFirstSteps()) server_before = AskServers(options.client);
  const MonotonicClock clock = SteadyClock();
  const absl::Duration begin = clock();
  const int64_t steps_before = running->steps_received();
  absl::Duration passed;
  do {
    if (!running->WaitWhileRunning(std::min(kTick, options.duration - passed))) break;
    passed = clock() - begin;
    if (on_time != nullptr) on_time(std::min(passed, options.duration));
  } while (passed < options.duration);
  LoadLevel level = {.cores = options.cores, .window = clock() - begin};
  level.steps = running->steps_received() - steps_before;
  std::optional<ServerUse> server_after;
  if (server_before.has_value()) server_after = AskServers(options.client);
  SYSTOLE_ASSIGN_OR_RETURN(level.trainers, running->Stop());
  level.missing = running->missing();
  level.retries = running->retries();
  if (passed < options.duration) {
    return absl::UnavailableError(absl::StrCat("a trainer's feed ended without an error after ",
                                               absl::FormatDuration(level.window), " of ",
                                               absl::FormatDuration(options.duration),
                                               ", though it has no end; check that every server "
                                               "is a systole-server of this version"));
  }
  if (server_before.has_value() && server_after.has_value()) {
    level.server_cpu_seconds = server_after->cpu_seconds - server_before->cpu_seconds;
    level.server_cpus = server_after->cpus;
    level.server_resident_bytes = server_after->resident_bytes;
  }
  return level;
}

absl::StatusOr<int> LargestFed(int most, const std::function<absl::StatusOr<bool>(int)>& is_fed) {
  int fed = 0;             // The largest number of trainers known to be fed.
  int starved = most + 1;  // The smallest number known not to be fed, or most + 1.
  for (int ask = 1; ask < starved; ask = std::min(2 * ask, most)) {
    SYSTOLE_ASSIGN_OR_RETURN(const bool yes, is_fed(ask));
    (yes ? fed : starved) = ask;
    if (ask == most) break;
  }
  while (starved - fed > 1) {
    const int ask = fed + (starved - fed) / 2;
    SYSTOLE_ASSIGN_OR_RETURN(const bool yes, is_fed(ask));
    (yes ? fed : starved) = ask;
  }
  return fed;
}

absl::StatusOr<int> RampUp(int most, const std::function<absl::StatusOr<bool>(int)>& is_fed) {
  int fed = 0;
  bool all_fed = true;
  for (int ask = 1;; ask = std::min(2 * ask, most)) {
    SYSTOLE_ASSIGN_OR_RETURN(const bool yes, is_fed(ask));
    all_fed = all_fed && yes;
    if (all_fed) fed = ask;
    if (ask == most) return fed;
  }
}

}  // namespace systole
