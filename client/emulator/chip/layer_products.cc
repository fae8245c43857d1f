#include "client/emulator/chip/layer_products.h"

#include <algorithm>

#include "client/emulator/array/divide_up.h"
#include "core/status/check.h"

namespace systole::emulator {
namespace {

// Part of the backward pass of a strided window, along one axis of the image. Inputs whose places
// are equal modulo the stride form a phase: the same `taps` places of the window act on all of
// them. Place t of the window at output o acts on input i = o * stride + t - pad.
struct Phase {
  int64_t inputs;
  int64_t taps;
  int64_t count = 1;  // How many phases have these numbers.
};

// There may be as many phases as the image has places. Equal phases are counted together. There are
// at most four different ones, because the phases' `inputs` differ by 1 at most, and their `taps`,
// too. Phases without inputs or taps are left out.
std::vector<Phase> PhasesOf(int64_t inputs, int64_t size, int64_t stride, int64_t pad) {
  std::vector<Phase> phases;
  for (int64_t first = 0; first < std::min(inputs, stride); ++first) {
    const int64_t first_tap = (first + pad) % stride;
    if (first_tap >= size) continue;
    const Phase phase = {.inputs = DivideUp(inputs - first, stride),
                         .taps = DivideUp(size - first_tap, stride)};
    const auto same = std::find_if(phases.begin(), phases.end(), [&](const Phase& other) {
      return other.inputs == phase.inputs && other.taps == phase.taps;
    });
    if (same == phases.end()) {
      phases.push_back(phase);
    } else {
      ++same->count;
    }
  }
  return phases;
}

LayerProducts ConvProducts(const LayerPlan& layer, int64_t batch) {
  const Shape& in = layer.input;
  const Shape& out = layer.output;
  const Window& window = layer.window;
  const int64_t outputs = batch * out.height * out.width;
  const int64_t patch = window.size_y * window.size_x * in.channels;
  LayerProducts products;
  products.forward = {{.gemm = {outputs, patch, out.channels}}};
  products.weight_gradient = {{.gemm = {patch, outputs, out.channels}}};
  const std::vector<Phase> rows = PhasesOf(in.height, window.size_y, window.stride, window.pad_top);
  const std::vector<Phase> columns =
      PhasesOf(in.width, window.size_x, window.stride, window.pad_left);
  for (const Phase& y : rows) {
    for (const Phase& x : columns) {
      products.input_gradient.push_back(
          {.gemm = {batch * y.inputs * x.inputs, y.taps * x.taps * out.channels, in.channels},
           .repeats = y.count * x.count});
    }
  }
  return products;
}

LayerProducts DenseProducts(const LayerPlan& layer, int64_t batch) {
  const int64_t rows = batch * layer.output.height * layer.output.width;
  const int64_t in = layer.weights / layer.output.channels, out = layer.output.channels;
  return {.forward = {{.gemm = {rows, in, out}}},
          .input_gradient = {{.gemm = {rows, out, in}}},
          .weight_gradient = {{.gemm = {in, rows, out}}}};
}

LayerProducts AttentionProducts(const LayerPlan& layer, int64_t batch) {
  const int64_t positions = layer.output.height * layer.output.width;
  const int64_t depth = layer.output.channels / layer.heads;
  const int64_t repeats = batch * layer.heads;
  const Product scores = {.gemm = {positions, depth, positions}, .repeats = repeats};
  const Product context = {.gemm = {positions, positions, depth}, .repeats = repeats};
  return {.forward = {scores, context}, .input_gradient = {context, scores, context, context}};
}

}  // namespace

LayerProducts ProductsOf(const LayerPlan& layer, int64_t batch) {
  SYSTOLE_CHECK(batch >= 1 && batch <= int64_t{1} << 20);
  switch (layer.kind) {
    case LayerKind::kConv2d:
      return ConvProducts(layer, batch);
    case LayerKind::kDense:
      return DenseProducts(layer, batch);
    case LayerKind::kAttention:
      return AttentionProducts(layer, batch);
    case LayerKind::kBatchNorm:
    case LayerKind::kRelu:
    case LayerKind::kMaxPool:
    case LayerKind::kAveragePool:
    case LayerKind::kAdd:
    case LayerKind::kDropout:
    case LayerKind::kLayerNorm:
    case LayerKind::kGelu:
      break;
  }
  return {};
}

}  // namespace systole::emulator
