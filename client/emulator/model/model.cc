#include "client/emulator/model/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "proto/textproto/textproto.h"

namespace systole::emulator {
namespace {

// A file could ask for any size; nothing real comes near these.
constexpr int64_t kLargestEdge = 1 << 14;
constexpr int64_t kMostElements = int64_t{1} << 28;

absl::string_view KindName(v1::Layer::KindCase kind) {
  switch (kind) {
    case v1::Layer::kConv2D:
      return "conv2d";
    case v1::Layer::kBatchNorm:
      return "batch_norm";
    case v1::Layer::kRelu:
      return "relu";
    case v1::Layer::kMaxPool:
      return "max_pool";
    case v1::Layer::kAveragePool:
      return "average_pool";
    case v1::Layer::kFlatten:
      return "flatten";
    case v1::Layer::kDense:
      return "dense";
    case v1::Layer::KIND_NOT_SET:
      break;
  }
  return "layer";
}

absl::Status CheckRange(absl::string_view what, int64_t value, int64_t smallest, int64_t largest) {
  if (value >= smallest && value <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", value, ", want ", smallest, " to ", largest));
}

absl::Status CheckRange(absl::string_view what, float value, float smallest, float below) {
  if (value >= smallest && value < below) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", value, ", want at least ", smallest, " and less than ", below));
}

// One direction of a window: how many outputs, how much padding before the first pixel.
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

class Compiler {
 public:
  explicit Compiler(Model& model) : model_(model), shape_(model.input) {}

  absl::Status Add(const v1::Layer& layer, int64_t number);
  const Shape& shape() const { return shape_; }

 private:
  absl::Status AddWindow(const v1::Conv2d& conv);
  absl::Status AddWindow(const v1::Pool& pool);
  absl::Status SetWindow(int64_t size, int64_t stride, v1::Padding padding);
  absl::Status AddParameters(int64_t weights, int64_t biases);

  Model& model_;
  Shape shape_;  // Of what the next layer takes.
  LayerPlan plan_;
};

absl::Status Compiler::SetWindow(int64_t size, int64_t stride, v1::Padding padding) {
  SYSTOLE_RETURN_IF_ERROR(CheckRange("the window", size, 1, kLargestEdge));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("stride", stride, 1, kLargestEdge));
  if (padding != v1::SAME && padding != v1::VALID) {
    return absl::InvalidArgumentError(
        absl::StrCat("padding is ", static_cast<int>(padding), ", want SAME or VALID"));
  }
  const Extent y = SlideOver(shape_.height, size, stride, padding);
  const Extent x = SlideOver(shape_.width, size, stride, padding);
  if (y.outputs == 0 || x.outputs == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a ", size, "x", size, " window with padding VALID does not fit"));
  }
  plan_.window = {.size_y = size,
                  .size_x = size,
                  .stride = stride,
                  .pad_top = y.pad_before,
                  .pad_left = x.pad_before};
  plan_.output = {.height = y.outputs, .width = x.outputs, .channels = shape_.channels};
  return absl::OkStatus();
}

absl::Status Compiler::AddWindow(const v1::Conv2d& conv) {
  SYSTOLE_RETURN_IF_ERROR(CheckRange("filters", conv.filters(), 1, kLargestEdge));
  const int64_t kernel = conv.kernel() == 0 ? 3 : conv.kernel();
  SYSTOLE_RETURN_IF_ERROR(
      SetWindow(kernel, conv.stride() == 0 ? 1 : conv.stride(), conv.padding()));
  plan_.output.channels = conv.filters();
  plan_.bias = conv.bias();
  plan_.initializer = conv.initializer();
  const int64_t patch = kernel * kernel * shape_.channels;
  SYSTOLE_RETURN_IF_ERROR(AddParameters(patch * conv.filters(), conv.bias() ? conv.filters() : 0));
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("the number of output values", plan_.output.size(), 1, kMostElements));
  plan_.forward_macs = plan_.output.size() * patch;
  return absl::OkStatus();
}

absl::Status Compiler::AddWindow(const v1::Pool& pool) {
  if (!pool.global()) {
    const int64_t window = pool.window() == 0 ? 2 : pool.window();
    return SetWindow(window, pool.stride() == 0 ? window : pool.stride(), pool.padding());
  }
  if (pool.window() != 0 || pool.stride() != 0 || pool.padding() != v1::SAME) {
    return absl::InvalidArgumentError("global takes no window, stride or padding beside it");
  }
  plan_.window = {.size_y = shape_.height, .size_x = shape_.width, .stride = 1};
  plan_.output = {.height = 1, .width = 1, .channels = shape_.channels};
  return absl::OkStatus();
}

absl::Status Compiler::AddParameters(int64_t weights, int64_t biases) {
  if (plan_.initializer != v1::HE_UNIFORM && plan_.initializer != v1::GLOROT_UNIFORM) {
    return absl::InvalidArgumentError(absl::StrCat("initializer is ",
                                                   static_cast<int>(plan_.initializer),
                                                   ", want HE_UNIFORM or GLOROT_UNIFORM"));
  }
  plan_.weights_at = model_.parameters;
  plan_.weights = weights;
  plan_.biases_at = model_.parameters + weights;
  plan_.biases = biases;
  model_.parameters += weights + biases;
  return CheckRange("the number of parameters so far", model_.parameters, 0, kMostElements);
}

absl::Status Compiler::Add(const v1::Layer& layer, int64_t number) {
  plan_ = {};
  plan_.number = number;
  plan_.input = plan_.output = shape_;
  plan_.name =
      layer.name().empty() ? absl::StrCat(KindName(layer.kind_case()), "_", number) : layer.name();
  switch (layer.kind_case()) {
    case v1::Layer::kConv2D:
      plan_.kind = LayerKind::kConv2d;
      SYSTOLE_RETURN_IF_ERROR(AddWindow(layer.conv2d()));
      break;
    case v1::Layer::kBatchNorm: {
      const v1::BatchNorm& norm = layer.batch_norm();
      plan_.kind = LayerKind::kBatchNorm;
      plan_.momentum = norm.momentum() == 0 ? 0.9f : norm.momentum();
      plan_.epsilon = norm.epsilon() == 0 ? 1e-3f : norm.epsilon();
      SYSTOLE_RETURN_IF_ERROR(CheckRange("momentum", plan_.momentum, 0.0f, 1.0f));
      SYSTOLE_RETURN_IF_ERROR(CheckRange("epsilon", plan_.epsilon, 1e-12f, 1.0f));
      SYSTOLE_RETURN_IF_ERROR(AddParameters(shape_.channels, shape_.channels));
      plan_.statistics_at = model_.statistics;
      plan_.statistics = 2 * shape_.channels;
      model_.statistics += plan_.statistics;
      break;
    }
    case v1::Layer::kRelu:
      plan_.kind = LayerKind::kRelu;
      break;
    case v1::Layer::kMaxPool:
      plan_.kind = LayerKind::kMaxPool;
      SYSTOLE_RETURN_IF_ERROR(AddWindow(layer.max_pool()));
      break;
    case v1::Layer::kAveragePool:
      plan_.kind = LayerKind::kAveragePool;
      SYSTOLE_RETURN_IF_ERROR(AddWindow(layer.average_pool()));
      break;
    case v1::Layer::kFlatten:
      shape_ = {.channels = shape_.size()};
      return absl::OkStatus();
    case v1::Layer::kDense: {
      const v1::Dense& dense = layer.dense();
      if (shape_.height != 1 || shape_.width != 1) {
        return absl::InvalidArgumentError("dense wants flat data; put a flatten before it");
      }
      SYSTOLE_RETURN_IF_ERROR(CheckRange("units", dense.units(), 1, kMostElements));
      plan_.kind = LayerKind::kDense;
      plan_.output = {.channels = dense.units()};
      plan_.bias = !dense.no_bias();
      plan_.initializer = dense.initializer();
      SYSTOLE_RETURN_IF_ERROR(
          CheckRange("the number of weights", shape_.channels * dense.units(), 1, kMostElements));
      plan_.forward_macs = shape_.channels * dense.units();
      SYSTOLE_RETURN_IF_ERROR(AddParameters(plan_.forward_macs, plan_.bias ? dense.units() : 0));
      break;
    }
    case v1::Layer::KIND_NOT_SET:
      return absl::InvalidArgumentError("it has no kind, such as relu {}");
  }
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("the number of output values", plan_.output.size(), 1, kMostElements));
  shape_ = plan_.output;
  model_.layers.push_back(plan_);
  return absl::OkStatus();
}

absl::Status CheckOptimizer(const v1::Optimizer& o) {
  if (!(o.learning_rate() > 0) || !std::isfinite(o.learning_rate())) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer.learning_rate is ", o.learning_rate(), ", want a positive number"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckRange("optimizer.momentum", o.momentum(), 0.0f, 1.0f));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("optimizer.weight_decay", o.weight_decay(), 0.0f, 1.0f));
  constexpr int64_t kMostSteps = int64_t{1} << 40;
  SYSTOLE_RETURN_IF_ERROR(CheckRange("optimizer.warmup_steps", o.warmup_steps(), 0, kMostSteps));
  if (o.decay_steps() == 0) {
    if (o.final_learning_rate() == 0) return absl::OkStatus();
    return absl::InvalidArgumentError("optimizer.final_learning_rate wants decay_steps beside it");
  }
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("optimizer.decay_steps", o.decay_steps(), o.warmup_steps() + 1, kMostSteps));
  if (!(o.final_learning_rate() >= 0 && o.final_learning_rate() <= o.learning_rate())) {
    return absl::InvalidArgumentError(absl::StrCat("optimizer.final_learning_rate is ",
                                                   o.final_learning_rate(), ", want 0 to ",
                                                   o.learning_rate(), " (learning_rate)"));
  }
  return absl::OkStatus();
}

absl::Status SetInput(const v1::Model& proto, Model& model) {
  model.input_shape.assign(proto.input().begin(), proto.input().end());
  if (model.input_shape.size() != 1 && model.input_shape.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("input has ", model.input_shape.size(),
                     " dimensions, want [height, width, channels] or [features]"));
  }
  const bool flat = model.input_shape.size() == 1;
  for (const int64_t size : model.input_shape) {
    SYSTOLE_RETURN_IF_ERROR(
        CheckRange("a dimension of input", size, 1, flat ? kMostElements : kLargestEdge));
  }
  model.input = flat ? Shape{.channels = model.input_shape[0]}
                     : Shape{.height = model.input_shape[0],
                             .width = model.input_shape[1],
                             .channels = model.input_shape[2]};
  model.input_scale = proto.input_scale() == 0 ? 1.0f : proto.input_scale();
  if (!std::isfinite(model.input_scale)) {
    return absl::InvalidArgumentError("input_scale is not a finite number");
  }
  return CheckRange("the number of input values", model.input.size(), 1, kMostElements);
}

}  // namespace

std::string Shape::DebugString() const {
  return absl::StrCat("[", height, ",", width, ",", channels, "]");
}

int64_t Model::forward_macs() const {
  int64_t macs = 0;
  for (const LayerPlan& layer : layers) macs += layer.forward_macs;
  return macs;
}

int64_t Model::training_macs() const {
  int64_t macs = 0;
  for (size_t i = 0; i < layers.size(); ++i) macs += layers[i].forward_macs * (i == 0 ? 2 : 3);
  return macs;
}

absl::StatusOr<Model> ParseModel(absl::string_view text, absl::string_view file) {
  v1::Model proto;
  SYSTOLE_RETURN_IF_ERROR(ParseTextproto(text, file, proto));
  absl::StatusOr<Model> model = CompileModel(proto);
  if (!model.ok()) {
    return absl::Status(model.status().code(), absl::StrCat(file, ": ", model.status().message()));
  }
  return model;
}

absl::StatusOr<Model> CompileModel(const v1::Model& proto) {
  Model model;
  model.name = proto.name();
  SYSTOLE_RETURN_IF_ERROR(SetInput(proto, model));
  Compiler compiler(model);
  for (int i = 0; i < proto.layers_size(); ++i) {
    const Shape input = compiler.shape();
    const absl::Status status = compiler.Add(proto.layers(i), i);
    if (!status.ok()) {
      const v1::Layer& layer = proto.layers(i);
      return absl::InvalidArgumentError(
          absl::StrCat("layer ", i, " (", KindName(layer.kind_case()),
                       layer.name().empty() ? "" : absl::StrCat(" '", layer.name(), "'"),
                       "), whose input is ", input.DebugString(), ": ", status.message()));
    }
  }
  const Shape& logits = compiler.shape();
  if (model.layers.empty() || model.parameters == 0) {
    return absl::InvalidArgumentError("the model has no layer that could learn");
  }
  if (proto.loss().kind_case() != v1::Loss::kSoftmaxCrossEntropy) {
    return absl::InvalidArgumentError("loss is absent, want loss { softmax_cross_entropy {} }");
  }
  if (logits.height != 1 || logits.width != 1 || logits.channels < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the last layer's output is ", logits.DebugString(),
                     ", but softmax_cross_entropy wants [1,1,classes] with 2 classes or more"));
  }
  model.classes = logits.channels;
  SYSTOLE_RETURN_IF_ERROR(CheckOptimizer(proto.optimizer()));
  model.optimizer = proto.optimizer();
  return model;
}

float LearningRate(const v1::Optimizer& optimizer, int64_t step) {
  const float highest = optimizer.learning_rate();
  if (step < optimizer.warmup_steps()) {
    return highest * (static_cast<float>(step + 1) / static_cast<float>(optimizer.warmup_steps()));
  }
  if (optimizer.decay_steps() == 0) return highest;
  if (step >= optimizer.decay_steps()) return optimizer.final_learning_rate();
  const int64_t since = step - optimizer.warmup_steps();
  const int64_t span = optimizer.decay_steps() - optimizer.warmup_steps();
  const float done = static_cast<float>(since) / static_cast<float>(span);
  return highest + (optimizer.final_learning_rate() - highest) * done;
}

}  // namespace systole::emulator
