#include "client/emulator/model/optimizer.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/emulator/model/value_range.h"
#include "core/numeric/math.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

absl::Status CheckSchedule(const v1::Optimizer& o) {
  constexpr int64_t kMostSteps = int64_t{1} << 40;
  SYSTOLE_RETURN_IF_ERROR(CheckRange("optimizer.warmup_steps", o.warmup_steps(), 0, kMostSteps));
  if (o.schedule() != v1::LINEAR && o.schedule() != v1::COSINE) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer.schedule is ", static_cast<int>(o.schedule()), ", want LINEAR or COSINE"));
  }
  if (o.decay_steps() == 0) {
    if (o.schedule() == v1::COSINE) {
      return absl::InvalidArgumentError("optimizer.schedule COSINE needs decay_steps beside it");
    }
    if (o.final_learning_rate() == 0) return absl::OkStatus();
    return absl::InvalidArgumentError("optimizer.final_learning_rate needs decay_steps beside it");
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

absl::Status CompileAdam(v1::Adam& adam) {
  if (adam.beta1() == 0) adam.set_beta1(0.9f);
  if (adam.beta2() == 0) adam.set_beta2(0.999f);
  if (adam.epsilon() == 0) adam.set_epsilon(1e-8f);
  SYSTOLE_RETURN_IF_ERROR(CheckRange("optimizer.adam.beta1", adam.beta1(), 0.0f, 1.0f));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("optimizer.adam.beta2", adam.beta2(), 0.0f, 1.0f));
  return CheckRange("optimizer.adam.epsilon", adam.epsilon(), 1e-30f, 1.0f);
}

absl::Status CompileLars(v1::Lars& lars) {
  if (lars.trust_coefficient() == 0) lars.set_trust_coefficient(0.001f);
  SYSTOLE_RETURN_IF_ERROR(
      CheckRange("optimizer.lars.trust_coefficient", lars.trust_coefficient(), 0.0f, 1e6f));
  return CheckRange("optimizer.lars.epsilon", lars.epsilon(), 0.0f, 1.0f);
}

}  // namespace

absl::StatusOr<v1::Optimizer> CompileOptimizer(const v1::Optimizer& optimizer) {
  v1::Optimizer o = optimizer;
  if (!(o.learning_rate() > 0) || !std::isfinite(o.learning_rate())) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer.learning_rate is ", o.learning_rate(), ", want a positive number"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckRange("optimizer.momentum", o.momentum(), 0.0f, 1.0f));
  SYSTOLE_RETURN_IF_ERROR(CheckRange("optimizer.weight_decay", o.weight_decay(), 0.0f, 1.0f));
  SYSTOLE_RETURN_IF_ERROR(CheckSchedule(o));
  if (o.has_adam()) {
    if (o.momentum() != 0) {
      return absl::InvalidArgumentError(
          "optimizer.momentum does not go with adam; adam.beta1 is its momentum");
    }
    SYSTOLE_RETURN_IF_ERROR(CompileAdam(*o.mutable_adam()));
  }
  if (o.has_lars()) SYSTOLE_RETURN_IF_ERROR(CompileLars(*o.mutable_lars()));
  return o;
}

float LearningRate(const v1::Optimizer& optimizer, int64_t step) {
  const float highest = optimizer.learning_rate();
  if (step < optimizer.warmup_steps()) {
    return highest * (static_cast<float>(step + 1) / static_cast<float>(optimizer.warmup_steps()));
  }
  if (optimizer.decay_steps() == 0) return highest;
  const float last = optimizer.final_learning_rate();
  if (step >= optimizer.decay_steps()) return last;
  const int64_t since = step - optimizer.warmup_steps();
  const int64_t span = optimizer.decay_steps() - optimizer.warmup_steps();
  const float done = static_cast<float>(since) / static_cast<float>(span);
  if (optimizer.schedule() == v1::COSINE) {
    return last + (highest - last) * (0.5f * (1.0f + CosPi(done)));
  }
  return highest + (last - highest) * done;
}

}  // namespace systole::emulator
