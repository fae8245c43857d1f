#include "proto/framing/layout_description.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/tensor/dtype.h"

namespace systole {
namespace {

// A DType has the same number as in messages. Digests contain this number, and must be the same in
// server and client.
static_assert(static_cast<int>(v1::UINT8) == static_cast<int>(DType::kUint8));
static_assert(static_cast<int>(v1::INT32) == static_cast<int>(DType::kInt32));
static_assert(static_cast<int>(v1::INT64) == static_cast<int>(DType::kInt64));
static_assert(static_cast<int>(v1::FLOAT32) == static_cast<int>(DType::kFloat32));
static_assert(static_cast<int>(v1::BFLOAT16) == static_cast<int>(DType::kBfloat16));
static_assert(static_cast<int>(v1::FLOAT16) == static_cast<int>(DType::kFloat16));

}  // namespace

void DescribeLayout(const SliceLayout& layout, v1::ResolveFeedResponse& response) {
  response.clear_tensors();
  for (const SliceTensor& tensor : layout.tensors()) {
    v1::TensorDescription& description = *response.add_tensors();
    description.set_name(tensor.spec.name);
    description.set_dtype(static_cast<v1::DataType>(tensor.spec.dtype));
    for (const int64_t dimension : tensor.spec.shape) description.add_shape(dimension);
    description.set_batch_axis(tensor.batch_axis);
    for (const int64_t dimension : tensor.untiled_shape) {
      description.add_untiled_shape(dimension);
    }
  }
}

absl::StatusOr<SliceLayout> LayoutOf(const v1::ResolveFeedResponse& response) {
  std::vector<SliceTensor> tensors;
  tensors.reserve(static_cast<size_t>(response.tensors_size()));
  for (const v1::TensorDescription& description : response.tensors()) {
    if (description.dtype() < v1::UINT8 || description.dtype() > v1::FLOAT16) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", description.name(),
                                                     "' has the unknown type ",
                                                     static_cast<int>(description.dtype())));
    }
    // A chunk names its tensor by the tensor's index in this list, so both ends must use the same
    // order.
    if (!tensors.empty() && description.name() <= tensors.back().spec.name) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", description.name(), "' is not in the order of names"));
    }
    tensors.push_back({.spec = {.name = description.name(),
                                .dtype = static_cast<DType>(description.dtype()),
                                .shape = {description.shape().begin(), description.shape().end()}},
                       .batch_axis = description.batch_axis(),
                       .untiled_shape = {description.untiled_shape().begin(),
                                         description.untiled_shape().end()}});
  }
  return SliceLayout::Create(std::move(tensors));
}

}  // namespace systole
