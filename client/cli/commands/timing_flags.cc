#include "client/cli/commands/timing_flags.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

constexpr int64_t kMostStepTimeUs = 3'600'000'000;  // An hour, the limit of InfeedOptions.
constexpr double kLeastRate = 0.001;                // Steps a second: one step in 17 minutes.
constexpr double kMostRate = 1'000'000;
constexpr int64_t kMostQueueDepth = 65536;  // The limit of InfeedOptions.

// The bytes of all tensors in one core's slice.
InfeedBytes BytesOf(const std::vector<ArrivalTensor>& tensors, emulator::InfeedLayout layout) {
  InfeedBytes sum;
  for (const ArrivalTensor& tensor : tensors) {
    const InfeedBytes bytes = emulator::CountInfeedBytes(tensor.example(), tensor.per_core_batch(),
                                                         DTypeBytes(tensor.dtype), layout);
    sum.useful += bytes.useful;
    sum.padded += bytes.padded;
  }
  return sum;
}

// "v3-8" is a slice of chip "v3".
std::string ChipOf(const std::string& slice) { return slice.substr(0, slice.find('-')); }

// The tensor that the model takes. Its examples must have as many elements as the model's input,
// but may have another shape, as in `systole train`.
absl::StatusOr<ArrivalTensor> ImageFor(const TimedSteps::ModelOnSlice& run,
                                       const std::vector<ArrivalTensor>& tensors) {
  const auto image = std::find_if(tensors.begin(), tensors.end(), [&](const ArrivalTensor& tensor) {
    return tensor.name == run.image_output;
  });
  if (image == tensors.end()) {
    const auto append_name = [](std::string* out, const ArrivalTensor& tensor) {
      absl::StrAppend(out, tensor.name);
    };
    return absl::InvalidArgumentError(absl::StrCat(
        "the feed has no output '", absl::CHexEscape(run.image_output), "' (it has ",
        absl::StrJoin(tensors, ", ", append_name),
        "); give --image-output the name of the output that model ", run.model.name, " takes"));
  }
  const std::vector<int64_t> example = image->example();
  const int64_t elements =
      std::accumulate(example.begin(), example.end(), int64_t{1}, std::multiplies<>());
  if (emulator::IsInputDType(image->dtype) && elements == run.model.input.size()) return *image;
  return absl::InvalidArgumentError(
      absl::StrCat("output '", image->name, "' gives examples of ", DTypeName(image->dtype), "[",
                   absl::StrJoin(example, ","), "], but model ", run.model.name, " takes [",
                   absl::StrJoin(run.model.input_shape, ","), "] of ", emulator::InputDTypeNames(),
                   ": change the output in the feed spec, name another one with "
                   "--image-output, or take a --model that fits"));
}

}  // namespace

void TimingFlags::Declare(OptionList& options) {
  options.Optional(
      "--model", "NAME|FILE", &model_,
      "The model whose steps are timed: a shipped one, such as resnet50, or a file. Needed, "
      "with --slice, unless --rate or --step-time-us says how long a step takes");
  options.Optional(
      "--slice", "NAME", &slice_,
      "The slice of chips that runs the model, such as v3-8; it needs as many cores as "
      "the feed has");
  options.Optional("--chip", "NAME|FILE", &chip_,
                   "The chip, if the slice's name does not begin with the chip's name");
  options.Optional("--image-output", "NAME", &image_output_,
                   "The output the model takes; it must fit the model's input");
  options.Optional(
      "--step-time-us", "X", &step_time_us_,
      "The time of a step, instead of --model and --slice; transfers then take no time");
  options.Optional("--rate", "X", &rate_,
                   "Steps that a trainer takes a second, instead of --step-time-us");
  options.Optional("--queue-depth", "D", &queue_depth_,
                   "How many steps each core's infeed queue can hold");
  options.Optional("--layout", "NAME", &layout_,
                   "How slices lie in the chip's memory, which decides how many bytes cross the "
                   "host's link: nhwc, hwcn, nhwc-tiled, hwcn-tiled");
}

absl::StatusOr<int64_t> TimingFlags::QueueDepth() const {
  if (queue_depth_ >= 1 && queue_depth_ <= kMostQueueDepth) return queue_depth_;
  return absl::InvalidArgumentError(
      absl::StrCat("--queue-depth ", queue_depth_, ": want 1 to ", kMostQueueDepth));
}

absl::Status TimingFlags::CheckRecordsOnly() const {
  if (model_.empty() && slice_.empty() && chip_.empty() && !step_time_us_.has_value() &&
      !rate_.has_value()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "a recording is for any chip: give --model, --slice, --chip, --step-time-us or --rate "
      "later, when you replay it with --arrivals");
}

absl::StatusOr<TimedSteps> TimingFlags::Load() const {
  TimedSteps steps;
  SYSTOLE_ASSIGN_OR_RETURN(steps.layout, emulator::ParseInfeedLayout(layout_));
  SYSTOLE_ASSIGN_OR_RETURN(steps.queue_depth, QueueDepth());
  const bool by_model = !model_.empty() && !slice_.empty();
  const bool any_of_model = !model_.empty() || !slice_.empty() || !chip_.empty();
  const bool by_time = step_time_us_.has_value() || rate_.has_value();
  if ((by_time ? any_of_model : !by_model) || (step_time_us_.has_value() && rate_.has_value())) {
    return absl::InvalidArgumentError(
        "want --model and --slice, such as --model resnet50 --slice v3-8, or --step-time-us alone, "
        "or --rate alone");
  }
  if (rate_.has_value()) {
    // This form of the comparison also refuses NaN.
    if (!(*rate_ >= kLeastRate && *rate_ <= kMostRate)) {
      return absl::InvalidArgumentError(absl::StrCat("--rate ", *rate_, ": want ", kLeastRate,
                                                     " to ", kMostRate, " steps a second"));
    }
    steps.step_time = absl::Seconds(1 / *rate_);
    return steps;
  }
  if (step_time_us_.has_value()) {
    if (*step_time_us_ < 1 || *step_time_us_ > kMostStepTimeUs) {
      return absl::InvalidArgumentError(absl::StrCat("--step-time-us ", *step_time_us_,
                                                     ": want 1 to ", kMostStepTimeUs, ", an hour"));
    }
    steps.step_time = absl::Microseconds(*step_time_us_);
    return steps;
  }
  TimedSteps::ModelOnSlice& run = steps.run.emplace();
  SYSTOLE_ASSIGN_OR_RETURN(run.model, emulator::LoadModel(model_));
  SYSTOLE_ASSIGN_OR_RETURN(run.chip, emulator::LoadChip(chip_.empty() ? ChipOf(slice_) : chip_));
  SYSTOLE_RETURN_IF_ERROR(emulator::FindSlice(run.chip, slice_).status());
  run.slice = slice_;
  run.image_output = image_output_;
  return steps;
}

absl::StatusOr<TimedFeed> TimedSteps::FeedFor(const std::vector<ArrivalTensor>& tensors,
                                              int num_cores) const {
  const InfeedBytes bytes = BytesOf(tensors, layout);
  TimedFeed feed;
  TimedCores& cores = feed.cores;
  cores = {.infeed = {.num_cores = num_cores, .queue_depth = queue_depth, .step_time = step_time},
           .per_core_batch = tensors[0].per_core_batch(),
           .slice_bytes = static_cast<int64_t>(bytes.useful),
           .padded_slice_bytes = static_cast<int64_t>(bytes.padded)};
  if (run.has_value()) {
    SYSTOLE_ASSIGN_OR_RETURN(const ArrivalTensor image, ImageFor(*run, tensors));
    SYSTOLE_ASSIGN_OR_RETURN(emulator::ChipProgram program,
                             emulator::CompileProgram(run->model, run->chip,
                                                      {.per_core_batch = cores.per_core_batch,
                                                       .slice = run->slice,
                                                       .dtype = image.dtype,
                                                       .layout = layout}));
    if (program.cores != num_cores) {
      return absl::InvalidArgumentError(
          absl::StrCat("slice ", run->slice, " has ", program.cores, " cores, the feed ", num_cores,
                       "; make num_cores in the spec ", program.cores, ", or take another slice"));
    }
    cores.model = program.model;
    cores.slice = program.slice;
    cores.infeed.cores_per_chip = static_cast<int>(program.cores / program.chips);
    cores.infeed.step_time = absl::Seconds(program.step.seconds);
    cores.infeed.transfer_time = absl::Seconds(bytes.padded / run->chip.host_bytes_per_s());
    feed.program = std::move(program);
  }
  // Checks the options before the wait for the first step.
  SYSTOLE_RETURN_IF_ERROR(emulator::InfeedClock::Create(cores.infeed).status());
  return feed;
}

std::vector<ArrivalTensor> TensorsOf(const SliceLayout& layout) {
  std::vector<ArrivalTensor> tensors;
  for (const SliceTensor& tensor : layout.tensors()) {
    // A tiled tensor is recorded with its shape before tiling, because a recording says when
    // examples came, not how they lie in memory.
    tensors.push_back({.name = tensor.spec.name,
                       .dtype = tensor.spec.dtype,
                       .batch_axis = tensor.is_tiled() ? 3 : tensor.batch_axis,
                       .shape = tensor.is_tiled() ? tensor.untiled_shape : tensor.spec.shape});
  }
  return tensors;
}

}  // namespace systole
