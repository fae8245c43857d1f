#include "client/emulator/training/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/string_view.h"
#include "client/emulator/array/flush_scope.h"
#include "client/emulator/array/vector_unit.h"
#include "client/emulator/training/make_layer.h"
#include "core/checksum/xxh3.h"
#include "core/random/philox.h"
#include "core/status/check.h"

namespace systole::emulator {
namespace {

// Adds up the numbers of n shards in a tree: first pairs of neighbours, then pairs of their sums,
// and so on. Shard 0 gets the sum. add(to, from) adds the numbers of shard `from` to those of shard
// `to`.
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

template <typename T>
absl::string_view BytesOf(const DeviceArray<T>& array) {
  return {reinterpret_cast<const char*>(array.data()),
          static_cast<size_t>(array.size()) * sizeof(T)};
}

}  // namespace

template <typename T>
int64_t Network<T>::Bytes(const Model& model, const NetworkOptions& options) {
  const int64_t images = options.images_per_shard;
  const std::vector<int64_t> slots = PlanGradients(model).slot_sizes;
  int64_t values = model.input.size();
  int64_t layer_bytes = 0;
  ScratchPlan scratch(options.numerics);
  for (const LayerPlan& layer : model.layers) {
    values += layer.output.size();
    layer_bytes += LayerBytes<T>(layer, images, layer.needs_input_gradient());
    PlanScratch(layer, layer.needs_input_gradient(), scratch);
  }
  for (const int64_t slot : slots) values += slot;
  const int64_t size = sizeof(T);
  // The arrays of a shard: input, gradients, outputs, slots.
  const auto arrays = static_cast<int64_t>(2 + model.layers.size() + slots.size());
  const int64_t shard = (values * images + model.parameters + arrays * kArraySlack) * size +
                        layer_bytes + scratch.bytes();
  const int64_t states = WeightUpdate<T>::StatesPerParameter(model.optimizer);
  const int64_t core =
      ((1 + states) * (model.parameters + kArraySlack) + model.statistics + kArraySlack) * size;
  return options.num_cores * (core + options.shards_per_core * shard);
}

template <typename T>
Network<T>::Network(const Model& model, const NetworkOptions& options, WorkerPool* pool)
    : model_(model),
      options_(options),
      pool_(pool),
      cores_(static_cast<size_t>(options.num_cores)),
      shards_(static_cast<size_t>(options.num_cores * options.shards_per_core)),
      gradient_plan_(PlanGradients(model)),
      weight_update_(model) {
  const int64_t states = WeightUpdate<T>::StatesPerParameter(model.optimizer);
  for (Core& core : cores_) {
    core.parameters = DeviceArray<T>(model.parameters);
    for (int64_t i = 0; i < states; ++i) core.optimizer_state.emplace_back(model.parameters);
    core.statistics = DeviceArray<T>(model.statistics);
  }
  Parallel(options.num_cores, [this](int64_t core) { InitialiseWeights(cores_[core]); });
  const int64_t images = options.images_per_shard;
  for (size_t s = 0; s < shards_.size(); ++s) {
    Shard& shard = shards_[s];
    Core& core = cores_[s / static_cast<size_t>(options.shards_per_core)];
    shard.batch = {.input = DeviceArray<T>(images * model.input.size()),
                   .labels = std::vector<int64_t>(static_cast<size_t>(images)),
                   .valid = std::vector<uint8_t>(static_cast<size_t>(images))};
    shard.matrix_unit = MatrixUnit<T>(options.numerics);
    for (const int64_t slot : gradient_plan_.slot_sizes) {
      shard.d_outputs.emplace_back(images * slot);
    }
    shard.gradients = DeviceArray<T>(model.parameters);
    const absl::Span<const T> learned = core.parameters.span();
    const absl::Span<T> gradients = shard.gradients.span();
    for (const LayerPlan& plan : model.layers) {
      const auto part = [](auto span, int64_t at, int64_t n) {
        return span.subspan(static_cast<size_t>(at), static_cast<size_t>(n));
      };
      shard.layers.push_back(MakeLayer<T>(
          plan, images, plan.needs_input_gradient(),
          {.weights = part(learned, plan.weights_at, plan.weights),
           .biases = part(learned, plan.biases_at, plan.biases),
           .weight_gradients = part(gradients, plan.weights_at, plan.weights),
           .bias_gradients = part(gradients, plan.biases_at, plan.biases),
           .statistics = part(core.statistics.span(), plan.statistics_at, plan.statistics)}));
      shard.outputs.emplace_back(images * plan.output.size());
    }
  }
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
    if (layer.kind != LayerKind::kConv2d && layer.kind != LayerKind::kDense) continue;
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
StepContext<T> Network<T>::ContextOf(int64_t shard) {
  return {.images = options_.images_per_shard,
          .valid = shards_[shard].batch.valid.data(),
          .valid_everywhere = valid_everywhere_,
          .valid_on_core = cores_[shard / options_.shards_per_core].valid,
          .training = training_,
          .seed = options_.seed,
          .step = step_,
          .first_example = shard * options_.images_per_shard,
          .matrix_unit = &shards_[shard].matrix_unit};
}

template <typename T>
std::vector<const T*> Network<T>::InputsOf(const Shard& shard, size_t layer) const {
  std::vector<const T*> inputs;
  for (const int64_t input : model_.layers[layer].inputs) {
    inputs.push_back(input < 0 ? shard.batch.input.data() : shard.outputs[input].data());
  }
  return inputs;
}

template <typename T>
void Network<T>::SumPartials(size_t layer, int64_t first_shard, int64_t shards) {
  const FlushScope flush;
  const VectorUnit<T>& unit = GetVectorUnit<T>();
  const auto partials = [&](int64_t s) {
    return shards_[first_shard + s].layers[layer]->Partials();
  };
  ReduceInTree(shards, [&](int64_t to, int64_t from) {
    const absl::Span<T> sum = partials(to);
    unit.add(static_cast<int64_t>(sum.size()), partials(from).data(), sum.data());
  });
  const absl::Span<const T> sum = partials(0);
  for (int64_t s = 1; s < shards; ++s) std::copy(sum.begin(), sum.end(), partials(s).begin());
}

template <typename T>
void Network<T>::SumPartials(size_t layer) {
  if (!shards_[0].layers[layer]->sums_on_core_only()) {
    return SumPartials(layer, 0, num_shards());
  }
  for (int64_t core = 0; core < options_.num_cores; ++core) {
    SumPartials(layer, core * options_.shards_per_core, options_.shards_per_core);
  }
}

template <typename T>
void Network<T>::Run(absl::Span<const Phase> phases,
                     absl::FunctionRef<void(int64_t shard, const Phase&)> run) {
  for (size_t begin = 0; begin < phases.size();) {
    size_t end = begin;
    while (end < phases.size() && phases[end].is_last) ++end;
    const bool sums = end < phases.size();
    if (sums) ++end;
    Parallel(num_shards(), [&](int64_t s) {
      for (size_t i = begin; i < end; ++i) run(s, phases[i]);
    });
    if (sums) SumPartials(phases[end - 1].layer);
    begin = end;
  }
}

template <typename T>
typename Network<T>::Result Network<T>::Forward(bool training, int64_t step) {
  training_ = training;
  step_ = step;
  valid_everywhere_ = 0;
  for (Core& core : cores_) core.valid = 0;
  for (int64_t s = 0; s < num_shards(); ++s) {
    const std::vector<uint8_t>& valid = shards_[s].batch.valid;
    const int64_t count =
        std::count_if(valid.begin(), valid.end(), [](uint8_t v) { return v != 0; });
    cores_[s / options_.shards_per_core].valid += count;
    valid_everywhere_ += count;
  }
  if (valid_everywhere_ == 0) return {};
  std::vector<Phase> phases;
  for (size_t layer = 0; layer < model_.layers.size(); ++layer) {
    const int n = shards_[0].layers[layer]->ForwardPhases(training);
    for (int p = 0; p < n; ++p) {
      phases.push_back({.layer = layer, .phase = p, .is_last = p + 1 == n});
    }
  }
  Run(phases, [this](int64_t s, const Phase& phase) {
    Shard& shard = shards_[s];
    shard.layers[phase.layer]->Forward(phase.phase, ContextOf(s), InputsOf(shard, phase.layer),
                                       shard.outputs[phase.layer].data());
  });
  Parallel(num_shards(), [this](int64_t s) {
    Shard& shard = shards_[s];
    shard.loss = SoftmaxCrossEntropy<T>(
        shard.outputs.back().data(), model_.classes, shard.batch.labels, shard.batch.valid,
        static_cast<T>(model_.label_smoothing), static_cast<T>(valid_everywhere_),
        training_ ? shard.d_outputs[gradient_plan_.steps.back().output].data() : nullptr);
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
      phases.push_back({.layer = layer, .phase = p, .is_last = p + 1 == n});
    }
  }
  Run(phases, [this](int64_t shard, const Phase& phase) { RunBackward(shard, phase); });
}

template <typename T>
void Network<T>::RunBackward(int64_t s, const Phase& phase) {
  Shard& shard = shards_[s];
  const GradientPlan::Step& plan = gradient_plan_.steps[phase.layer];
  T* written = plan.written < 0 ? nullptr : shard.d_outputs[plan.written].data();
  shard.layers[phase.layer]->Backward(phase.phase, ContextOf(s), InputsOf(shard, phase.layer),
                                      shard.d_outputs[plan.output].data(), written);
  if (!phase.is_last) return;
  const int64_t n = options_.images_per_shard * model_.layers[phase.layer].input.size();
  for (const GradientPlan::Delivery& delivery : plan.deliveries) {
    T* to = shard.d_outputs[delivery.to].data();
    if (delivery.adds) {
      GetVectorUnit<T>().add(n, written, to);
    } else {
      std::copy_n(written, n, to);
    }
  }
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
void Network<T>::Update(T rate, int64_t step) {
  const auto pieces = static_cast<int64_t>(weight_update_.pieces().size());
  const T* sum = shards_[0].gradients.data();
  Parallel(pieces, [&](int64_t i) {
    SumGradientPiece(weight_update_.pieces()[i].begin, weight_update_.pieces()[i].end);
    weight_update_.Measure(i, sum, cores_[0].parameters.data());
  });
  {
    const FlushScope flush;
    weight_update_.FinishMeasures();
  }
  Parallel(pieces, [&](int64_t i) {
    for (Core& core : cores_) {
      weight_update_.Apply(i, rate, step, sum, absl::MakeSpan(core.optimizer_state),
                           core.parameters.data());
    }
  });
  UpdateStatistics();
}

template <typename T>
void Network<T>::UpdateStatistics() {
  Parallel(options_.num_cores, [this](int64_t core) {
    for (auto& layer : shards_[core * options_.shards_per_core].layers) {
      if (cores_[core].valid > 0 || !layer->sums_on_core_only()) layer->UpdateStatistics();
    }
  });
  for (size_t layer = 0; layer < model_.layers.size(); ++layer) {
    if (shards_[0].layers[layer]->sums_on_core_only()) AverageStatistics(model_.layers[layer]);
  }
}

template <typename T>
void Network<T>::AverageStatistics(const LayerPlan& layer) {
  const FlushScope flush;
  const auto part = [&](int64_t core) {
    return cores_[core].statistics.data() + layer.statistics_at;
  };
  T counted = 0;
  for (int64_t core = 0; core < options_.num_cores; ++core) {
    if (cores_[core].valid > 0) {
      counted += 1;
    } else {
      std::fill_n(part(core), layer.statistics, T{0});
    }
  }
  ReduceInTree(options_.num_cores, [&](int64_t to, int64_t from) {
    GetVectorUnit<T>().add(layer.statistics, part(from), part(to));
  });
  for (int64_t i = 0; i < layer.statistics; ++i) part(0)[i] = part(0)[i] / counted;
  for (int64_t core = 1; core < options_.num_cores; ++core) {
    std::copy_n(part(0), layer.statistics, part(core));
  }
}

template <typename T>
std::vector<uint64_t> Network<T>::HashReplicas() {
  std::vector<uint64_t> hashes(cores_.size());
  Parallel(options_.num_cores, [this, &hashes](int64_t core) {
    // Without the rotation, the hashes of two equal arrays would cancel each other. With the
    // rotation, unequal replicas get equal hashes only by an ordinary collision.
    const uint64_t statistics = Xxh3(BytesOf(cores_[core].statistics));
    hashes[core] = Xxh3(BytesOf(cores_[core].parameters)) ^ (statistics << 1 | statistics >> 63);
  });
  return hashes;
}

template class Network<float>;
template class Network<double>;

}  // namespace systole::emulator
