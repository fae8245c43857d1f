// Makes one layer's plan from its text and the shapes of its inputs.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_MODEL_PLAN_LAYER_H_
#define SYSTOLE_CLIENT_EMULATOR_MODEL_PLAN_LAYER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/emulator/model/layer_plan.h"
#include "systole/v1/model.pb.h"

namespace systole::emulator {

// The name of the kind in a model's text: "conv2d".
absl::string_view KindName(v1::Layer::KindCase kind);

// Returns a plan without the layer's name, its place in the graph and the places of its parameters.
// `inputs` has the shape of each input, at least one. `layer` must not be a flatten, which is not a
// layer of a Model.
//   InvalidArgument  a value is out of range (the message names the field), or the shapes do not
//                    suit the layer.
absl::StatusOr<LayerPlan> PlanLayer(const v1::Layer& layer, absl::Span<const Shape> inputs);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_MODEL_PLAN_LAYER_H_
