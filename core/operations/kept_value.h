// Chooses which of a program's values a cache keeps (v1::Cache).
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
  size_t steps = 0;  // How many steps from the first on make the value.
  // What these steps do, as a text for cache keys. Equal texts make equal values of equal bytes.
  std::string made_by;
};

// Among the uint8 images that are made before the first random step, chooses the one of the fewest
// bytes, and the last of equal ones. An image whose size only the record has counts as larger than
// any other. Bytes that decode_raw copies are not kept. REQUIRES: `program` is made of the output's
// transforms.
//   InvalidArgument  there is no such image. The message is the end of a sentence that begins with
//                    `cache`.
absl::StatusOr<KeptValue> KeptValueOf(const v1::Output& output, const Program& program);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_KEPT_VALUE_H_
