// Writes lists whose length varies from example to example as padded outputs (v1::Padded).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_ENGINE_FEATURE_LISTS_H_
#define SYSTOLE_CORE_ENGINE_FEATURE_LISTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/example/feature_view.h"
#include "core/plan/output_plan.h"

namespace systole {

// Memory for the values of a list before they are cast to the output's type.
struct ListScratch {
  std::vector<int64_t> int64s;
  std::vector<float> floats;

  int64_t bytes() const {
    return static_cast<int64_t>(int64s.capacity() * sizeof(int64_t) +
                                floats.capacity() * sizeof(float));
  }
};

// Writes the feature's list into `out`, the memory of one example of the output, and pads it.
// Returns how many items of the list are in `out`. REQUIRES: output.padded has a value.
//   InvalidArgument  the list is of another kind, is too long, ends within an item, or has a value
//                    that does not fit.
//   DataLoss         the record changed while it was read.
absl::StatusOr<int32_t> WritePadded(const OutputPlan& output, const FeatureView& feature,
                                    ListScratch& scratch, absl::Span<uint8_t> out);
// Like the function above, but the list is the bytes of `record`.
absl::StatusOr<int32_t> WritePadded(const OutputPlan& output, absl::string_view record,
                                    absl::Span<uint8_t> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_FEATURE_LISTS_H_
