// Where the backward pass of a model keeps its gradients. It goes from the last layer to the first.
// A layer's output gradient is complete after all layers that take the output, and no longer needed
// after the layer itself. So a few buffers ("slots") are used in turns: two for a chain.
//
// A gradient with several contributions is summed in the order of the backward pass: from the last
// layer that takes it to the first; in a layer that takes it twice (an add), in input order.
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_GRADIENT_PLAN_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_GRADIENT_PLAN_H_

#include <cstdint>
#include <vector>

#include "client/emulator/model/model.h"

namespace systole::emulator {

struct GradientPlan {
  // From the slot that the layer wrote to the slot of one of its inputs.
  struct Delivery {
    int64_t to = 0;
    bool adds = false;  // False: the first contribution, a copy.
  };
  struct Step {
    int64_t output = 0;  // Slot of the gradient by the layer's output.
    // The slot for the layer's input gradient; -1 if no layer needs it. With one taker this is the
    // input's own slot, and there is nothing to deliver.
    int64_t written = -1;
    std::vector<Delivery> deliveries;
  };
  std::vector<Step> steps;          // Per layer of the model.
  std::vector<int64_t> slot_sizes;  // Values per example.
};

GradientPlan PlanGradients(const Model& model);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_GRADIENT_PLAN_H_
