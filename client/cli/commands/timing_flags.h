// The options that `pace`, `replay` and `load` share. They give the time of a step, or a model and
// chips from which this time is computed, and describe the cores' infeed queues.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_TIMING_FLAGS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_TIMING_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/console/command_line.h"
#include "client/emulator/chip/chip_program.h"
#include "client/emulator/chip/infeed_layout.h"
#include "client/emulator/model/model.h"
#include "client/emulator/timing/arrivals.h"
#include "client/emulator/timing/timing_report.h"
#include "core/batch/slice_layout.h"
#include "systole/v1/chip.pb.h"

namespace systole {

// The cores to be timed, and the program that they run. There is no program if an option gave the
// time of a step.
struct TimedFeed {
  emulator::TimedCores cores;
  std::optional<emulator::ChipProgram> program;
};

// What the options say about the steps: either their time, or the model and the slice of chips that
// the model runs on.
struct TimedSteps {
  struct ModelOnSlice {
    emulator::Model model;
    v1::Chip chip;
    std::string slice;  // The name of one of the chip's slices.
    std::string image_output;
  };

  std::optional<ModelOnSlice> run;  // If not set, a step takes `step_time`.
  absl::Duration step_time;
  int64_t queue_depth = 0;
  emulator::InfeedLayout layout = emulator::InfeedLayout::kHwcnTiled;

  // The cores of a feed whose slices have `tensors`. There are `num_cores` cores.
  //   InvalidArgument  the model cannot take the image output; the chip's slice does not have
  //                    `num_cores` cores; the step or its transfer takes more than an hour.
  absl::StatusOr<TimedFeed> FeedFor(const std::vector<emulator::ArrivalTensor>& tensors,
                                    int num_cores) const;
};

class TimingFlags {
 public:
  // --model, --slice, --chip, --image-output, --step-time-us, --rate, --queue-depth, --layout.
  void Declare(OptionList& options);

  // Reads the model and the chip. Call this function before you connect to a server, so that wrong
  // options are found even if the server does not answer.
  //   InvalidArgument  not exactly one of --model (with --slice), --step-time-us and --rate; a
  //                    value out of range; a file that is no model or chip.
  //   NotFound         no such model, chip or slice.
  absl::StatusOr<TimedSteps> Load() const;

  // InvalidArgument if an option for the time of a step was given, because a recording needs no
  // such time.
  absl::Status CheckRecordsOnly() const;
  // The value of --queue-depth. InvalidArgument if it is not 1 to 65536.
  absl::StatusOr<int64_t> QueueDepth() const;

 private:
  std::string model_;
  std::string slice_;
  std::string chip_;
  std::string image_output_ = "image";
  std::optional<int64_t> step_time_us_;
  std::optional<double> rate_;
  int64_t queue_depth_ = 2;
  std::string layout_ = "hwcn-tiled";
};

// The tensors of a slice, as a recording describes them.
std::vector<emulator::ArrivalTensor> TensorsOf(const SliceLayout& layout);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_TIMING_FLAGS_H_
