#include "client/emulator/model/plan_layer.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/emulator/model/value_range.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "google/protobuf/descriptor.h"

namespace systole::emulator {
namespace {

// A window along one axis of the image: the number of outputs, and the padding before the first
// pixel.
struct Extent {
  int64_t outputs, pad_before;
};
Extent SlideOver(int64_t input, int64_t size, int64_t stride, v1::Padding padding) {
  if (padding == v1::VALID) {
    return {.outputs = input < size ? 0 : (input - size) / stride + 1, .pad_before = 0};
  }
  const int64_t outputs = (input + stride - 1) / stride;
  const int64_t pad = std::max<int64_t>(0, (outputs - 1) * stride + size - input);
  return {.outputs = outputs, .pad_before = pad / 2};
}

// Sets the window, and the output's height and width.
absl::Status SetWindow(int64_t size, int64_t stride, v1::Padding padding, LayerPlan& plan) {
  SYSTOLE_RETURN_IF_ERROR(CheckRange("the window", size, 1, kLargestEdge));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("stride", stride, 1, kLargestEdge));
  if (padding != v1::SAME && padding != v1::VALID) {
    return absl::InvalidArgumentError(
        absl::StrCat("padding is ", static_cast<int>(padding), ", want SAME or VALID"));
  }
  const Extent y = SlideOver(plan.input.height, size, stride, padding);
  const Extent x = SlideOver(plan.input.width, size, stride, padding);
  if (y.outputs == 0 || x.outputs == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ", size, "x", size, " window with padding VALID does not fit"));
  }
  plan.window = {.size_y = size,
                 .size_x = size,
                 .stride = stride,
                 .pad_top = y.pad_before,
                 .pad_left = x.pad_before};
  plan.output.height = y.outputs;
  plan.output.width = x.outputs;
  return absl::OkStatus();
}

// Sets the weights of conv2d and dense: a matrix [patch, channels]. At every place, the input
// values under the window (the patch) are multiplied by this matrix.
absl::Status SetWeights(int64_t patch, int64_t channels, v1::Initializer initializer, bool bias,
                        LayerPlan& plan) {
  if (initializer != v1::HE_UNIFORM && initializer != v1::GLOROT_UNIFORM) {
    return absl::InvalidArgumentError(absl::StrCat("initializer is ", static_cast<int>(initializer),
                                                   ", want HE_UNIFORM or GLOROT_UNIFORM"));
  }
  // `patch` is checked first, because patch * channels could overflow.
  SYSTOLE_RETURN_IF_ERROR(CheckRange("the number of weights of one unit", patch, 1, kMostElements));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("the number of weights", patch * channels, 1, kMostElements));
  plan.output.channels = channels;
  plan.weights = patch * channels;
  plan.initializer = initializer;
  plan.bias = bias;
  plan.biases = bias ? channels : 0;
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("the number of output values", plan.output.size(), 1, kMostElements));
  plan.forward_macs = plan.output.size() * patch;
  return absl::OkStatus();
}

absl::Status Plan(const v1::Conv2d& conv, LayerPlan& plan) {
  plan.kind = LayerKind::kConv2d;
  SYSTOLE_RETURN_IF_ERROR(CheckRange("filters", conv.filters(), 1, kLargestEdge));
  const int64_t kernel = conv.kernel() == 0 ? 3 : conv.kernel();
  SYSTOLE_RETURN_IF_ERROR(
      SetWindow(kernel, conv.stride() == 0 ? 1 : conv.stride(), conv.padding(), plan));
  return SetWeights(kernel * kernel * plan.input.channels, conv.filters(), conv.initializer(),
                    conv.bias(), plan);
}

absl::Status Plan(const v1::Dense& dense, LayerPlan& plan) {
  plan.kind = LayerKind::kDense;
  SYSTOLE_RETURN_IF_ERROR(CheckRange("units", dense.units(), 1, kMostElements));
  return SetWeights(plan.input.channels, dense.units(), dense.initializer(), !dense.no_bias(),
                    plan);
}

absl::Status Plan(const v1::Pool& pool, LayerKind kind, LayerPlan& plan) {
  plan.kind = kind;
  if (!pool.global()) {
    const int64_t window = pool.window() == 0 ? 2 : pool.window();
    return SetWindow(window, pool.stride() == 0 ? window : pool.stride(), pool.padding(), plan);
  }
  if (pool.window() != 0 || pool.stride() != 0 || pool.padding() != v1::SAME) {
    return absl::InvalidArgumentError("global cannot be combined with window, stride or padding");
  }
  plan.window = {.size_y = plan.input.height, .size_x = plan.input.width, .stride = 1};
  plan.output.height = plan.output.width = 1;
  return absl::OkStatus();
}

absl::Status Plan(const v1::BatchNorm& norm, LayerPlan& plan) {
  plan.kind = LayerKind::kBatchNorm;
  plan.momentum = norm.momentum() == 0 ? 0.9f : norm.momentum();
  plan.epsilon = norm.epsilon() == 0 ? 1e-3f : norm.epsilon();
  plan.local_statistics = norm.local();
  plan.weights = plan.biases = plan.input.channels;
  plan.statistics = 2 * plan.input.channels;
  SYSTOLE_RETURN_IF_ERROR(CheckRange("momentum", plan.momentum, 0.0f, 1.0f));
  return CheckRange("epsilon", plan.epsilon, 1e-12f, 1.0f);
}

absl::Status Plan(const v1::LayerNorm& norm, LayerPlan& plan) {
  plan.kind = LayerKind::kLayerNorm;
  plan.epsilon = norm.epsilon() == 0 ? 1e-6f : norm.epsilon();
  plan.weights = plan.biases = plan.input.channels;
  return CheckRange("epsilon", plan.epsilon, 1e-12f, 1.0f);
}

absl::Status Plan(const v1::Dropout& dropout, LayerPlan& plan) {
  plan.kind = LayerKind::kDropout;
  plan.drop_rate = dropout.rate();
  return CheckRange("rate", plan.drop_rate, 0.0f, 1.0f);
}

absl::Status Plan(const v1::Attention& attention, LayerPlan& plan) {
  plan.kind = LayerKind::kAttention;
  const int64_t channels = plan.input.channels / 3;
  if (plan.input.width != 1 || plan.input.channels % 3 != 0) {
    return absl::InvalidArgumentError(
        "attention needs [positions, 1, 3 * d]: queries, keys and values along the channels, from "
        "a dense layer of 3 * d units");
  }
  SYSTOLE_RETURN_IF_ERROR(CheckRange("heads", attention.heads(), 1, channels));
  if (channels % attention.heads() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("heads is ", attention.heads(), ", want a divisor of d, which is ", channels));
  }
  plan.heads = attention.heads();
  plan.output.channels = channels;
  // There are two products of the same cost: Q K^T, and the scores times V. positions^2 stays below
  // 2^56.
  plan.forward_macs = 2 * plan.output.height * plan.output.height * channels;
  return absl::OkStatus();
}

absl::Status CheckInputs(const v1::Layer& layer, absl::Span<const Shape> inputs) {
  if (layer.kind_case() != v1::Layer::kAdd) {
    if (inputs.size() == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", inputs.size(), " inputs, want 1; only add takes more"));
  }
  if (inputs.size() < 2) {
    return absl::InvalidArgumentError("add has 1 input, want 2 or more; name them by `inputs`");
  }
  for (const Shape& shape : inputs) {
    if (shape == inputs[0]) continue;
    return absl::InvalidArgumentError("add needs inputs of the same shape");
  }
  return absl::OkStatus();
}

absl::Status PlanKind(const v1::Layer& layer, LayerPlan& plan) {
  switch (layer.kind_case()) {
    case v1::Layer::kConv2D:
      return Plan(layer.conv2d(), plan);
    case v1::Layer::kBatchNorm:
      return Plan(layer.batch_norm(), plan);
    case v1::Layer::kRelu:
      plan.kind = LayerKind::kRelu;
      return absl::OkStatus();
    case v1::Layer::kMaxPool:
      return Plan(layer.max_pool(), LayerKind::kMaxPool, plan);
    case v1::Layer::kAveragePool:
      return Plan(layer.average_pool(), LayerKind::kAveragePool, plan);
    case v1::Layer::kDense:
      return Plan(layer.dense(), plan);
    case v1::Layer::kAdd:
      plan.kind = LayerKind::kAdd;
      return absl::OkStatus();
    case v1::Layer::kDropout:
      return Plan(layer.dropout(), plan);
    case v1::Layer::kLayerNorm:
      return Plan(layer.layer_norm(), plan);
    case v1::Layer::kGelu:
      plan.kind = LayerKind::kGelu;
      return absl::OkStatus();
    case v1::Layer::kAttention:
      return Plan(layer.attention(), plan);
    case v1::Layer::kFlatten:
      SYSTOLE_CHECK(false);  // The caller handles flatten.
    case v1::Layer::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("the layer has no kind; add one, such as relu {}");
}

}  // namespace

absl::string_view KindName(v1::Layer::KindCase kind) {
  const google::protobuf::FieldDescriptor* field =
      v1::Layer::descriptor()->FindFieldByNumber(static_cast<int>(kind));
  return field == nullptr ? absl::string_view("layer") : absl::string_view(field->name());
}

absl::StatusOr<LayerPlan> PlanLayer(const v1::Layer& layer, absl::Span<const Shape> inputs) {
  SYSTOLE_CHECK(!inputs.empty());
  SYSTOLE_RETURN_IF_ERROR(CheckInputs(layer, inputs));
  LayerPlan plan;
  plan.input = plan.output = inputs[0];
  SYSTOLE_RETURN_IF_ERROR(PlanKind(layer, plan));
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("the number of output values", plan.output.size(), 1, kMostElements));
  return plan;
}

}  // namespace systole::emulator
