// Where the backward pass of a model keeps its gradients. The pass goes from the last layer to the
// first. The gradient by a layer's output is complete after all layers that take the output, and is
// no longer needed after the layer itself. So a few buffers ("slots") are used in turns. A chain of
// layers needs two.
//
// If several layers take an output, its gradient is summed in the order of the backward pass, from
// the last of these layers to the first. If a layer takes it twice (an add), the order is that of
// the layer's inputs.
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_GRADIENT_PLAN_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_GRADIENT_PLAN_H_

#include <cstdint>
#include <vector>

#include "client/emulator/model/model.h"

namespace systole::emulator {

struct GradientPlan {
  // Brings the gradient from the slot that the layer wrote to the slot of one of its inputs.
  struct Delivery {
    int64_t to = 0;
    bool adds = false;  // False: it is the first contribution, which is copied.
  };
  struct Step {
    int64_t output = 0;  // The slot of the gradient by the layer's output.
    // The slot for the layer's input gradient; -1 if no layer needs it. It is the first input's own
    // slot if the layer's contribution is the first one. Then `deliveries` has only the other
    // inputs.
    int64_t written = -1;
    std::vector<Delivery> deliveries;
  };
  std::vector<Step> steps;          // Per layer of the model.
  std::vector<int64_t> slot_sizes;  // Values per example.
};

GradientPlan PlanGradients(const Model& model);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_GRADIENT_PLAN_H_
