#include "client/cli/timing_flags.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/emulator/chip/chip.h"
#include "client/emulator/chip/compiler.h"
#include "client/emulator/chip/infeed_layout.h"
#include "client/emulator/model/load_model.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

using emulator::ArrivalTensor;
using emulator::InfeedBytes;
using emulator::TimedCores;

// Of one core's slice, all tensors.
InfeedBytes BytesOf(const std::vector<ArrivalTensor>& tensors, emulator::InfeedLayout layout) {
  InfeedBytes sum;
  for (const ArrivalTensor& tensor : tensors) {
    std::vector<int64_t> example = tensor.shape;
    example.erase(example.begin() + tensor.batch_axis);
    const InfeedBytes bytes = emulator::CountInfeedBytes(example, tensor.per_core_batch(),
                                                         DTypeBytes(tensor.dtype), layout);
    sum.useful += bytes.useful;
    sum.padded += bytes.padded;
  }
  return sum;
}

// "v3-8" is a slice of chip "v3".
std::string ChipOf(const std::string& slice) { return slice.substr(0, slice.find('-')); }

}  // namespace

void TimingFlags::Declare(OptionList& options) {
  options.Optional("--model", "NAME|FILE", &model_,
                   "The model whose steps are timed: a shipped one, such as resnet50, or a file");
  options.Optional("--slice", "NAME", &slice_,
                   "The slice of chips it runs on, such as v3-8; as many cores as the feed has");
  options.Optional("--chip", "NAME|FILE", &chip_,
                   "The chip, if the slice's name does not begin with it");
  options.Optional("--step-time-us", "X", &step_time_us_,
                   "The time of a step, instead of --model and --slice; transfers then cost none");
  options.Optional("--queue-depth", "D", &queue_depth_,
                   "Steps of room in each core's infeed queue");
  options.Optional("--layout", "NAME", &layout_,
                   "How slices lie in the chip's memory, which decides what crosses the host's "
                   "link: nhwc, hwcn, nhwc-tiled, hwcn-tiled");
}

absl::StatusOr<TimedFeed> TimingFlags::FeedFor(const std::vector<ArrivalTensor>& tensors,
                                               int num_cores) const {
  SYSTOLE_ASSIGN_OR_RETURN(const emulator::InfeedLayout layout,
                           emulator::ParseInfeedLayout(layout_));
  const InfeedBytes bytes = BytesOf(tensors, layout);
  TimedFeed feed;
  TimedCores& cores = feed.cores;
  cores = {.infeed = {.num_cores = num_cores, .queue_depth = queue_depth_},
           .per_core_batch = tensors[0].per_core_batch(),
           .slice_bytes = static_cast<int64_t>(bytes.useful),
           .padded_slice_bytes = static_cast<int64_t>(bytes.padded)};
  const bool by_model = !model_.empty() && !slice_.empty();
  if (step_time_us_.has_value() == by_model || (step_time_us_.has_value() && !model_.empty()) ||
      (step_time_us_.has_value() && !slice_.empty())) {
    return absl::InvalidArgumentError(
        "want --model and --slice, such as --model resnet50 --slice v3-8, or --step-time-us alone");
  }
  if (step_time_us_.has_value()) {
    cores.infeed.step_time = absl::Microseconds(*step_time_us_);
  } else {
    SYSTOLE_ASSIGN_OR_RETURN(const emulator::Model model, emulator::LoadModel(model_));
    SYSTOLE_ASSIGN_OR_RETURN(const v1::Chip chip,
                             emulator::LoadChip(chip_.empty() ? ChipOf(slice_) : chip_));
    SYSTOLE_ASSIGN_OR_RETURN(
        emulator::Program program,
        emulator::CompileProgram(
            model, chip,
            {.per_core_batch = cores.per_core_batch, .slice = slice_, .layout = layout}));
    if (program.cores != num_cores) {
      return absl::InvalidArgumentError(
          absl::StrCat("slice ", slice_, " has ", program.cores, " cores, the feed ", num_cores,
                       "; make num_cores in the spec ", program.cores, ", or take another slice"));
    }
    cores.model = program.model;
    cores.slice = program.slice;
    cores.infeed.cores_per_chip = static_cast<int>(program.cores / program.chips);
    cores.infeed.step_time = absl::Seconds(program.step.seconds);
    cores.infeed.transfer_time = absl::Seconds(bytes.padded / chip.host_bytes_per_s());
    feed.program = std::move(program);
  }
  // Now rather than after connecting and waiting for the first step.
  SYSTOLE_RETURN_IF_ERROR(emulator::InfeedClock::Create(cores.infeed).status());
  return feed;
}

std::vector<ArrivalTensor> TensorsOf(const SliceLayout& layout) {
  std::vector<ArrivalTensor> tensors;
  for (const SliceTensor& tensor : layout.tensors()) {
    tensors.push_back(
        {.dtype = tensor.spec.dtype, .batch_axis = tensor.batch_axis, .shape = tensor.spec.shape});
  }
  return tensors;
}

absl::StatusOr<absl::Duration> ParsePositiveDuration(absl::string_view option,
                                                     absl::string_view text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration() &&
      duration <= absl::Hours(24 * 365)) {
    return duration;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, " ", text, ": want a time such as 60s, 1m30s or 250ms"));
}

}  // namespace systole
