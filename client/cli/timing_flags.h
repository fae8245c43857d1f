// The options that `pace`, `replay` and `load` share: which cores are timed, and how long a step
// of theirs takes.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_TIMING_FLAGS_H_
#define SYSTOLE_CLIENT_CLI_TIMING_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/command_line.h"
#include "client/emulator/chip/program.h"
#include "client/emulator/timing/arrivals.h"
#include "client/emulator/timing/timing_report.h"
#include "core/batch/slice_layout.h"

namespace systole {

// What is timed: the cores, and the program they run, unless the step's time was given.
struct TimedFeed {
  emulator::TimedCores cores;
  std::optional<emulator::Program> program;
};

class TimingFlags {
 public:
  // --model, --slice, --chip, --step-time-us, --queue-depth, --layout.
  void Declare(OptionList& options);

  // The cores that take slices of these tensors, `num_cores` of them. The step's time is
  // --step-time-us, or that of the compiled model on the chip.
  //   InvalidArgument  neither --step-time-us nor --model and --slice, or both; another number of
  //                    cores than the slice has; a value out of range.
  //   NotFound         no such model, chip or slice.
  absl::StatusOr<TimedFeed> FeedFor(const std::vector<emulator::ArrivalTensor>& tensors,
                                    int num_cores) const;

  int64_t queue_depth() const { return queue_depth_; }

 private:
  std::string model_;
  std::string slice_;
  std::string chip_;
  std::optional<int64_t> step_time_us_;
  int64_t queue_depth_ = 2;
  std::string layout_ = "hwcn-tiled";
};

// A slice's tensors as a recording names them.
std::vector<emulator::ArrivalTensor> TensorsOf(const SliceLayout& layout);

// "60s", "1m30s", "250ms". InvalidArgument, naming the option, unless it is more than 0.
absl::StatusOr<absl::Duration> ParsePositiveDuration(absl::string_view option,
                                                     absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_TIMING_FLAGS_H_
