#include "core/tensor/cast_int64s.h"

#include <cstddef>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"

namespace systole {

absl::Status CastInt64s(absl::Span<const int64_t> values, DType dtype, absl::Span<uint8_t> out) {
  SYSTOLE_CHECK(out.size() == values.size() * static_cast<size_t>(DTypeBytes(dtype)));
  if (values.empty()) return absl::OkStatus();
  if (dtype == DType::kInt64) {
    std::memcpy(out.data(), values.data(), out.size());
    return absl::OkStatus();
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < std::numeric_limits<int32_t>::min() ||
        values[i] > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("value ", values[i], " at index ", i,
                                                     " does not fit int32; use dtype: INT64"));
    }
    const auto narrow = static_cast<int32_t>(values[i]);
    std::memcpy(out.data() + i * sizeof(narrow), &narrow, sizeof(narrow));
  }
  return absl::OkStatus();
}

}  // namespace systole
