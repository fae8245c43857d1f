#include "client/emulator/training/weight_update.h"

#include <algorithm>
#include <cmath>

#include "client/emulator/array/vector_unit.h"

namespace systole::emulator {
namespace {

// base^exponent by squaring. Only products are used, because they have the same bits on every CPU.
// The type is double, so that 1 - 0.999^t keeps its digits for small t.
double Power(double base, int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) power *= base;
  }
  return power;
}

template <typename T>
T SumOfSquares(int64_t n, const T* x) {
  const T zero = 0;
  T sum = 0;
  GetVectorUnit<T>().sum_squares(n, 1, x, PerChannel<T>(absl::MakeConstSpan(&zero, 1)), &sum);
  return sum;
}

}  // namespace

template <typename T>
WeightUpdate<T>::WeightUpdate(const Model& model) : optimizer_(model.optimizer) {
  constexpr int64_t kPiece = 1 << 13;
  const auto add = [this](int64_t layer, int64_t begin, int64_t size, bool is_weights) {
    for (int64_t at = begin; at < begin + size; at += kPiece) {
      pieces_.push_back({.begin = at,
                         .end = std::min(at + kPiece, begin + size),
                         .is_weights = is_weights,
                         .layer = layer});
    }
  };
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerPlan& layer = model.layers[i];
    const bool multiplies = layer.kind == LayerKind::kConv2d || layer.kind == LayerKind::kDense;
    add(static_cast<int64_t>(i), layer.weights_at, layer.weights, multiplies);
    add(static_cast<int64_t>(i), layer.biases_at, layer.biases, false);
  }
  squares_.resize(pieces_.size());
  ratios_.resize(model.layers.size());
}

template <typename T>
int64_t WeightUpdate<T>::StatesPerParameter(const v1::Optimizer& optimizer) {
  return optimizer.has_adam() ? 2 : 1;
}

template <typename T>
void WeightUpdate<T>::Measure(int64_t piece, const T* gradient, const T* weights) {
  const Piece& p = pieces_[piece];
  if (!optimizer_.has_lars() || !p.is_weights) return;
  squares_[piece] = {.gradient = SumOfSquares(p.end - p.begin, gradient + p.begin),
                     .weights = SumOfSquares(p.end - p.begin, weights + p.begin)};
}

template <typename T>
void WeightUpdate<T>::FinishMeasures() {
  if (!optimizer_.has_lars()) return;
  std::vector<Squares> of_layer(ratios_.size());
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (!pieces_[i].is_weights) continue;
    Squares& sum = of_layer[pieces_[i].layer];
    sum.gradient += squares_[i].gradient;
    sum.weights += squares_[i].weights;
  }
  const v1::Lars& lars = optimizer_.lars();
  for (size_t layer = 0; layer < ratios_.size(); ++layer) {
    const T weights = std::sqrt(of_layer[layer].weights);
    const T divisor = std::sqrt(of_layer[layer].gradient) +
                      static_cast<T>(optimizer_.weight_decay()) * weights +
                      static_cast<T>(lars.epsilon());
    const bool has_ratio = weights > 0 && divisor > 0;
    ratios_[layer] =
        has_ratio ? static_cast<T>(lars.trust_coefficient()) * weights / divisor : T{1};
  }
}

template <typename T>
void WeightUpdate<T>::Apply(int64_t piece, T rate, int64_t step, const T* gradient,
                            absl::Span<DeviceArray<T>> states, T* weights) const {
  const Piece& p = pieces_[piece];
  const VectorUnit<T>& unit = GetVectorUnit<T>();
  const int64_t n = p.end - p.begin;
  const T decay = p.is_weights ? static_cast<T>(optimizer_.weight_decay()) : T{0};
  const T momentum = static_cast<T>(optimizer_.momentum());
  gradient += p.begin;
  weights += p.begin;
  T* state = states[0].data() + p.begin;
  switch (optimizer_.algorithm_case()) {
    case v1::Optimizer::kAdam: {
      const v1::Adam& adam = optimizer_.adam();
      const AdamFactors<T> factors = {
          .rate = rate,
          .beta1 = static_cast<T>(adam.beta1()),
          .beta2 = static_cast<T>(adam.beta2()),
          .correction1 = static_cast<T>(1 - Power(static_cast<double>(adam.beta1()), step + 1)),
          .correction2 = static_cast<T>(1 - Power(static_cast<double>(adam.beta2()), step + 1)),
          .epsilon = static_cast<T>(adam.epsilon()),
          .decay = decay};
      return unit.update_adam(n, factors, gradient, state, states[1].data() + p.begin, weights);
    }
    case v1::Optimizer::kLars: {
      const T ratio = p.is_weights ? ratios_[p.layer] : T{1};
      return unit.update_lars(n, rate * ratio, momentum, decay, gradient, state, weights);
    }
    case v1::Optimizer::ALGORITHM_NOT_SET:
      break;
  }
  unit.update(n, rate, momentum, decay, gradient, state, weights);
}

template class WeightUpdate<float>;
template class WeightUpdate<double>;

}  // namespace systole::emulator
