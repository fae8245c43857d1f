// Where the backward pass of a model keeps its gradients. The pass goes from the last layer to the
// first. The gradient with respect to a layer's output is complete after the backward passes of all
// layers that take this output. It is needed until the end of the layer's own backward pass. So a
// few buffers ("slots") are used in turns. A chain of layers needs two slots.
//
// If several layers take an output, its gradient is summed in the order of the backward pass, from
// the last of these layers to the first. If a layer takes the output twice (an add), the order is
// that of the layer's inputs.
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_GRADIENT_PLAN_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_GRADIENT_PLAN_H_

#include <cstdint>
#include <vector>

#include "client/emulator/model/model.h"

namespace systole::emulator {

struct GradientPlan {
  // Takes the gradient in the slot `written`, and copies it to the slot of one of the layer's
  // inputs, or adds it there.
  struct Delivery {
    int64_t to = 0;
    bool adds = false;  // False: the first contribution to a gradient is copied.
  };
  struct Step {
    int64_t output = 0;  // The slot of the gradient with respect to the layer's output.
    // The slot for the layer's input gradient; -1 if no layer needs it. If the layer takes its
    // first input only once, and is the first to contribute to this input's gradient, the layer
    // writes straight to that gradient's slot. Then `deliveries` has only the other inputs.
    int64_t written = -1;
    std::vector<Delivery> deliveries;
  };
  std::vector<Step> steps;          // Per layer of the model.
  std::vector<int64_t> slot_sizes;  // Values per example.
};

GradientPlan PlanGradients(const Model& model);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_GRADIENT_PLAN_H_
