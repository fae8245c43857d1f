#include "client/emulator/training/trainer_state.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace systole::emulator {
namespace {

std::vector<int64_t> WeightShape(const LayerPlan& layer) {
  switch (layer.kind) {
    case LayerKind::kConv2d:
      return {layer.window.size_y, layer.window.size_x, layer.input.channels,
              layer.output.channels};
    case LayerKind::kDense:
      return {layer.input.channels, layer.output.channels};
    default:
      return {layer.weights};
  }
}

void AddParameters(const LayerPlan& layer, std::vector<TensorPlace>& places) {
  const bool is_norm = layer.kind == LayerKind::kBatchNorm || layer.kind == LayerKind::kLayerNorm;
  if (layer.weights > 0) {
    places.push_back({.name = absl::StrCat(layer.name, is_norm ? "/scales" : "/weights"),
                      .shape = WeightShape(layer),
                      .begin = layer.weights_at,
                      .size = layer.weights});
  }
  if (layer.biases > 0) {
    places.push_back({.name = absl::StrCat(layer.name, is_norm ? "/shifts" : "/biases"),
                      .shape = {layer.biases},
                      .begin = layer.biases_at,
                      .size = layer.biases});
  }
}

void AddStatistics(const LayerPlan& layer, std::vector<TensorPlace>& places) {
  if (layer.statistics == 0) return;
  const int64_t channels = layer.statistics / 2;
  int64_t begin = layer.statistics_at;
  for (const char* name : {"/running_means", "/running_variances"}) {
    places.push_back({.name = layer.name + name,
                      .shape = {channels},
                      .array = 1,
                      .begin = begin,
                      .size = channels});
    begin += channels;
  }
}

}  // namespace

std::vector<TensorPlace> TensorPlaces(const Model& model) {
  std::vector<TensorPlace> places;
  for (const LayerPlan& layer : model.layers) AddParameters(layer, places);
  const std::vector<TensorPlace> parameters = places;
  for (const LayerPlan& layer : model.layers) AddStatistics(layer, places);
  const std::vector<const char*> kept = model.optimizer.has_adam()
                                            ? std::vector{"/first_moment", "/second_moment"}
                                            : std::vector{"/velocity"};
  for (size_t i = 0; i < kept.size(); ++i) {
    for (TensorPlace place : parameters) {
      place.name += kept[i];
      place.array = 2 + static_cast<int>(i);
      places.push_back(std::move(place));
    }
  }
  return places;
}

}  // namespace systole::emulator
