#include "client/cli/commands/core_infeeds.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Steps in each core's queue: the core works on one, and one waits. The steps that the client
// fetches ahead hide longer interruptions.
constexpr int64_t kQueueSteps = 2;

absl::StatusOr<int> IndexOf(const SliceLayout& layout, const std::string& name,
                            const char* option) {
  const int index = layout.IndexOf(name);
  if (index >= 0) return index;
  return absl::InvalidArgumentError(
      absl::StrCat("the spec has no output '", name, "'; add one, or name another with ", option));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CoreInfeeds>> CoreInfeeds::Create(std::unique_ptr<FeedClient> client,
                                                                 const TrainingOutputs& outputs) {
  SYSTOLE_ASSIGN_OR_RETURN(const int image,
                           IndexOf(client->layout(), outputs.image, "--image-output"));
  SYSTOLE_ASSIGN_OR_RETURN(const int label,
                           IndexOf(client->layout(), outputs.label, "--label-output"));
  for (const int index : {image, label}) {
    const SliceTensor& tensor = client->layout().tensors()[static_cast<size_t>(index)];
    if (tensor.batch_axis == 0 && !tensor.is_tiled()) continue;
    return absl::InvalidArgumentError(absl::StrCat("output '", tensor.spec.name, "' has layout ",
                                                   tensor.is_tiled() ? "HWCN_TILED" : "HWCN",
                                                   ", the emulated trainer needs NHWC"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<CoreQueues> queues,
                           CoreQueues::Create(std::move(client), kQueueSteps));
  return std::unique_ptr<CoreInfeeds>(new CoreInfeeds(std::move(queues), image, label));
}

absl::StatusOr<std::optional<emulator::InfeedStep>> CoreInfeeds::Pop(int64_t core) {
  SYSTOLE_ASSIGN_OR_RETURN(std::optional<CoreStep> popped, queues_->Pop(core));
  if (!popped.has_value()) return std::optional<emulator::InfeedStep>();
  const auto owner = std::make_shared<const CoreStep>(*std::move(popped));
  return emulator::InfeedStep{.step = owner->step,
                              .inputs = {.image = owner->Tensor(image_),
                                         .label = owner->Tensor(label_),
                                         .valid = owner->Tensor(owner->layout->valid_index())},
                              .bytes = owner->layout->payload_bytes(),
                              .arrived_at = owner->arrived_at,
                              .owner = owner};
}

}  // namespace systole
