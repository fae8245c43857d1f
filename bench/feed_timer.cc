// Measures a feed in the same way as the programs of bench/peers measure the peers. The feed
// delivers some warm-up steps into host memory, and then the steps that are measured. The program
// prints one JSON object: the wall time and CPU time of the measured steps, the largest resident
// set, and the mean and deviation of the values of eight further steps.
//
//   feed_timer in-process ..   a StepEngine over the shards, in this process
//   feed_timer client ..       a feed from a server in another process; with --server-pid, the
//                              server's CPU time and memory count, too
//   feed_timer ready-server    a server of ready batches, for `client` to measure the wire alone;
//                              prints its address, and ends when its standard input ends
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "bench/ready_feed.h"
#include "bench/ready_slots.h"
#include "bench/rounds.h"
#include "client/cli/commands/feed_flags.h"
#include "client/cli/console/command_line.h"
#include "client/feed/feed_client.h"
#include "core/cache/value_cache.h"
#include "core/dataset/dataset.h"
#include "core/engine/step_engine.h"
#include "core/json/json_writer.h"
#include "core/numeric/bf16.h"
#include "core/plan/feed_plan.h"
#include "core/process/allocator.h"
#include "core/spec/order_spec.h"
#include "core/status/status_macros.h"

namespace systole::bench {
namespace {

// What a process has used so far.
struct Usage {
  double cpu_seconds = 0;
  double peak_bytes = 0;
};

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (text.empty()) return absl::NotFoundError(absl::StrCat("cannot read '", path, "'"));
  return text;
}

// What process `pid` has used, from /proc (proc(5)).
absl::StatusOr<Usage> UsageOf(int64_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  SYSTOLE_ASSIGN_OR_RETURN(const std::string stat, ReadText(folder + "/stat"));
  // The second field, the program's name in brackets, may hold spaces. So the text is split after
  // the last ')'.
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(stat.rfind(')') + 2), ' ');
  // Fields 14 and 15 of proc(5): ticks in user and in kernel mode.
  int64_t user_ticks = 0;
  int64_t kernel_ticks = 0;
  if (fields.size() < 13 || !absl::SimpleAtoi(fields[11], &user_ticks) ||
      !absl::SimpleAtoi(fields[12], &kernel_ticks)) {
    return absl::InternalError(absl::StrCat(folder, "/stat has another form than expected"));
  }
  Usage usage = {.cpu_seconds = static_cast<double>(user_ticks + kernel_ticks) /
                                static_cast<double>(sysconf(_SC_CLK_TCK))};
  SYSTOLE_ASSIGN_OR_RETURN(const std::string status, ReadText(folder + "/status"));
  const size_t at = status.find("VmHWM:");
  if (at == std::string::npos) {
    return absl::InternalError(absl::StrCat(folder, "/status has no VmHWM"));
  }
  usage.peak_bytes = std::strtod(status.c_str() + at + 6, nullptr) * 1024;
  return usage;
}

// What this process and process `server_pid` have used; with server_pid 0, this process alone.
absl::StatusOr<Usage> UsageWith(int64_t server_pid) {
  Usage usage;
  if (server_pid != 0) {
    SYSTOLE_ASSIGN_OR_RETURN(usage, UsageOf(server_pid));
  }
  usage.cpu_seconds += ProcessCpuSeconds();
  usage.peak_bytes += ProcessPeakBytes();
  return usage;
}

// Mean and standard deviation of the values of tensors. run.py in bench/peers compares them with
// those of the peers' tensors.
class Moments {
 public:
  void Add(const TensorView& tensor) {
    if (tensor.dtype == DType::kFloat32) {
      for (const float value : tensor.As<float>()) Add(value);
    } else if (tensor.dtype == DType::kBfloat16) {
      for (const uint16_t value : tensor.As<uint16_t>()) Add(Bf16ToFloat(value));
    } else if (tensor.dtype == DType::kInt64) {
      for (const int64_t value : tensor.As<int64_t>()) Add(static_cast<double>(value));
    } else {
      for (const uint8_t value : tensor.bytes()) Add(value);
    }
    count_ += static_cast<double>(tensor.num_elements());
  }
  double mean() const { return sum_ / count_; }
  double stddev() const { return std::sqrt(std::max(0.0, squares_ / count_ - mean() * mean())); }

 private:
  void Add(double value) {
    sum_ += value;
    squares_ += value * value;
  }

  double count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

// The values of this many steps are looked at. Photographs differ, so the mean of a single step
// says little.
constexpr int kStepsLookedAt = 8;

// One slice of a step. It is valid until the next call of NextSlice.
struct Slice {
  const SliceLayout* layout = nullptr;
  const uint8_t* data = nullptr;
};
using NextSlice = std::function<absl::StatusOr<Slice>()>;

struct Amount {
  std::string tensor;  // The only tensor that counts: the spec's first output.
  int64_t batch = 0;   // Examples of a step.
  int64_t warm_up = 0;
  int64_t steps = 0;
};

// Measures the steps, and writes the results into the JSON object that is open in `json`.
absl::Status TimeSteps(const Amount& amount, int64_t server_pid, const NextSlice& next,
                       JsonWriter& json) {
  for (int64_t i = 0; i < amount.warm_up; ++i) SYSTOLE_RETURN_IF_ERROR(next().status());
  SYSTOLE_ASSIGN_OR_RETURN(const Usage before, UsageWith(server_pid));
  const auto start = std::chrono::steady_clock::now();
  Slice slice;
  for (int64_t i = 0; i < amount.steps; ++i) {
    SYSTOLE_ASSIGN_OR_RETURN(slice, next());
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  SYSTOLE_ASSIGN_OR_RETURN(const Usage after, UsageWith(server_pid));

  const int counted = slice.layout->IndexOf(amount.tensor);
  if (counted < 0) {
    return absl::InvalidArgumentError(absl::StrCat("the feed has no tensor '", amount.tensor, "'"));
  }
  const SliceTensor& tensor = slice.layout->tensors()[static_cast<size_t>(counted)];
  const TensorSpec& spec = tensor.spec;
  Moments moments;
  for (int i = 0; i < kStepsLookedAt; ++i) {
    SYSTOLE_ASSIGN_OR_RETURN(slice, next());
    moments.Add(slice.layout->View(counted, slice.data));
  }
  json.Field("peer", "systole")
      .Field("version", SYSTOLE_VERSION)
      .Field("images", amount.batch * amount.steps)
      // Labels do not count, as in the peers' programs.
      .Field("bytes", tensor.example_bytes() * amount.batch * amount.steps)
      .Field("seconds", wall.count())
      .Field("cpu_seconds", after.cpu_seconds - before.cpu_seconds)
      .Field("peak_bytes", after.peak_bytes)
      .Field("shape", spec.DebugString())
      .Field("mean", moments.mean())
      .Field("stddev", moments.stddev());
  return absl::OkStatus();
}

// The options of both `in-process` and `client`.
class TimerCommand : public Command {
 public:
  void Declare(OptionList& options) override {
    options.Required("--spec", "FILE", &spec_, "The feed spec");
    options.Required("--steps", "N", &steps_, "Steps measured");
    options.Optional("--warm-up", "N", &warm_up_, "Steps before the measured ones");
  }

 protected:
  absl::StatusOr<v1::FeedSpec> Spec() const {
    if (steps_ < 1 || warm_up_ < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--steps ", steps_, " --warm-up ", warm_up_,
                       ": want at least 1 step and at least 0 warm-up steps"));
    }
    return LoadSpec(spec_);
  }
  Amount AmountOf(const v1::FeedSpec& spec) const {
    return {.tensor = spec.outputs_size() == 0 ? "" : spec.outputs(0).name(),
            .batch = spec.global_batch(),
            .warm_up = warm_up_,
            .steps = steps_};
  }

 private:
  std::string spec_;
  int64_t steps_ = 0;
  int64_t warm_up_ = 4;
};

class InProcessCommand final : public TimerCommand {
 public:
  std::string name() const override { return "in-process"; }
  std::string summary() const override { return "Time the host pipeline in this process"; }
  std::string example() const override {
    return "feed_timer in-process --spec f32.textproto --threads 2 --steps 32 'data/*.tfrecord'";
  }
  void Declare(OptionList& options) override {
    TimerCommand::Declare(options);
    options.PositionalList("SHARDS", &shards_, "Paths or globs");
    options.Optional("--threads", "N", &threads_, "Threads that read, decode and transform");
    options.Optional("--cache-bytes", "N", &cache_bytes_,
                     "Memory for the values that outputs with `cache` keep");
  }
  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(const v1::FeedSpec spec, Spec());
    if (threads_ < 1) return absl::InvalidArgumentError("--threads: want at least 1");
    SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<Dataset> dataset,
                             Dataset::Open(spec.dataset(), shards_));
    SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<const FeedPlan> plan,
                             FeedPlan::Create(spec, dataset));
    SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<ValueCache> cache,
                             ValueCache::Create({.memory_bytes = cache_bytes_}));
    StepEngine engine({.threads = static_cast<int>(threads_)});
    // The stream goes on beyond the last measured step, as a trainer's stream does. Some measured
    // steps are ready before the clock starts. When the clock stops, about as many later steps are
    // ready, so the two numbers balance.
    SYSTOLE_ASSIGN_OR_RETURN(
        const std::unique_ptr<StepStream> stream,
        engine.Open(plan, {.count = int64_t{1} << 40, .core_end = NumCoresOf(spec)}, {}, "",
                    std::move(cache)));
    std::optional<SlicePtr> slice;
    const auto next = [&]() -> absl::StatusOr<Slice> {
      for (int core = 0; core < NumCoresOf(spec); ++core) {
        SYSTOLE_ASSIGN_OR_RETURN(slice, stream->Next());
        if (!slice.has_value()) return absl::OutOfRangeError("the feed has ended");
      }
      return Slice{&(*slice)->layout(), (*slice)->data()};
    };
    JsonWriter json;
    json.BeginObject();
    SYSTOLE_RETURN_IF_ERROR(TimeSteps(AmountOf(spec), /*server_pid=*/0, next, json));
    console.out << json.EndObject().text() << "\n";
    return absl::OkStatus();
  }

 private:
  std::vector<std::string> shards_;
  int64_t threads_ = 1;
  int64_t cache_bytes_ = 0;
};

class ClientCommand final : public TimerCommand {
 public:
  std::string name() const override { return "client"; }
  std::string summary() const override { return "Time the steps that a server delivers"; }
  std::string example() const override {
    return "feed_timer client --server 127.0.0.1:8470 --server-pid 4711 --spec f32.textproto "
           "--steps 32";
  }
  void Declare(OptionList& options) override {
    TimerCommand::Declare(options);
    flags_.Declare(options);
    options.Optional("--server-pid", "PID", &server_pid_,
                     "A process whose CPU time and memory count too");
  }
  absl::Status Run(const Console& console) override {
    SYSTOLE_ASSIGN_OR_RETURN(const v1::FeedSpec spec, Spec());
    SYSTOLE_ASSIGN_OR_RETURN(FeedClientOptions options, flags_.ToOptions(console));
    SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FeedClient> client,
                             FeedClient::Create(spec, std::move(options)));
    std::optional<Step> step;
    const auto next = [&]() -> absl::StatusOr<Slice> {
      step.reset();  // Gives its memory back to the client.
      SYSTOLE_ASSIGN_OR_RETURN(step, client->Next());
      if (!step.has_value()) return absl::OutOfRangeError("the feed has ended");
      return Slice{&step->layout(), step->slice(client->core_begin())};
    };
    JsonWriter json;
    json.BeginObject();
    SYSTOLE_RETURN_IF_ERROR(TimeSteps(AmountOf(spec), server_pid_, next, json));
    // run.py in bench/peers checks by these fields that the steps came by the transport that it
    // measures.
    const FeedClientStats stats = client->stats();
    json.Field("shared_bytes", stats.shared_payload_bytes)
        .Field("compact_steps", stats.compact_steps);
    console.out << json.EndObject().text() << "\n";
    return absl::OkStatus();
  }

 private:
  FeedFlags flags_;
  int64_t server_pid_ = 0;
};

class ReadyServerCommand final : public Command {
 public:
  std::string name() const override { return "ready-server"; }
  std::string summary() const override { return "Serve ready batches until stdin ends"; }
  std::string example() const override { return "feed_timer ready-server --batch 128 --cores 8"; }
  void Declare(OptionList& options) override {
    options.Required("--batch", "N", &batch_, "Images a step");
    options.Optional("--cores", "N", &cores_, "Slices that a step is cut into");
    options.Optional("--listen", "ADDRESS", &listen_,
                     "HOST:0 (any port), or unix:PATH to share memory");
  }
  absl::Status Run(const Console& console) override {
    if (batch_ < 1 || cores_ < 1 || batch_ % cores_ != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--batch ", batch_, " --cores ", cores_,
                       ": want positive numbers, and a batch that is a multiple of the cores"));
    }
    const ReadySteps ready(batch_, static_cast<int>(cores_));
    if (absl::StartsWith(listen_, "unix:")) {
      const RunningSlotServer server(ready, listen_);
      ServeUntilStdinEnds(server.address(), console.out);
    } else {
      ReadyService service(ready);
      const RunningServer server(service, listen_);
      ServeUntilStdinEnds(server.address, console.out);
    }
    return absl::OkStatus();
  }

 private:
  static void ServeUntilStdinEnds(const std::string& address, std::ostream& out) {
    out << address << std::endl;
    std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  }

  int64_t batch_ = 0;
  int64_t cores_ = 1;
  std::string listen_ = "127.0.0.1:0";
};

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) {
  systole::KeepFreedMemory();
  std::vector<std::unique_ptr<systole::Command>> commands;
  commands.push_back(std::make_unique<systole::bench::InProcessCommand>());
  commands.push_back(std::make_unique<systole::bench::ClientCommand>());
  commands.push_back(std::make_unique<systole::bench::ReadyServerCommand>());
  const std::vector<std::string> args(argv + 1, argv + argc);
  return systole::RunCommandLine(args, commands, SYSTOLE_VERSION,
                                 {.out = std::cout, .err = std::cerr});
}
