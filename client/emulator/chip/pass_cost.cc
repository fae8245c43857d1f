#include "client/emulator/chip/pass_cost.h"

#include <cmath>

namespace systole::emulator {
namespace {

constexpr double kActivationBytes = 2;  // bfloat16.
// Operations of the vector unit for each output element. For the norms and relu, they are counted
// in the layer's formula. For gelu (a polynomial for tanh) and softmax (exp counts as one of its 6
// operations), they are assumed.
constexpr double kCastOps = 1;  // f32 from the array to bfloat16.
constexpr double kBiasOps = 1;
constexpr double kReluOps = 1;
constexpr double kStatisticsOps = 2, kScaleShiftOps = 2;
constexpr double kNormBackwardOps = 8;  // 4 for the two sums, 4 to apply them.
constexpr double kGeluOps = 10, kGeluBackwardOps = 14;
constexpr double kDropoutOps = 2, kDropoutBackwardOps = 1;
constexpr double kSoftmaxOps = 6, kSoftmaxBackwardOps = 4;  // For each score.

struct Ops {
  double forward = 0, backward = 0;
};

// The operations of a layer, without those for batch norm's statistics.
Ops OpsOf(const LayerPlan& layer) {
  const auto window = static_cast<double>(layer.window.size_y * layer.window.size_x);
  switch (layer.kind) {
    case LayerKind::kConv2d:
    case LayerKind::kDense: {
      const double bias = layer.bias ? kBiasOps : 0;
      return {kCastOps + bias, kCastOps + bias};
    }
    case LayerKind::kAttention: {
      const auto scores_per_output =
          static_cast<double>(layer.output.height * layer.output.width * layer.heads) /
          static_cast<double>(layer.output.channels);
      return {kCastOps + kSoftmaxOps * scores_per_output,
              3 * kCastOps + kSoftmaxBackwardOps * scores_per_output};
    }
    case LayerKind::kBatchNorm:
      return {kScaleShiftOps, kNormBackwardOps};
    case LayerKind::kLayerNorm:
      return {kStatisticsOps + kScaleShiftOps, kNormBackwardOps};
    case LayerKind::kRelu:
      return {kReluOps, kReluOps};
    case LayerKind::kGelu:
      return {kGeluOps, kGeluBackwardOps};
    case LayerKind::kAdd:
      return {static_cast<double>(layer.inputs.size() - 1), 0};
    case LayerKind::kDropout:
      return {kDropoutOps, kDropoutBackwardOps};
    case LayerKind::kMaxPool:
      return {window - 1, window};
    case LayerKind::kAveragePool:
      return {window, window};
  }
  return {};
}

struct Bytes {
  double forward = 0, backward = 0;
};

// The bytes that a pass itself moves. The bytes of a product (conv2d, dense, attention) are counted
// with the product. `layer` is the first layer of the pass; x and y are the bytes of its input and
// output.
Bytes BytesOf(const LayerPlan& layer, double x, double y, bool has_statistics) {
  switch (layer.kind) {
    case LayerKind::kConv2d:
    case LayerKind::kDense:
    case LayerKind::kAttention:
      return {};
    case LayerKind::kBatchNorm:
      return {has_statistics ? 2 * y : 3 * y, 5 * y};
    case LayerKind::kLayerNorm:
      return {2 * y, 3 * y};
    case LayerKind::kRelu:
    case LayerKind::kGelu:
    case LayerKind::kDropout:
      return {x + y, 3 * y};
    case LayerKind::kAdd:
      return {static_cast<double>(layer.inputs.size()) * x + y, 0};
    case LayerKind::kMaxPool:
      return {x + y, y + 2 * x};
    case LayerKind::kAveragePool:
      return {x + y, y + x};
  }
  return {};
}

double Elements(const Shape& shape, int64_t batch) {
  return static_cast<double>(batch) * static_cast<double>(shape.size());
}

}  // namespace

double VectorSeconds(double elements, double ops, const v1::Chip& chip) {
  const double rows = std::ceil(elements / static_cast<double>(chip.vector_lanes()));
  return rows * ops / static_cast<double>(chip.vector_units_per_lane()) / chip.clock_hz();
}

PassCosts CostOf(const Model& model, const FusedRow& row, size_t pass, int64_t batch, bool training,
                 const v1::Chip& chip) {
  const auto plan = [&](int64_t layer) -> const LayerPlan& {
    return model.layers[static_cast<size_t>(layer)];
  };
  PassCosts costs;
  for (const int64_t number : row.passes[pass].layers) {
    const LayerPlan& layer = plan(number);
    if (layer.kind == LayerKind::kDropout && !training) continue;
    const Ops ops = OpsOf(layer);
    const double elements = Elements(layer.output, batch);
    costs.forward.vector_s += VectorSeconds(elements, ops.forward, chip);
    costs.backward.vector_s += VectorSeconds(elements, ops.backward, chip);
  }
  const LayerPlan& first = plan(row.passes[pass].layers.front());
  const double x = kActivationBytes * Elements(first.input, batch);
  const double y = kActivationBytes * Elements(first.output, batch);
  const Bytes bytes = BytesOf(first, x, y, /*has_statistics=*/pass > 0 || !training);
  costs.forward.bytes = bytes.forward;
  costs.backward.bytes = bytes.backward;
  if (!training) return costs;
  // A batch norm's statistics are computed in the pass before the batch norm's own pass, because
  // that pass computes the batch norm's input. If the row begins with the batch norm, its own pass
  // computes the statistics.
  const auto add_statistics = [&](const LayerPlan& opens) {
    if (opens.kind != LayerKind::kBatchNorm) return;
    costs.forward.vector_s += VectorSeconds(Elements(opens.output, batch), kStatisticsOps, chip);
  };
  if (pass == 0) add_statistics(first);
  if (pass + 1 < row.passes.size()) add_statistics(plan(row.passes[pass + 1].layers.front()));
  return costs;
}

}  // namespace systole::emulator
