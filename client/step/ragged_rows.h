// A padded output (v1::Padded) without its padding, in the form of tf.RaggedTensor.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_STEP_RAGGED_ROWS_H_
#define SYSTOLE_CLIENT_STEP_RAGGED_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/step/step.h"

namespace systole {

struct RaggedRows {
  // The items of all examples, one after the other, in the tensor's type.
  std::vector<uint8_t> values;
  // Example i has the items [row_splits[i], row_splits[i + 1]). There is one more split than there
  // are examples.
  std::vector<int64_t> row_splits;
};

// The lists of the output `name` on `core` (its absolute number). The list of a place without an
// example is empty.
//   InvalidArgument  the step has no padded output of this name.
//   DataLoss         a length is out of range, because the step's memory was changed.
// REQUIRES: core is one of the step's.
absl::StatusOr<RaggedRows> RaggedRowsOf(const Step& step, int core, absl::string_view name);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_RAGGED_ROWS_H_
