// One layer of a model: its shapes, its options, and the places of its numbers.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_MODEL_LAYER_PLAN_H_
#define SYSTOLE_CLIENT_EMULATOR_MODEL_LAYER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "systole/v1/model.pb.h"

namespace systole::emulator {

// [height, width, channels] of one example; flat data is [1, 1, n], a sequence [positions, 1, n].
struct Shape {
  int64_t height = 1, width = 1, channels = 0;
  int64_t size() const { return height * width * channels; }
  std::string DebugString() const;  // "[64,64,3]"
  friend bool operator==(const Shape&, const Shape&) = default;
};

// A window that moves over an image: convolutions and pools.
struct Window {
  int64_t size_y = 1, size_x = 1;
  int64_t stride = 1;
  int64_t pad_top = 0, pad_left = 0;  // How far the first window reaches over the edge.
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
  // The layer's index in the text. It seeds the initialiser and dropout.
  int64_t number = 0;
  // The layers whose outputs this layer takes, as indices into Model::layers. All are before this
  // layer, and -1 is the model's input. kAdd has two or more inputs, and the same layer may appear
  // twice. Other layers have one input.
  std::vector<int64_t> inputs;
  // `input` is the shape of the first input. If there is a flatten between inputs[0] and this
  // layer, `input` differs from the output shape of inputs[0], but has the same number of elements.
  Shape input, output;
  Window window;  // kConv2d, kMaxPool, kAveragePool.
  bool bias = false;
  v1::Initializer initializer = v1::HE_UNIFORM;
  float momentum = 0;             // kBatchNorm.
  float epsilon = 0;              // kBatchNorm, kLayerNorm.
  bool local_statistics = false;  // kBatchNorm: over this core's examples only.
  float drop_rate = 0;            // kDropout.
  int64_t heads = 0;              // kAttention.

  // The places of the layer's numbers in a replica's parameters: weights (norms: scales), then
  // biases (norms: shifts).
  int64_t weights_at = 0, weights = 0;
  int64_t biases_at = 0, biases = 0;
  // The place of batch norm's running means, then running variances, in the replica's statistics.
  int64_t statistics_at = 0, statistics = 0;
  // Multiply-accumulates of one example's forward pass in the matrix unit.
  int64_t forward_macs = 0;

  // Whether the backward pass goes on to a layer before this one.
  bool needs_input_gradient() const;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_MODEL_LAYER_PLAN_H_
