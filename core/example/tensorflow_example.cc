#include "core/example/tensorflow_example.h"

#include "core/example/feature_decoder.h"

namespace systole {
namespace {

class Format final : public ExampleFormat {
 public:
  absl::string_view name() const override { return "tf.train.Example"; }
  absl::Status Decode(absl::string_view record, MadeText&,
                      absl::FunctionRef<void(const FeatureView&)> visit) const override {
    return FeatureDecoder(record).Decode(visit);
  }
};

}  // namespace

const ExampleFormat& TensorFlowExample() {
  static const Format format;
  return format;
}

}  // namespace systole
