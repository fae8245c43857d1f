#include "client/emulator/chip/fusion.h"

#include <algorithm>

namespace systole::emulator {
namespace {

bool HasProducts(LayerKind kind) {
  return kind == LayerKind::kConv2d || kind == LayerKind::kDense || kind == LayerKind::kAttention;
}

bool OpensPass(LayerKind kind, bool after_epilogue, bool training) {
  switch (kind) {
    case LayerKind::kBatchNorm:
      return training;
    case LayerKind::kLayerNorm:
      return true;
    case LayerKind::kMaxPool:
    case LayerKind::kAveragePool:
      return after_epilogue;
    case LayerKind::kConv2d:
    case LayerKind::kDense:
    case LayerKind::kAttention:
    case LayerKind::kRelu:
    case LayerKind::kAdd:
    case LayerKind::kDropout:
    case LayerKind::kGelu:
      break;
  }
  return false;
}

std::vector<int64_t> CountTakers(const Model& model) {
  std::vector<int64_t> takers(model.layers.size());
  for (const LayerPlan& layer : model.layers) {
    for (const int64_t input : layer.inputs) {
      if (input >= 0) ++takers[static_cast<size_t>(input)];
    }
  }
  return takers;
}

}  // namespace

std::vector<FusedRow> FuseLayers(const Model& model, bool training) {
  const std::vector<int64_t> takers = CountTakers(model);
  std::vector<FusedRow> rows;
  std::vector<size_t> row_of;  // The row of each layer.
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerPlan& layer = model.layers[i];
    const auto number = static_cast<int64_t>(i);
    // A layer can join the row of an input that no other layer takes, because this input is the
    // last layer of its row. If there are several such inputs, the layer joins the row of the input
    // that is computed last. By then the other inputs of this kind are known.
    int64_t carrier = -1;
    for (const int64_t input : layer.inputs) {
      if (input >= 0 && takers[static_cast<size_t>(input)] == 1) {
        carrier = std::max(carrier, input);
      }
    }
    if (HasProducts(layer.kind) || carrier < 0) {
      rows.push_back({.products = HasProducts(layer.kind), .passes = {{.layers = {number}}}});
      row_of.push_back(rows.size() - 1);
      continue;
    }
    FusedRow& row = rows[row_of[static_cast<size_t>(carrier)]];
    const bool after_epilogue = row.products && row.passes.size() == 1;
    if (OpensPass(layer.kind, after_epilogue, training)) {
      row.passes.push_back({.layers = {number}});
    } else {
      row.passes.back().layers.push_back(number);
    }
    row_of.push_back(row_of[static_cast<size_t>(carrier)]);
  }
  return rows;
}

}  // namespace systole::emulator
