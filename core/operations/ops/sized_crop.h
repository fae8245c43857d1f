// Cuts out a rectangle by a rule and resizes it to a given size. random_resized_crop, center_crop
// and resize share this class.
//
// Thread-compatible; immutable.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_SIZED_CROP_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_SIZED_CROP_H_

#include <functional>
#include <vector>

#include "core/image/resize/resampler.h"
#include "core/operations/ops/operation.h"

namespace systole {

class SizedCrop final : public Operation {
 public:
  using Rule = std::function<CropRect(int height, int width, const ExampleKey& example)>;

  // REQUIRES: WantEdges(height, width).
  SizedCrop(Rule rule, int height, int width, const ResampleOptions& options);

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override;
  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override;
  absl::StatusOr<Value> Run(Value input, const ExampleKey& example) const override;
  int64_t Work(const ValueType& input, const ValueType& output) const override;
  std::vector<OperationPart> Parts() const override;

 private:
  CropRect RectOf(const Value& input, const ExampleKey& example) const;

  Rule rule_;
  int height_;
  int width_;
  ResampleOptions options_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_SIZED_CROP_H_
