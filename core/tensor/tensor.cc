#include "core/tensor/tensor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace systole {
namespace {

int64_t Product(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  for (const int64_t dimension : shape) product *= dimension;
  return product;
}

}  // namespace

int64_t TensorSpec::num_elements() const { return Product(shape); }

std::string TensorSpec::DebugString() const {
  return absl::StrCat(name, " ", DTypeName(dtype), "[", absl::StrJoin(shape, ","), "]");
}

int64_t TensorView::num_elements() const { return Product(shape); }

}  // namespace systole
