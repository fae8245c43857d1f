#include "client/emulator/training/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/string_view.h"
#include "client/emulator/array/flush_scope.h"
#include "client/emulator/array/vector_unit.h"
#include "core/checksum/xxh3.h"
#include "core/random/philox.h"
#include "core/status/check.h"

namespace systole::emulator {
namespace {

// Adds n shards' numbers into shard 0's: neighbours, then neighbours' sums, and so on up the tree.
// add(to, from) does one edge.
void ReduceInTree(int64_t n, absl::FunctionRef<void(int64_t to, int64_t from)> add) {
  for (int64_t distance = 1; distance < n; distance *= 2) {
    for (int64_t to = 0; to + distance < n; to += 2 * distance) add(to, to + distance);
  }
}

// Uniform in [-1, 1), in steps of 2^-23.
float SignedUniform(uint64_t seed, int64_t layer, int64_t place) {
  const PhiloxBlock block =
      Philox4x32({LowWord(static_cast<uint64_t>(place)), HighWord(static_cast<uint64_t>(place)),
                  static_cast<uint32_t>(layer), 0},
                 {LowWord(seed), HighWord(seed)});
  return static_cast<float>(block[0] >> 8) * 0x1p-23f - 1.0f;
}

int64_t LargestInput(const Model& model) {
  int64_t largest = 0;
  for (const LayerPlan& layer : model.layers) largest = std::max(largest, layer.input.size());
  return largest;
}

template <typename T>
absl::string_view BytesOf(const DeviceArray<T>& array) {
  return {reinterpret_cast<const char*>(array.data()),
          static_cast<size_t>(array.size()) * sizeof(T)};
}

}  // namespace

template <typename T>
int64_t Network<T>::Bytes(const Model& model, const NetworkOptions& options) {
  const int64_t images = options.images_per_shard;
  int64_t values = model.input.size() + model.classes + 2 * LargestInput(model);
  int64_t layer_bytes = 0;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    values += model.layers[i].output.size();
    layer_bytes += LayerBytes<T>(model.layers[i], images, i > 0);
  }
  const int64_t size = sizeof(T);
  const int64_t shard = (values * images + model.parameters) * size + layer_bytes;
  const int64_t core = (2 * model.parameters + model.statistics) * size;
  return options.num_cores * (core + options.shards_per_core * shard);
}

template <typename T>
Network<T>::Network(const Model& model, const NetworkOptions& options, WorkerPool* pool)
    : model_(model),
      options_(options),
      pool_(pool),
      cores_(static_cast<size_t>(options.num_cores)),
      shards_(static_cast<size_t>(options.num_cores * options.shards_per_core)) {
  for (Core& core : cores_) {
    core.parameters = DeviceArray<T>(model.parameters);
    core.momentum = DeviceArray<T>(model.parameters);
    core.statistics = DeviceArray<T>(model.statistics);
  }
  Parallel(options.num_cores, [this](int64_t core) { InitialiseWeights(cores_[core]); });
  const int64_t images = options.images_per_shard;
  const int64_t largest = LargestInput(model) * images;
  for (size_t s = 0; s < shards_.size(); ++s) {
    Shard& shard = shards_[s];
    Core& core = cores_[s / static_cast<size_t>(options.shards_per_core)];
    shard.batch = {.input = DeviceArray<T>(images * model.input.size()),
                   .labels = std::vector<int64_t>(static_cast<size_t>(images)),
                   .valid = std::vector<uint8_t>(static_cast<size_t>(images))};
    shard.d_logits = DeviceArray<T>(images * model.classes);
    shard.d_even = DeviceArray<T>(largest);
    shard.d_odd = DeviceArray<T>(largest);
    shard.gradients = DeviceArray<T>(model.parameters);
    const absl::Span<const T> learned = core.parameters.span();
    const absl::Span<T> gradients = shard.gradients.span();
    for (size_t i = 0; i < model.layers.size(); ++i) {
      const LayerPlan& plan = model.layers[i];
      const auto part = [](auto span, int64_t at, int64_t n) {
        return span.subspan(static_cast<size_t>(at), static_cast<size_t>(n));
      };
      shard.layers.push_back(MakeLayer<T>(
          plan, images, i > 0,
          {.weights = part(learned, plan.weights_at, plan.weights),
           .biases = part(learned, plan.biases_at, plan.biases),
           .weight_gradients = part(gradients, plan.weights_at, plan.weights),
           .bias_gradients = part(gradients, plan.biases_at, plan.biases),
           .statistics = part(core.statistics.span(), plan.statistics_at, plan.statistics)}));
      shard.outputs.emplace_back(images * plan.output.size());
    }
  }
  PlanPieces();
}

template <typename T>
void Network<T>::InitialiseWeights(Core& core) const {
  for (const LayerPlan& layer : model_.layers) {
    T* weights = core.parameters.data() + layer.weights_at;
    if (layer.kind == LayerKind::kBatchNorm) {
      std::fill_n(weights, layer.weights, T{1});
      std::fill_n(core.statistics.data() + layer.statistics_at + layer.statistics / 2,
                  layer.statistics / 2, T{1});
      continue;
    }
    if (layer.weights == 0) continue;
    const int64_t window = layer.window.size_y * layer.window.size_x;
    const int64_t fan_in = window * layer.input.channels;
    const int64_t fan_out = window * layer.output.channels;
    const int64_t fans = layer.initializer == v1::GLOROT_UNIFORM ? fan_in + fan_out : fan_in;
    const float limit = std::sqrt(6.0f / static_cast<float>(fans));
    for (int64_t i = 0; i < layer.weights; ++i) {
      weights[i] = static_cast<T>(SignedUniform(options_.seed, layer.number, i) * limit);
    }
  }
}

// Pieces small enough to spread over the threads and to stay in a cache while all shards' gradients
// are added and all replicas moved.
template <typename T>
void Network<T>::PlanPieces() {
  constexpr int64_t kPiece = 1 << 13;
  const auto add = [this](int64_t begin, int64_t size, bool decays) {
    for (int64_t at = begin; at < begin + size; at += kPiece) {
      pieces_.push_back(
          {.begin = at, .end = std::min(at + kPiece, begin + size), .decays = decays});
    }
  };
  for (const LayerPlan& layer : model_.layers) {
    add(layer.weights_at, layer.weights, layer.kind != LayerKind::kBatchNorm);
    add(layer.biases_at, layer.biases, false);
  }
}

template <typename T>
void Network<T>::Parallel(int64_t n, absl::FunctionRef<void(int64_t)> body) {
  const auto flushed = [&body](int64_t i) {
    const FlushScope flush;
    body(i);
  };
  if (pool_ == nullptr) {
    for (int64_t i = 0; i < n; ++i) flushed(i);
  } else {
    ParallelFor(*pool_, n, flushed);
  }
}

template <typename T>
StepContext<T> Network<T>::ContextOf(Shard& shard) const {
  return {.images = options_.images_per_shard,
          .valid = shard.batch.valid.data(),
          .valid_everywhere = valid_everywhere_,
          .training = training_,
          .matrix_unit = &shard.matrix_unit};
}

template <typename T>
const T* Network<T>::LayerInput(const Shard& shard, size_t layer) const {
  return layer == 0 ? shard.batch.input.data() : shard.outputs[layer - 1].data();
}

template <typename T>
T* Network<T>::InputGradient(Shard& shard, size_t layer) const {
  if (layer == 0) return nullptr;
  return layer % 2 == 0 ? shard.d_even.data() : shard.d_odd.data();
}

template <typename T>
const T* Network<T>::OutputGradient(const Shard& shard, size_t layer) const {
  if (layer + 1 == model_.layers.size()) return shard.d_logits.data();
  return (layer + 1) % 2 == 0 ? shard.d_even.data() : shard.d_odd.data();
}

template <typename T>
void Network<T>::SumPartials(size_t layer) {
  const FlushScope flush;
  const VectorUnit<T>& unit = GetVectorUnit<T>();
  ReduceInTree(num_shards(), [&](int64_t to, int64_t from) {
    const absl::Span<T> sum = shards_[to].layers[layer]->Partials();
    unit.add(static_cast<int64_t>(sum.size()), shards_[from].layers[layer]->Partials().data(),
             sum.data());
  });
  const absl::Span<const T> sum = shards_[0].layers[layer]->Partials();
  for (int64_t s = 1; s < num_shards(); ++s) {
    std::copy(sum.begin(), sum.end(), shards_[s].layers[layer]->Partials().begin());
  }
}

template <typename T>
void Network<T>::Run(absl::Span<const Phase> phases,
                     absl::FunctionRef<void(Shard&, const Phase&)> run) {
  for (size_t begin = 0; begin < phases.size();) {
    size_t end = begin;
    while (end < phases.size() && !phases[end].ends_in_sum) ++end;
    const bool sums = end < phases.size();
    if (sums) ++end;
    Parallel(num_shards(), [&](int64_t s) {
      for (size_t i = begin; i < end; ++i) run(shards_[s], phases[i]);
    });
    if (sums) SumPartials(phases[end - 1].layer);
    begin = end;
  }
}

template <typename T>
typename Network<T>::Result Network<T>::Forward(bool training) {
  training_ = training;
  valid_everywhere_ = 0;
  for (const Shard& shard : shards_) {
    valid_everywhere_ += std::count_if(shard.batch.valid.begin(), shard.batch.valid.end(),
                                       [](uint8_t valid) { return valid != 0; });
  }
  if (valid_everywhere_ == 0) return {};
  std::vector<Phase> phases;
  for (size_t layer = 0; layer < model_.layers.size(); ++layer) {
    const int n = shards_[0].layers[layer]->ForwardPhases(training);
    for (int p = 0; p < n; ++p) {
      phases.push_back({.layer = layer, .phase = p, .ends_in_sum = p + 1 < n});
    }
  }
  Run(phases, [this](Shard& shard, const Phase& phase) {
    shard.layers[phase.layer]->Forward(phase.phase, ContextOf(shard),
                                       LayerInput(shard, phase.layer),
                                       shard.outputs[phase.layer].data());
  });
  Parallel(num_shards(), [this](int64_t s) {
    Shard& shard = shards_[s];
    shard.loss = SoftmaxCrossEntropy<T>(
        shard.outputs.back().data(), model_.classes, shard.batch.labels, shard.batch.valid,
        static_cast<T>(valid_everywhere_), training_ ? shard.d_logits.data() : nullptr);
  });
  const FlushScope flush;
  ReduceInTree(num_shards(), [this](int64_t to, int64_t from) {
    shards_[to].loss.loss += shards_[from].loss.loss;
    shards_[to].loss.correct += shards_[from].loss.correct;
  });
  return {.loss = shards_[0].loss.loss / static_cast<T>(valid_everywhere_),
          .correct = shards_[0].loss.correct,
          .valid = valid_everywhere_};
}

template <typename T>
void Network<T>::Backward() {
  SYSTOLE_CHECK(training_ && valid_everywhere_ > 0);
  std::vector<Phase> phases;
  for (size_t layer = model_.layers.size(); layer-- > 0;) {
    const int n = shards_[0].layers[layer]->BackwardPhases();
    for (int p = 0; p < n; ++p) {
      phases.push_back({.layer = layer, .phase = p, .ends_in_sum = p + 1 < n});
    }
  }
  Run(phases, [this](Shard& shard, const Phase& phase) {
    shard.layers[phase.layer]->Backward(
        phase.phase, ContextOf(shard), LayerInput(shard, phase.layer),
        OutputGradient(shard, phase.layer), InputGradient(shard, phase.layer));
  });
}

template <typename T>
void Network<T>::SumGradientPiece(int64_t begin, int64_t end) {
  const VectorUnit<T>& unit = GetVectorUnit<T>();
  ReduceInTree(num_shards(), [&](int64_t to, int64_t from) {
    unit.add(end - begin, shards_[from].gradients.data() + begin,
             shards_[to].gradients.data() + begin);
  });
}

template <typename T>
void Network<T>::Update(T rate) {
  const T momentum = static_cast<T>(model_.optimizer.momentum());
  Parallel(static_cast<int64_t>(pieces_.size()), [&](int64_t i) {
    const Piece& piece = pieces_[i];
    SumGradientPiece(piece.begin, piece.end);
    const T decay = piece.decays ? static_cast<T>(model_.optimizer.weight_decay()) : T{0};
    const T* sum = shards_[0].gradients.data() + piece.begin;
    for (Core& core : cores_) {
      GetVectorUnit<T>().update(piece.end - piece.begin, rate, momentum, decay, sum,
                                core.momentum.data() + piece.begin,
                                core.parameters.data() + piece.begin);
    }
  });
  Parallel(options_.num_cores, [this](int64_t core) {
    for (auto& layer : shards_[core * options_.shards_per_core].layers) layer->UpdateStatistics();
  });
}

template <typename T>
std::vector<T> Network<T>::SumGradients() {
  SumGradientPiece(0, model_.parameters);
  const absl::Span<const T> sum = shards_[0].gradients.span();
  return {sum.begin(), sum.end()};
}

template <typename T>
std::vector<uint64_t> Network<T>::HashReplicas() {
  std::vector<uint64_t> hashes(cores_.size());
  Parallel(options_.num_cores, [this, &hashes](int64_t core) {
    // Two hashes mixed by a rotation: equal sums of unequal halves are as unlikely as any
    // collision.
    const uint64_t statistics = Xxh3(BytesOf(cores_[core].statistics));
    hashes[core] = Xxh3(BytesOf(cores_[core].parameters)) ^ (statistics << 1 | statistics >> 63);
  });
  return hashes;
}

template class Network<float>;
template class Network<double>;

}  // namespace systole::emulator
