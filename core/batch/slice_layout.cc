#include "core/batch/slice_layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/checksum/xxh3.h"
#include "core/memory/aligned_buffer.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The most dimensions of a tensor. A tensor of images has 4, or 7 in tiles.
constexpr size_t kMaxRank = 8;

// Checks the tiles of a tensor whose dimensions have been checked. OK if it has no tiles.
absl::Status CheckTiles(const SliceTensor& tensor) {
  if (!tensor.is_tiled()) return absl::OkStatus();
  const auto refuse = [&tensor](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.spec.name, "' in tiles of [",
                                                   absl::StrJoin(tensor.untiled_shape, ","), "] ",
                                                   what));
  };
  if (tensor.untiled_shape.size() != 4 ||
      std::any_of(tensor.untiled_shape.begin(), tensor.untiled_shape.end(),
                  [](int64_t dimension) { return dimension <= 0; })) {
    return refuse("needs [height, width, channels, per-core batch], each 1 or more");
  }
  if (tensor.spec.dtype != DType::kBfloat16) {
    return refuse(absl::StrCat("is ", DTypeName(tensor.spec.dtype), ", want bfloat16"));
  }
  const std::vector<int64_t> want = TiledShape(tensor.untiled_shape);
  if (tensor.spec.shape != want || tensor.batch_axis != 0) {
    return refuse(absl::StrCat("has the shape [", absl::StrJoin(tensor.spec.shape, ","),
                               "] and batch axis ", tensor.batch_axis, ", want [",
                               absl::StrJoin(want, ","), "] and 0"));
  }
  return absl::OkStatus();
}

// Checks the description of one tensor, without the other tensors of the slice.
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
  return CheckTiles(tensor);
}

void HashHeader(const TensorSpec& spec, absl::Span<const int64_t> shape, Xxh3Hasher& hasher) {
  hasher.UpdateU64(spec.name.size());
  hasher.Update(spec.name);
  hasher.UpdateU64(static_cast<uint64_t>(spec.dtype));
  hasher.UpdateU64(shape.size());
  for (const int64_t dimension : shape) hasher.UpdateU64(static_cast<uint64_t>(dimension));
}

// Sets the places of the examples [slot, slot + count) to zero, for all pixels and channels.
// REQUIRES: these places lie in the same group of kTileExamples places.
void ClearTilePlaces(const SliceTensor& tensor, int64_t slot, int64_t count, uint8_t* values) {
  const TiledPieces pieces = TiledPiecesOf(tensor, slot);
  for (int64_t tile = 0; tile < pieces.tiles; ++tile) {
    uint8_t* at = values + pieces.offset + tile * pieces.tile_stride;
    for (int64_t c = 0; c < kTileChannels; c += kTilePack, at += TiledPieces::kPairStride) {
      std::memset(at, 0, static_cast<size_t>(count * TiledPieces::kPairBytes));
    }
  }
}

// Writes the pieces that ForEachPiece() visits, each as one word. Channels that the last tile has
// and the example lacks become zeros.
void PlaceInTiles(const SliceTensor& tensor, int64_t slot, const uint8_t* example,
                  uint8_t* values) {
  const TiledPieces pieces = TiledPiecesOf(tensor, slot);
  for (int64_t tile = 0; tile < pieces.tiles; ++tile) {
    uint8_t* at = values + pieces.offset + tile * pieces.tile_stride;
    const int64_t left = pieces.channels - tile % pieces.tiles_of_pixel * kTileChannels;
    for (int64_t c = 0; c < kTileChannels; c += kTilePack, at += TiledPieces::kPairStride) {
      uint32_t word = 0;
      static_assert(sizeof(word) == TiledPieces::kPairBytes);
      if (c + kTilePack <= left) {
        std::memcpy(&word, example, sizeof(word));
        example += sizeof(word);
      } else if (c < left) {
        std::memcpy(&word, example, TiledPieces::kElementBytes);
        example += TiledPieces::kElementBytes;
      }
      std::memcpy(at, &word, sizeof(word));
    }
  }
}

absl::string_view AsChars(const uint8_t* data, int64_t bytes) {
  return absl::string_view(reinterpret_cast<const char*>(data), static_cast<size_t>(bytes));
}

}  // namespace

std::vector<int64_t> TiledShape(absl::Span<const int64_t> untiled) {
  SYSTOLE_CHECK(untiled.size() == 4);
  return {untiled[0],
          untiled[1],
          (untiled[2] - 1) / kTileChannels + 1,
          (untiled[3] - 1) / kTileExamples + 1,
          kTileChannels / kTilePack,
          kTileExamples,
          kTilePack};
}

std::vector<int64_t> SliceTensor::example_shape() const {
  if (is_tiled()) return {untiled_shape.begin(), untiled_shape.end() - 1};
  std::vector<int64_t> shape = spec.shape;
  shape.erase(shape.begin() + batch_axis);
  return shape;
}

int64_t SliceTensor::example_bytes() const {
  if (!is_tiled()) return spec.num_bytes() / per_core_batch();
  return untiled_shape[0] * untiled_shape[1] * untiled_shape[2] * DTypeBytes(spec.dtype);
}

TiledPieces TiledPiecesOf(const SliceTensor& tensor, int64_t slot) {
  SYSTOLE_CHECK(tensor.is_tiled() && slot >= 0 && slot < tensor.spec.shape[3] * kTileExamples);
  const int64_t tiles_of_pixel = tensor.spec.shape[2];
  return {.offset = slot / kTileExamples * TiledPieces::kTileBytes +
                    slot % kTileExamples * TiledPieces::kPairBytes,
          .channels = tensor.untiled_shape[2],
          .tiles = tensor.spec.shape[0] * tensor.spec.shape[1] * tiles_of_pixel,
          .tiles_of_pixel = tiles_of_pixel,
          .tile_stride = tensor.spec.shape[3] * TiledPieces::kTileBytes};
}

ExamplePieces PiecesOf(const SliceTensor& tensor, int64_t slot) {
  const TensorSpec& spec = tensor.spec;
  const int64_t batch = tensor.per_core_batch();
  SYSTOLE_CHECK(slot >= 0 && slot < batch);
  if (tensor.batch_axis == 0) {
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
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.spec.name, "' holds ", tensor.per_core_batch(),
                       " examples, '", tensors[0].spec.name, "' holds ",
                       tensors[0].per_core_batch(), "; want the same number of examples"));
    }
    if (tensor.spec.name == kValidTensor) {
      if (tensor.spec.dtype != DType::kUint8 || tensor.spec.shape.size() != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("'valid' must be uint8[per-core batch], not ", tensor.spec.DebugString()));
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

int64_t SliceLayout::useful_bytes() const {
  int64_t bytes = 0;
  for (const SliceTensor& tensor : tensors_) bytes += tensor.useful_bytes();
  return bytes;
}

void ClearExample(const SliceTensor& tensor, int64_t slot, uint8_t* values) {
  if (tensor.is_tiled()) return ClearTilePlaces(tensor, slot, 1, values);
  tensor.ForEachPiece(slot, [values](int64_t offset, int64_t bytes) {
    std::memset(values + offset, 0, static_cast<size_t>(bytes));
  });
}

void ClearExample(const SliceLayout& layout, int64_t slot, uint8_t* slice) {
  for (const SliceTensor& tensor : layout.tensors()) {
    ClearExample(tensor, slot, slice + tensor.offset);
  }
}

void ClearTilePadding(const SliceLayout& layout, uint8_t* slice) {
  for (const SliceTensor& tensor : layout.tensors()) {
    if (!tensor.is_tiled()) continue;
    const int64_t batch = tensor.per_core_batch();
    const int64_t rest = tensor.spec.shape[3] * kTileExamples - batch;
    if (rest > 0) ClearTilePlaces(tensor, batch, rest, slice + tensor.offset);
  }
}

void PlaceExample(const SliceTensor& tensor, int64_t slot, const uint8_t* example, uint8_t* slice) {
  uint8_t* const values = slice + tensor.offset;
  if (tensor.is_tiled()) return PlaceInTiles(tensor, slot, example, values);
  tensor.ForEachPiece(slot, [values, &example](int64_t offset, int64_t bytes) {
    std::memcpy(values + offset, example, static_cast<size_t>(bytes));
    example += bytes;
  });
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
    HashHeader(tensor.spec, tensor.example_shape(), hasher);
    const uint8_t* const values = slice + tensor.offset;
    tensor.ForEachPiece(slot, [values, &hasher](int64_t offset, int64_t bytes) {
      hasher.Update(AsChars(values + offset, bytes));
    });
  }
  return hasher.Digest128Hex();
}

}  // namespace systole
