// The parts of a spec for records whose features differ: values for records that lack a feature
// (DefaultValue), and room for lists of different lengths (Padded).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PLAN_FEATURE_SCHEMA_H_
#define SYSTOLE_CORE_PLAN_FEATURE_SCHEMA_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/example/feature_view.h"
#include "core/plan/output_plan.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The most bytes of the default value of a bytes feature. Every feed holds a copy.
inline constexpr int64_t kMaxDefaultBytes = int64_t{1} << 20;
// The most pixels that are decoded to check the default images of a spec, in all images together.
// The thread that answers a client decodes them. Of an image that exceeds the limit, only the
// header is read.
inline constexpr int64_t kMaxDefaultPixels = int64_t{1} << 18;
// The most values that a default stands for. The server writes all of them for each record that
// lacks the feature.
inline constexpr int64_t kMaxDefaultElements = int64_t{1} << 20;

// The kind of feature that the output expects, for a feature that no sampled record has. kMissing
// if the output does not say the kind.
FeatureKind DeclaredKind(const v1::Output& output);

// The values for records that lack the feature. REQUIRES: output.has_default_value().
//   InvalidArgument  the values are of another kind than the feature, or their number does not
//                    match the shape. The message continues a sentence that begins with the output.
absl::StatusOr<DefaultValues> DefaultValuesOf(const v1::Output& output, OutputPlan::Source source,
                                              int64_t stored_elements);

// Writes output.stored_elements values for a record that lacks the feature. If default_values has
// only one value, repeats this value. REQUIRES: output.default_values is set, and its values are of
// the vector's type.
void SpreadDefault(const OutputPlan& output, std::vector<int64_t>& int64s);
void SpreadDefault(const OutputPlan& output, std::vector<float>& floats);

// Checks whether the output can be made from the default value. An image is decoded only if it has
// at most `pixels_left` pixels, which are then subtracted from `pixels_left`. REQUIRES: the output
// is compiled, and the cost of an example was checked (example_cost.h, scratch_bytes.h).
//   InvalidArgument  the value does not fit. The message is as for DefaultValuesOf().
absl::Status CheckDefault(const OutputPlan& output, int64_t& pixels_left);

// Sets the fields of `plan` that make room for a list: stored_elements, shape, dtype and padded.
// REQUIRES: output.has_padded(); the plan's source, stored_shape and stored_elements are set.
//   InvalidArgument  `padded` does not fit the output. The message is as for DefaultValuesOf().
absl::Status SetPadded(const v1::Output& output, OutputPlan& plan);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_FEATURE_SCHEMA_H_
