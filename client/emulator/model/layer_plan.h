// One layer of a model: its shapes, its options, and the places of its parameters and statistics.
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
  // By how many pixels the first window reaches beyond the image's top and left edges.
  int64_t pad_top = 0, pad_left = 0;
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
  // The layer's index in the text. The initialiser and dropout use it as a part of their seeds.
  int64_t number = 0;
  // The layers whose outputs this layer takes, as indices into Model::layers. All of them are
  // before this layer. -1 stands for the model's input. kAdd has two or more inputs, and they may
  // be the same layer. Layers of another kind have one input.
  std::vector<int64_t> inputs;
  // `input` is the shape of the first input. If there is a flatten between inputs[0] and this
  // layer, `input` differs from the output shape of inputs[0], but has the same number of elements.
  Shape input, output;
  Window window;  // kConv2d, kMaxPool, kAveragePool.
  bool bias = false;
  v1::Initializer initializer = v1::HE_UNIFORM;
  float momentum = 0;  // kBatchNorm.
  float epsilon = 0;   // kBatchNorm, kLayerNorm.
  // kBatchNorm: whether statistics are taken over this core's examples only.
  bool local_statistics = false;
  float drop_rate = 0;  // kDropout.
  int64_t heads = 0;    // kAttention.

  // Where the layer's parameters begin among the parameters of a replica, and how many the layer
  // has: first the weights (a norm's scales), then the biases (a norm's shifts).
  int64_t weights_at = 0, weights = 0;
  int64_t biases_at = 0, biases = 0;
  // Where a batch norm's running statistics begin among the statistics of a replica, and how many
  // the layer has: first the means, then the variances.
  int64_t statistics_at = 0, statistics = 0;
  // How many multiply-accumulates the matrix unit does in the forward pass of one example.
  int64_t forward_macs = 0;

  // Whether the backward pass goes on to an earlier layer. False if the layer takes nothing but the
  // model's input.
  bool needs_input_gradient() const;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_MODEL_LAYER_PLAN_H_
