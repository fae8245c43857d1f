// Where the backward pass of a model keeps its gradients. Going from the last layer to the first, a
// layer's output gradient is complete when all that take the output have been passed; after the
// layer itself nobody needs it. So a few buffers ("slots") serve in turns: two for a chain.
//
// A gradient with several contributions is summed in the order of the backward pass: from the last
// taker to the first, and within one (an add that takes it twice) in the order of its inputs.
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
    // Slot that the layer writes its input gradient to; -1: nobody asks. With one taker this is the
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
