// Which of a program's values a cache keeps (v1::Cache).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_KEPT_VALUE_H_
#define SYSTOLE_CORE_OPERATIONS_KEPT_VALUE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "core/operations/program.h"
#include "systole/v1/feed.pb.h"

namespace systole {

struct KeptValue {
  size_t steps = 0;  // How many first steps make it; the others go on from it.
  // What these steps do, for keys: equal texts make equal values of equal bytes.
  std::string made_by;
};

// Of the uint8 images that are made before the first random step, the one of the fewest bytes; of
// equals the last. One whose size only the record tells counts as larger than any other. What
// decode_raw copies is not worth keeping. REQUIRES: `program` is made of the output's transforms.
//   InvalidArgument  there is none. The message is the end of a sentence that begins with `cache`.
absl::StatusOr<KeptValue> KeptValueOf(const v1::Output& output, const Program& program);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_KEPT_VALUE_H_
