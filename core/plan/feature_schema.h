// The parts of a spec for records whose features differ: values for records that lack a feature
// (DefaultValue), and room for lists of any length (Padded).
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
// The most pixels of a spec's defaults that are decoded to check them. The limit exists because the
// thread that answers a client decodes the images. For larger images only the header is read.
inline constexpr int64_t kMaxDefaultPixels = int64_t{1} << 18;
// The most values that a default stands for. The limit exists because the values are written anew
// for each record that lacks the feature.
inline constexpr int64_t kMaxDefaultElements = int64_t{1} << 20;

// The kind of feature that the output expects, for a feature that no sampled record has. kMissing
// if the output does not say the kind.
FeatureKind DeclaredKind(const v1::Output& output);

// The values for records that lack the feature. REQUIRES: output.has_default_value().
//   InvalidArgument  the values are of another kind than the feature, or their number does not
//                    match the shape. The message continues a sentence that begins with the output.
absl::StatusOr<DefaultValues> DefaultValuesOf(const v1::Output& output, OutputPlan::Source source,
                                              int64_t stored_elements);

// The values for a record that lacks the feature. REQUIRES: output.default_values is set, and its
// values are of the vector's type.
void SpreadDefault(const OutputPlan& output, std::vector<int64_t>& int64s);
void SpreadDefault(const OutputPlan& output, std::vector<float>& floats);

// Checks the default value as if a record held it. An image is decoded only if it has at most
// `pixels_left` pixels. Then its pixels are subtracted from `pixels_left`. REQUIRES: the output is
// compiled, and the work of making an example of it is bounded.
//   InvalidArgument  the value does not fit. The message is as for DefaultValuesOf().
absl::Status CheckDefault(const OutputPlan& output, int64_t& pixels_left);

// Sets the fields that make room for a list: stored_elements, shape, dtype and padded. REQUIRES:
// output.has_padded(), source and stored_shape are set.
//   InvalidArgument  `padded` does not fit the output. The message is as for DefaultValuesOf().
absl::Status SetPadded(const v1::Output& output, OutputPlan& plan);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_FEATURE_SCHEMA_H_
