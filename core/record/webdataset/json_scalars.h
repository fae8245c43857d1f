// The scalars of a JSON object, as Python's json reads them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_WEBDATASET_JSON_SCALARS_H_
#define SYSTOLE_CORE_RECORD_WEBDATASET_JSON_SCALARS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace systole {

// The most lists and objects inside one another. Without this limit, a text of opening brackets
// could use up the stack.
inline constexpr int kMaxJsonDepth = 64;
// The most scalars of one object.
inline constexpr int kMaxJsonScalars = 1000;

// A boolean is 0 or 1. A whole number is an int64_t if it fits. Any other number is a float.
using JsonScalar = std::variant<std::string, int64_t, float>;

// Checks all of `text`, and calls `visit` with each member of the object that is a string, a number
// or a boolean. Skips null, lists and objects, and all that is inside them. If a name comes twice,
// the later member counts. A text that is not an object has no members. NaN and Infinity are
// numbers here, as Python writes them. Returns DataLoss if the text is not JSON in UTF-8, has a
// number too large for a float, has half a surrogate pair, or exceeds a limit. The message names
// the cause and the byte's offset.
absl::Status VisitJsonScalars(
    absl::string_view text,
    absl::FunctionRef<void(absl::string_view name, JsonScalar value)> visit);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_WEBDATASET_JSON_SCALARS_H_
