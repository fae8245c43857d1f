#include "client/emulator/training/trainer.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/emulator/model/optimizer.h"
#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

absl::Status CheckOption(absl::string_view name, int64_t value, int64_t largest) {
  if (value >= 1 && value <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a trainer's ", name, " is ", value, ", want 1 to ", largest));
}

std::string Describe(const TensorView& tensor) {
  return absl::StrCat(DTypeName(tensor.dtype), "[", absl::StrJoin(tensor.shape, ","), "]");
}

absl::Status CheckVector(absl::string_view name, int64_t core, const TensorView& tensor,
                         DType dtype, int64_t size) {
  if (tensor.dtype == dtype && tensor.shape.size() == 1 && tensor.shape[0] == size) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("core ", core, ": tensor '", name, "' is ",
                                                 Describe(tensor), ", want ", DTypeName(dtype), "[",
                                                 size, "]"));
}

// Whether the shape is [batch], followed by any dimensions of `size` elements in all.
bool IsBatchOf(const TensorView& tensor, int64_t batch, int64_t size) {
  if (tensor.shape.empty() || tensor.shape[0] != batch) return false;
  int64_t elements = 1;
  for (const int64_t dimension : tensor.shape.subspan(1)) {
    if (dimension < 1 || dimension > size / elements) return false;
    elements *= dimension;
  }
  return elements == size;
}

// Converts one example's values to float.
void Widen(const TensorView& image, int64_t at, int64_t n, float* out) {
  const auto span = [&](auto* values) {
    return absl::MakeConstSpan(values + at, static_cast<size_t>(n));
  };
  switch (image.dtype) {
    case DType::kFloat32: {
      const auto in = span(reinterpret_cast<const float*>(image.data));
      std::copy(in.begin(), in.end(), out);
      break;
    }
    case DType::kBfloat16:
      Bf16ToFloat(span(reinterpret_cast<const uint16_t*>(image.data)),
                  absl::MakeSpan(out, static_cast<size_t>(n)));
      break;
    case DType::kFloat16:
      Float16ToFloat(span(reinterpret_cast<const uint16_t*>(image.data)),
                     absl::MakeSpan(out, static_cast<size_t>(n)));
      break;
    default: {
      const auto in = span(image.data);
      std::copy(in.begin(), in.end(), out);
      break;
    }
  }
}

}  // namespace

absl::StatusOr<Trainer> Trainer::Create(const Model& model, const TrainerOptions& options) {
  if (const LayerPlan* layer = model.first_untrainable()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model '", model.name, "' has layer '", layer->name,
        "', of a kind that cannot be trained; to see the model's cost, use `systole compile`"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckOption("num_cores", options.num_cores, 1 << 12));
  SYSTOLE_RETURN_IF_ERROR(CheckOption("per_core_batch", options.per_core_batch, 1 << 20));
  SYSTOLE_RETURN_IF_ERROR(CheckOption("shards_per_core", options.shards_per_core, 1 << 12));
  SYSTOLE_RETURN_IF_ERROR(CheckOption("threads", options.threads, 1 << 10));
  SYSTOLE_RETURN_IF_ERROR(
      CheckOption("memory_limit_bytes", options.memory_limit_bytes, int64_t{1} << 42));
  if (options.per_core_batch % options.shards_per_core != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("TrainerOptions.per_core_batch is ", options.per_core_batch,
                     ", want a multiple of shards_per_core (", options.shards_per_core, ")"));
  }
  // The memory for one image a core is checked first. If it is within the limit, the sizes for the
  // whole batch do not overflow.
  const NetworkOptions one = {.num_cores = 1, .images_per_shard = 1, .numerics = options.numerics};
  const int64_t images = options.num_cores * options.per_core_batch;
  const int64_t per_image = Network<float>::Bytes(model, one);
  if (per_image > options.memory_limit_bytes / options.num_cores ||
      Network<float>::Bytes(model,
                            {.num_cores = options.num_cores,
                             .shards_per_core = options.shards_per_core,
                             .images_per_shard = options.per_core_batch / options.shards_per_core,
                             .numerics = options.numerics}) > options.memory_limit_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("model '", model.name, "' on ", options.num_cores, " cores with ", images,
                     " examples per step needs more than ", options.memory_limit_bytes,
                     " bytes, the memory limit of a trainer; make global_batch smaller"));
  }
  return Trainer(model, options);
}

Trainer::Trainer(const Model& model, const TrainerOptions& options)
    : model_(model),
      options_(options),
      pool_(options.threads > 1 ? std::make_unique<WorkerPool>(options.threads - 1) : nullptr),
      network_(std::make_unique<Network<float>>(
          model,
          NetworkOptions{.num_cores = options.num_cores,
                         .shards_per_core = options.shards_per_core,
                         .images_per_shard = options.per_core_batch / options.shards_per_core,
                         .seed = options.seed,
                         .numerics = options.numerics},
          pool_.get())) {}

absl::Status Trainer::CheckInputs(absl::Span<const CoreInputs> cores) const {
  if (static_cast<int64_t>(cores.size()) != options_.num_cores) {
    return absl::InvalidArgumentError(absl::StrCat("the step has slices for ", cores.size(),
                                                   " cores, want ", options_.num_cores));
  }
  for (int64_t core = 0; core < options_.num_cores; ++core) {
    const CoreInputs& inputs = cores[core];
    const int64_t batch = options_.per_core_batch;
    SYSTOLE_RETURN_IF_ERROR(CheckVector("label", core, inputs.label, DType::kInt64, batch));
    SYSTOLE_RETURN_IF_ERROR(CheckVector("valid", core, inputs.valid, DType::kUint8, batch));
    if (!IsInputDType(inputs.image.dtype)) {
      return absl::InvalidArgumentError(absl::StrCat("core ", core, ": tensor 'image' is ",
                                                     Describe(inputs.image), ", want ",
                                                     InputDTypeNames()));
    }
    if (!IsBatchOf(inputs.image, batch, model_.input.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "core ", core, ": tensor 'image' is ", Describe(inputs.image), ", want [", batch, ",",
          absl::StrJoin(model_.input_shape, ","), "] as model '", model_.name, "' says"));
    }
    for (int64_t slot = 0; slot < batch; ++slot) {
      const int64_t label = inputs.label.As<int64_t>()[slot];
      if (inputs.valid.data[slot] == 0 || (label >= 0 && label < model_.classes)) continue;
      return absl::InvalidArgumentError(absl::StrCat("core ", core, ", slot ", slot, ": label is ",
                                                     label, ", want 0 to ", model_.classes - 1));
    }
  }
  return absl::OkStatus();
}

void Trainer::LoadInputs(absl::Span<const CoreInputs> cores) {
  const int64_t images = options_.per_core_batch / options_.shards_per_core;
  const int64_t size = model_.input.size();
  network_->Parallel(network_->num_shards(), [&](int64_t shard) {
    const CoreInputs& inputs = cores[shard / options_.shards_per_core];
    const int64_t first = shard % options_.shards_per_core * images;
    auto& batch = network_->batch(shard);
    for (int64_t i = 0; i < images; ++i) {
      float* out = batch.input.data() + i * size;
      batch.valid[i] = inputs.valid.data[first + i];
      batch.labels[i] = inputs.label.As<int64_t>()[first + i];
      if (batch.valid[i] == 0) {
        // The bytes of a place without an example could be a NaN, which must not reach a product.
        std::fill_n(out, size, 0.0f);
        continue;
      }
      Widen(inputs.image, (first + i) * size, size, out);
      if (model_.input_scale == 1.0f) continue;
      for (int64_t k = 0; k < size; ++k) out[k] *= model_.input_scale;
    }
  });
}

absl::StatusOr<StepResult> Trainer::Step(absl::Span<const CoreInputs> cores) {
  SYSTOLE_RETURN_IF_ERROR(CheckInputs(cores));
  LoadInputs(cores);
  const Network<float>::Result result = network_->Forward(/*training=*/true, steps_);
  const int64_t step = steps_++;
  if (result.valid == 0) return StepResult{};
  network_->Backward();
  network_->Update(LearningRate(model_.optimizer, step), step);
  const std::vector<uint64_t> hashes = network_->HashReplicas();
  for (size_t core = 1; core < hashes.size(); ++core) {
    if (hashes[core] == hashes[0]) continue;
    return absl::InternalError(absl::StrCat("after step ", step, " core ", core,
                                            "'s replica of the weights differs from core 0's"));
  }
  return StepResult{.loss = result.loss, .correct = result.correct, .valid = result.valid};
}

absl::StatusOr<StepResult> Trainer::Evaluate(absl::Span<const CoreInputs> cores) {
  SYSTOLE_RETURN_IF_ERROR(CheckInputs(cores));
  LoadInputs(cores);
  const Network<float>::Result result = network_->Forward(/*training=*/false);
  return StepResult{.loss = result.loss, .correct = result.correct, .valid = result.valid};
}

absl::Span<float> Trainer::ValuesAt(const TensorPlace& place, int64_t core) {
  const absl::Span<float> array = place.array == 0 ? network_->parameters(core)
                                  : place.array == 1
                                      ? network_->statistics(core)
                                      : network_->optimizer_state(core)[place.array - 2].span();
  return array.subspan(static_cast<size_t>(place.begin), static_cast<size_t>(place.size));
}

TrainerState Trainer::State() {
  TrainerState state = {.steps = steps_};
  for (TensorPlace& place : TensorPlaces(model_)) {
    const absl::Span<const float> values = ValuesAt(place, 0);
    state.tensors.push_back({.name = std::move(place.name),
                             .shape = std::move(place.shape),
                             .values = {values.begin(), values.end()}});
  }
  return state;
}

absl::Status Trainer::Restore(const TrainerState& state) {
  const std::vector<TensorPlace> places = TensorPlaces(model_);
  if (state.tensors.size() != places.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the trainer's state has ", state.tensors.size(),
                                                   " tensors, model '", model_.name, "' needs ",
                                                   places.size()));
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const StateTensor& tensor = state.tensors[i];
    const TensorPlace& place = places[i];
    if (tensor.name == place.name && tensor.shape == place.shape &&
        static_cast<int64_t>(tensor.values.size()) == place.size) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", i, " of the trainer's state is '", absl::CEscape(tensor.name), "' [",
        absl::StrJoin(tensor.shape, ","), "] with ", tensor.values.size(), " values, model '",
        model_.name, "' needs '", place.name, "' [", absl::StrJoin(place.shape, ","), "]"));
  }
  network_->Parallel(options_.num_cores, [&](int64_t core) {
    for (size_t i = 0; i < places.size(); ++i) {
      const std::vector<float>& values = state.tensors[i].values;
      std::copy(values.begin(), values.end(), ValuesAt(places[i], core).begin());
    }
  });
  steps_ = state.steps;
  return absl::OkStatus();
}

uint64_t Trainer::WeightsHash() { return network_->HashReplicas()[0]; }

}  // namespace systole::emulator
