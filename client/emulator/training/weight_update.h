// How an optimizer updates the weights: plain SGD with momentum, AdamW or LARS (model.proto has the
// formulas). The update works on pieces of the parameters. Pieces are small enough to spread over
// threads, and to stay in a cache while all replicas are updated.
//
//   for every piece:  Measure(gradient, weights)     any order, any thread
//   FinishMeasures()                                 after Measure() of all pieces
//   for every piece and replica:  Apply(..)          any order, any thread
//
// For the norms of LARS, VectorUnit::sum_squares sums up the squares of each piece. Then a layer's
// pieces are added in order. So the number of threads changes no bit.
// Thread-compatible; Measure() and Apply() of different pieces may run at the same time.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_WEIGHT_UPDATE_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_WEIGHT_UPDATE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "client/emulator/array/device_array.h"
#include "client/emulator/model/model.h"

namespace systole::emulator {

template <typename T>
class WeightUpdate {
 public:
  // A range of the parameters: only weights, or only biases, of one layer.
  struct Piece {
    int64_t begin, end;
    bool is_weights;  // Weights of conv2d or dense. They decay, and LARS scales their rate.
    int64_t layer;    // Index into Model::layers.
  };

  explicit WeightUpdate(const Model& model);

  // Numbers that an optimizer keeps per parameter: 1 (SGD's and LARS's velocity) or 2 (Adam's first
  // moment, then its second moment). They start as 0.
  static int64_t StatesPerParameter(const v1::Optimizer& optimizer);

  absl::Span<const Piece> pieces() const { return pieces_; }

  // `gradient` (summed over all shards) and `weights` are whole arrays, as Model places them.
  void Measure(int64_t piece, const T* gradient, const T* weights);
  void FinishMeasures();
  // Updates one replica's piece. `step` counts from 0. `states`: StatesPerParameter() whole arrays.
  void Apply(int64_t piece, T rate, int64_t step, const T* gradient,
             absl::Span<DeviceArray<T>> states, T* weights) const;

 private:
  struct Squares {
    T gradient = 0, weights = 0;
  };

  const v1::Optimizer optimizer_;
  std::vector<Piece> pieces_;
  std::vector<Squares> squares_;  // LARS: per piece.
  std::vector<T> ratios_;         // LARS: per layer.
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_WEIGHT_UPDATE_H_
