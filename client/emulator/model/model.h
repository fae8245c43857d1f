// A model as the emulator runs it: its shapes are inferred, and its parameters have their places.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_MODEL_MODEL_H_
#define SYSTOLE_CLIENT_EMULATOR_MODEL_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/emulator/model/layer_plan.h"
#include "core/tensor/dtype.h"
#include "systole/v1/model.pb.h"

namespace systole::emulator {

// The types that the values of a model's input may have in a feed.
inline constexpr DType kInputDTypes[] = {DType::kBfloat16, DType::kFloat16, DType::kFloat32,
                                         DType::kUint8};
bool IsInputDType(DType dtype);
std::string InputDTypeNames();  // "bfloat16, float16, float32 or uint8".

struct Model {
  std::string name;
  std::vector<int64_t> input_shape;  // The text's `input`, without the batch.
  Shape input;
  float input_scale = 1;
  // Every layer comes after its inputs, and the output of each layer but the last is another
  // layer's input. Flatten layers are left out, because they do not move data.
  std::vector<LayerPlan> layers;
  int64_t classes = 0;
  int64_t parameters = 0;
  int64_t statistics = 0;
  float label_smoothing = 0;
  v1::Optimizer optimizer;  // With absent numbers filled in.
  // A hash of the whole v1::Model. It shows whether a checkpoint belongs to this model.
  uint64_t fingerprint = 0;

  int64_t forward_macs() const;
  // The multiply-accumulates of one example, forward and backward. A layer computes no gradient for
  // the model's input.
  int64_t training_macs() const;
  // The first layer that the emulator cannot compute, although its cost on a chip is known
  // (layer_norm, gelu, attention). Null if there is none. The pointer is valid while this Model
  // exists.
  const LayerPlan* first_untrainable() const;
};

// Reads a textproto of v1::Model and compiles it. `file` is for messages only.
//   InvalidArgument  `text` is not a textproto of v1::Model, it has an unknown field, or
//                    CompileModel() refuses the model. If the text cannot be parsed, the message
//                    names file, line and column. Line and column are counted from 1.
absl::StatusOr<Model> ParseModel(absl::string_view text, absl::string_view file);

//   InvalidArgument  a value is out of range (the message names the field), or a layer does not fit
//                    into the graph or does not suit its input's shape (the message names the layer
//                    and the shapes).
absl::StatusOr<Model> CompileModel(const v1::Model& model);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_MODEL_MODEL_H_
