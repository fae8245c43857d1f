// A model as the emulator runs it: the text file read, its shapes inferred, its parameters placed.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_MODEL_MODEL_H_
#define SYSTOLE_CLIENT_EMULATOR_MODEL_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/tensor/dtype.h"
#include "systole/v1/model.pb.h"

namespace systole::emulator {

// [height, width, channels] of one example; flat data is [1, 1, n], a sequence [positions, 1, n].
struct Shape {
  int64_t height = 1, width = 1, channels = 0;
  int64_t size() const { return height * width * channels; }
  std::string DebugString() const;  // "[64,64,3]"
  friend bool operator==(const Shape&, const Shape&) = default;
};

// The types that the values of a model's input may have in a feed.
inline constexpr DType kInputDTypes[] = {DType::kBfloat16, DType::kFloat16, DType::kFloat32,
                                         DType::kUint8};
bool IsInputDType(DType dtype);
std::string InputDTypeNames();  // "bfloat16, float16, float32 or uint8".

// A window that moves over an image: convolutions and pools.
struct Window {
  int64_t size_y = 1, size_x = 1;
  int64_t stride = 1;
  int64_t pad_top = 0, pad_left = 0;  // Places before the first pixel that the first window covers.
};

enum class LayerKind {
  kConv2d,
  kBatchNorm,
  kRelu,
  kMaxPool,
  kAveragePool,
  kDense,
  kAdd,
  kDropout,
  kLayerNorm,
  kGelu,
  kAttention
};

struct LayerPlan {
  LayerKind kind = LayerKind::kRelu;
  std::string name;
  // Place among the text's layers; seeds the initialiser and dropout.
  int64_t number = 0;
  // The layers whose outputs this one takes, as indices into Model::layers, all before this one; -1
  // is the model's input. kAdd has two or more (one may appear twice), the others have one.
  std::vector<int64_t> inputs;
  // `input` is the first input's shape. If a flatten lies between, it differs from the shape of
  // that layer's output but has the same number of elements.
  Shape input, output;
  Window window;  // kConv2d, kMaxPool, kAveragePool.
  bool bias = false;
  v1::Initializer initializer = v1::HE_UNIFORM;
  float momentum = 0;             // kBatchNorm.
  float epsilon = 0;              // kBatchNorm, kLayerNorm.
  bool local_statistics = false;  // kBatchNorm: over this core's examples only.
  float drop_rate = 0;            // kDropout.
  int64_t heads = 0;              // kAttention.

  // Where the layer's numbers lie in a replica's parameters: weights (norms: scales), then biases
  // (norms: shifts).
  int64_t weights_at = 0, weights = 0;
  int64_t biases_at = 0, biases = 0;
  // Batch norm's running means, then running variances, in the replica's statistics.
  int64_t statistics_at = 0, statistics = 0;
  // Multiply-accumulates of one example's forward pass in the matrix unit.
  int64_t forward_macs = 0;

  // Whether the backward pass goes on to a layer before this one.
  bool needs_input_gradient() const;
};

struct Model {
  std::string name;
  std::vector<int64_t> input_shape;  // As the file says it, without the batch.
  Shape input;
  float input_scale = 1;
  // Every layer comes after its inputs, and the output of each but the last is the input of
  // another. Flatten layers are left out, because they do not move data.
  std::vector<LayerPlan> layers;
  int64_t classes = 0;
  int64_t parameters = 0;
  int64_t statistics = 0;
  float label_smoothing = 0;
  v1::Optimizer optimizer;  // Absent numbers filled in.
  // A hash of everything in the text. It shows whether a checkpoint belongs to the model.
  uint64_t fingerprint = 0;

  int64_t forward_macs() const;
  // Forward and backward. A layer that takes the model's input computes no gradient for it.
  int64_t training_macs() const;
  // The first layer that can be priced for a chip but not computed (layer_norm, gelu, attention);
  // null if there is none. Valid as long as the model.
  const LayerPlan* first_untrainable() const;
};

// Reads a textproto of v1::Model and compiles it. `file` is for messages only.
//   InvalidArgument  not such a textproto (names file, line, column, both from 1), a field unknown
//                    to the schema, or a model that CompileModel refuses.
absl::StatusOr<Model> ParseModel(absl::string_view text, absl::string_view file);

//   InvalidArgument  a value out of range (names the field), or a layer that does not fit into the
//                    graph or to the shape it is given (names the layer and the shapes).
absl::StatusOr<Model> CompileModel(const v1::Model& model);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_MODEL_MODEL_H_
