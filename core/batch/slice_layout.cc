#include "core/batch/slice_layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/memory/aligned_buffer.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// A tensor of a feed has few dimensions: [batch, height, width, channels] and a little more.
constexpr size_t kMaxRank = 8;

// Checks one description alone.
absl::Status CheckTensor(const SliceTensor& tensor) {
  const TensorSpec& spec = tensor.spec;
  if (spec.name.empty()) return absl::InvalidArgumentError("a tensor has no name");
  if (spec.shape.empty() || spec.shape.size() > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor '", spec.name, "' has ", spec.shape.size(), " dimensions, want 1 to ", kMaxRank));
  }
  if (tensor.batch_axis != 0 && tensor.batch_axis != static_cast<int>(spec.shape.size()) - 1) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", spec.name, "' has batch axis ",
                                                   tensor.batch_axis,
                                                   ", want the first dimension or the last"));
  }
  int64_t bytes = DTypeBytes(spec.dtype);
  for (const int64_t dimension : spec.shape) {
    if (dimension <= 0) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", spec.name, "' has a dimension of ",
                                                     dimension, ", want 1 or more"));
    }
    if (dimension > kMaxSliceBytes / bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(spec.DebugString(), " is larger than ", kMaxSliceBytes,
                       " bytes; make global_batch smaller, or num_cores larger"));
    }
    bytes *= dimension;
  }
  return absl::OkStatus();
}

void HashHeader(const TensorSpec& spec, absl::Span<const int64_t> shape, Xxh3Hasher& hasher) {
  hasher.UpdateU64(spec.name.size());
  hasher.Update(spec.name);
  hasher.UpdateU64(static_cast<uint64_t>(spec.dtype));
  hasher.UpdateU64(shape.size());
  for (const int64_t dimension : shape) hasher.UpdateU64(static_cast<uint64_t>(dimension));
}

absl::string_view AsChars(const uint8_t* data, int64_t bytes) {
  return absl::string_view(reinterpret_cast<const char*>(data), static_cast<size_t>(bytes));
}

}  // namespace

ExamplePieces SliceTensor::PiecesOf(int64_t slot) const {
  const int64_t batch = per_core_batch();
  SYSTOLE_CHECK(slot >= 0 && slot < batch);
  if (batch_axis == 0) {
    const int64_t example_bytes = spec.num_bytes() / batch;
    return {.offset = slot * example_bytes, .count = 1, .bytes = example_bytes, .stride = 0};
  }
  const int64_t element = DTypeBytes(spec.dtype);
  return {.offset = slot * element,
          .count = spec.num_elements() / batch,
          .bytes = element,
          .stride = batch * element};
}

absl::StatusOr<SliceLayout> SliceLayout::Create(std::vector<SliceTensor> tensors) {
  if (tensors.empty()) return absl::InvalidArgumentError("a slice needs at least one tensor");
  if (tensors.size() > kMaxSliceTensors) {
    return absl::InvalidArgumentError(absl::StrCat("a slice of ", tensors.size(),
                                                   " tensors, want at most ", kMaxSliceTensors,
                                                   ", 'valid' included"));
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const SliceTensor& a, const SliceTensor& b) { return a.spec.name < b.spec.name; });
  SliceLayout layout;
  for (size_t i = 0; i < tensors.size(); ++i) {
    SliceTensor& tensor = tensors[i];
    SYSTOLE_RETURN_IF_ERROR(CheckTensor(tensor));
    if (i > 0 && tensors[i - 1].spec.name == tensor.spec.name) {
      return absl::InvalidArgumentError(
          absl::StrCat("two outputs are named '", tensor.spec.name, "'; rename one"));
    }
    if (tensor.per_core_batch() != tensors[0].per_core_batch()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", tensor.spec.name, "' holds ", tensor.per_core_batch(), " examples, '",
          tensors[0].spec.name, "' holds ", tensors[0].per_core_batch(), "; want the same"));
    }
    if (tensor.spec.name == kValidTensor) {
      if (tensor.spec.dtype != DType::kUint8 || tensor.spec.shape.size() != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("want valid uint8[per-core batch], not ", tensor.spec.DebugString()));
      }
      layout.valid_index_ = static_cast<int>(i);
    }
    tensor.offset = layout.slice_bytes_;
    layout.slice_bytes_ += AlignUp(tensor.spec.num_bytes());
    layout.payload_bytes_ += tensor.spec.num_bytes();
    if (layout.slice_bytes_ > kMaxSliceBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("one core's slice is larger than ", kMaxSliceBytes,
                       " bytes; make global_batch smaller, or num_cores larger"));
    }
  }
  if (layout.valid_index_ < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensor '", kValidTensor, "' is missing from the slice"));
  }
  layout.tensors_ = std::move(tensors);
  return layout;
}

int SliceLayout::IndexOf(absl::string_view name) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].spec.name == name) return static_cast<int>(i);
  }
  return -1;
}

TensorView SliceLayout::View(int index, const uint8_t* slice) const {
  const SliceTensor& tensor = tensors_[static_cast<size_t>(index)];
  return {.dtype = tensor.spec.dtype, .shape = tensor.spec.shape, .data = slice + tensor.offset};
}

void ClearExample(const SliceTensor& tensor, int64_t slot, uint8_t* values) {
  const ExamplePieces pieces = tensor.PiecesOf(slot);
  uint8_t* at = values + pieces.offset;
  for (int64_t i = 0; i < pieces.count; ++i, at += pieces.stride) {
    std::memset(at, 0, static_cast<size_t>(pieces.bytes));
  }
}

void ClearExample(const SliceLayout& layout, int64_t slot, uint8_t* slice) {
  for (const SliceTensor& tensor : layout.tensors()) {
    ClearExample(tensor, slot, slice + tensor.offset);
  }
}

void PlaceExample(const SliceTensor& tensor, int64_t slot, const uint8_t* example, uint8_t* slice) {
  const ExamplePieces pieces = tensor.PiecesOf(slot);
  uint8_t* at = slice + tensor.offset + pieces.offset;
  for (int64_t i = 0; i < pieces.count; ++i, at += pieces.stride, example += pieces.bytes) {
    std::memcpy(at, example, static_cast<size_t>(pieces.bytes));
  }
}

std::string SliceDigest(const SliceLayout& layout, const uint8_t* slice) {
  Xxh3Hasher hasher;
  for (const SliceTensor& tensor : layout.tensors()) {
    HashHeader(tensor.spec, tensor.spec.shape, hasher);
    hasher.Update(AsChars(slice + tensor.offset, tensor.spec.num_bytes()));
  }
  return hasher.Digest128Hex();
}

std::string ExampleDigest(const SliceLayout& layout, int64_t slot, const uint8_t* slice) {
  Xxh3Hasher hasher;
  for (const SliceTensor& tensor : layout.tensors()) {
    std::vector<int64_t> shape = tensor.spec.shape;
    shape.erase(shape.begin() + tensor.batch_axis);
    HashHeader(tensor.spec, shape, hasher);
    const ExamplePieces pieces = tensor.PiecesOf(slot);
    const uint8_t* at = slice + tensor.offset + pieces.offset;
    for (int64_t i = 0; i < pieces.count; ++i, at += pieces.stride) {
      hasher.Update(AsChars(at, pieces.bytes));
    }
  }
  return hasher.Digest128Hex();
}

}  // namespace systole
