#include "core/operations/ops/draws.h"

#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/status/check.h"

namespace systole {

Draws::Draws(uint32_t purpose, int before, absl::string_view key)
    : purpose_(purpose | static_cast<uint32_t>(before) << 16), key_(key.empty() ? 0 : Xxh3(key)) {}

Draws::Draws(const TensorFlowSeed& seed) : tensorflow_(seed) {}

absl::StatusOr<Draws> Draws::Create(const v1::Transform& transform, uint32_t purpose, int before,
                                    bool takes_tf_seed) {
  if (transform.key().size() > kMaxTransformKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("has a key of ", transform.key().size(),
                                                   " bytes, want at most ", kMaxTransformKeyBytes));
  }
  if (purpose == 0 && !transform.key().empty()) {
    return absl::InvalidArgumentError("has a key, but draws nothing; leave it out");
  }
  if (transform.tf_seed().empty()) return Draws(purpose, before, transform.key());
  if (transform.tf_seed_size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a tf_seed of ", transform.tf_seed_size(), " values, want 2"));
  }
  if (!takes_tf_seed) {
    return absl::InvalidArgumentError(
        "has a tf_seed, but is not one of TensorFlow's stateless random ops; leave it out");
  }
  if (!transform.key().empty()) {
    return absl::InvalidArgumentError(
        "has a key and a tf_seed, want one of them; to draw differently from another transform, "
        "leave out the key and use another tf_seed");
  }
  return Draws(TensorFlowSeed{transform.tf_seed(0), transform.tf_seed(1)});
}

CounterRng Draws::Rng(const ExampleKey& example) const {
  SYSTOLE_CHECK(!is_tensorflow());
  return CounterRng(example.seed ^ key_, example.epoch, example.record, purpose_);
}

TensorFlowRng Draws::TensorFlow(const ExampleKey& example) const {
  SYSTOLE_CHECK(is_tensorflow());
  return TensorFlowRng(FoldIn(FoldIn(*tensorflow_, example.epoch), example.record));
}

float Draws::UniformFloat(const ExampleKey& example) const {
  return is_tensorflow() ? TensorFlow(example).UniformFloat() : Rng(example).UniformFloat();
}

}  // namespace systole
