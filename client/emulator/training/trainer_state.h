// The state of a trainer: the step, and the named tensors of one replica. Together with model,
// options and batches, the state decides the trainer's next steps. All replicas are equal.
// checkpoint.proto has the tensors' names, shapes and order.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINER_STATE_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINER_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/emulator/model/model.h"

namespace systole::emulator {

struct StateTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;  // Row-major.

  friend bool operator==(const StateTensor&, const StateTensor&) = default;
};

struct TrainerState {
  int64_t steps = 0;
  std::vector<StateTensor> tensors;

  friend bool operator==(const TrainerState&, const TrainerState&) = default;
};

// Where a replica keeps one of its tensors.
struct TensorPlace {
  std::string name;
  std::vector<int64_t> shape;
  // Which of the replica's arrays: 0 the parameters, 1 the running statistics, 2 and more the
  // optimizer's.
  int array = 0;
  int64_t begin = 0, size = 0;  // The tensor's elements in that array.
};

// All tensors of a replica of `model`, in the order of checkpoint.proto.
std::vector<TensorPlace> TensorPlaces(const Model& model);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINER_STATE_H_
