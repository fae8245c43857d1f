// Where each tensor of a slice lies in one block of memory. A slice is one core's part of a step.
//
//   [tensor 0][pad][tensor 1][pad] ..   sorted by name, each on a 64-byte boundary
//
// Client and server build the layout from the same tensor descriptions. So a chunk's (tensor,
// offset) names the same place in the memory of both. Thread-compatible value type.
#ifndef SYSTOLE_CORE_BATCH_SLICE_LAYOUT_H_
#define SYSTOLE_CORE_BATCH_SLICE_LAYOUT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/tensor/tensor.h"

namespace systole {

// The tensor that says which places hold an example (1), and which hold padding (0):
// uint8[per-core batch].
inline constexpr char kValidTensor[] = "valid";

// The tensor that says how many items of a padded output (v1::Padded) an example has:
// int32[per-core batch].
inline std::string LengthTensor(absl::string_view output) {
  return absl::StrCat(output, "_length");
}

// How a TPU keeps bfloat16: in tiles of (8, 128)(2, 1) over channels and examples. A tile has 8
// channels of 128 examples, and two neighbouring channels of an example are adjacent in memory.
//   [height, width, channels, batch] -> [height, width, channels / 8, batch / 128, 4, 128, 2]
// Both quotients are rounded up. Places in a tile without a channel or an example are zeros.
inline constexpr int64_t kTileChannels = 8;
inline constexpr int64_t kTileExamples = 128;
inline constexpr int64_t kTilePack = 2;

// The shape in tiles of a tensor of shape `untiled`. REQUIRES: `untiled` has four dimensions, each
// 1 or more.
std::vector<int64_t> TiledShape(absl::Span<const int64_t> untiled);

// One tensor of a slice.
struct SliceTensor {
  TensorSpec spec;
  // Which dimension of spec.shape counts the examples: 0 or the last one. 0 in tiles.
  int batch_axis = 0;
  // If the tensor is in tiles: [height, width, channels, per-core batch], whose TiledShape() is
  // spec.shape. Otherwise empty.
  std::vector<int64_t> untiled_shape;
  // From the start of the slice, in bytes; set by SliceLayout.
  int64_t offset = 0;

  bool is_tiled() const { return !untiled_shape.empty(); }
  int64_t per_core_batch() const {
    return is_tiled() ? untiled_shape[3] : spec.shape[static_cast<size_t>(batch_axis)];
  }
  // The shape and the size of one example, without the padding of tiles. The shape lacks the batch
  // dimension.
  std::vector<int64_t> example_shape() const;
  int64_t example_bytes() const;
  // Bytes of all examples: spec.num_bytes() without the padding of tiles.
  int64_t useful_bytes() const { return example_bytes() * per_core_batch(); }

  // Calls visit(offset, bytes) for each piece of the example at place `slot`, in the order of the
  // example's elements. `offset` is counted from the tensor's start. If the batch is the first
  // dimension, the whole example is one piece. If the batch is the last dimension, each element is
  // a piece. In tiles, each pair of a pixel's channels is a piece.
  // REQUIRES: 0 <= slot < per_core_batch().
  template <typename Visit>
  void ForEachPiece(int64_t slot, Visit visit) const;

  friend bool operator==(const SliceTensor&, const SliceTensor&) = default;
};

class SliceLayout {
 public:
  // Sorts the tensors by name, and sets their offsets.
  //   InvalidArgument  no tensors or more than kMaxSliceTensors, two of one name, a tensor without
  //                    a name, no `valid` of type uint8[per-core batch], a rank of 0 or above 8, a
  //                    batch axis that is neither the first nor the last, tiles of a type other
  //                    than bfloat16 or of a shape other than TiledShape(), a dimension below 1,
  //                    tensors with different batches, or more than kMaxSliceBytes in all.
  // Allocates no memory for the tensors, so descriptions from a peer can be checked here first.
  static absl::StatusOr<SliceLayout> Create(std::vector<SliceTensor> tensors);

  // A layout without tensors. Assign another layout to it before use.
  SliceLayout() = default;

  absl::Span<const SliceTensor> tensors() const { return tensors_; }
  // Index of the tensor of this name, or -1.
  int IndexOf(absl::string_view name) const;
  int valid_index() const { return valid_index_; }
  int64_t per_core_batch() const { return tensors_[0].per_core_batch(); }
  // Bytes of one slice in memory, with all padding.
  int64_t slice_bytes() const { return slice_bytes_; }
  // Bytes of the tensors of one slice, without the padding between the tensors. These bytes are
  // sent.
  int64_t payload_bytes() const { return payload_bytes_; }
  // payload_bytes() without the padding of tiles.
  int64_t useful_bytes() const;

  // Tensor `index` of the slice that starts at `slice`. The view is valid as long as this layout
  // and the slice.
  TensorView View(int index, const uint8_t* slice) const;

  friend bool operator==(const SliceLayout&, const SliceLayout&) = default;

 private:
  std::vector<SliceTensor> tensors_;
  int valid_index_ = -1;
  int64_t slice_bytes_ = 0;
  int64_t payload_bytes_ = 0;
};

// A feed has at most 64 outputs. The slice also has `valid`. All code that keeps or sends a slice's
// tensors uses this limit.
inline constexpr int kMaxSliceTensors = 65;
// A larger slice is a mistake in a spec, or an attack.
inline constexpr int64_t kMaxSliceBytes = int64_t{64} << 30;

// In tensors in tiles, zeros the places after the slice's last example. The places of the examples
// cover all other bytes of the tensors.
void ClearTilePadding(const SliceLayout& layout, uint8_t* slice);

// Zeros the place of example `slot` in every tensor of the slice, `valid` included.
void ClearExample(const SliceLayout& layout, int64_t slot, uint8_t* slice);
// Zeros the place of example `slot` in one tensor, whose values begin at `values`.
void ClearExample(const SliceTensor& tensor, int64_t slot, uint8_t* values);

// Copies an example into place `slot` of the slice that starts at `slice`. In tiles, also zeros the
// padding of the example's channels. REQUIRES: `example` has tensor.example_bytes() bytes, without
// gaps.
void PlaceExample(const SliceTensor& tensor, int64_t slot, const uint8_t* example, uint8_t* slice);

// XXH3-128 (32 hex digits) over the tensors of a slice, sorted by name. For each tensor, the hash
// covers the length of the name, the name, dtype, rank, dimensions and bytes. The length, dtype,
// rank and each dimension are hashed as 8 bytes, least significant first.
std::string SliceDigest(const SliceLayout& layout, const uint8_t* slice);

// The same hash over one example. The shapes lack the batch dimension. For a tensor in tiles, shape
// and bytes also lack the padding. So the digest is the same as in the layout HWCN.
std::string ExampleDigest(const SliceLayout& layout, int64_t slot, const uint8_t* slice);

// Internal from here on.

// Where one example is in a tensor that is not in tiles: in `count` pieces of `bytes` bytes. From
// the start of a piece to the start of the next one are `stride` bytes.
struct ExamplePieces {
  int64_t offset = 0;  // Where the first piece is, from the tensor's start.
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t stride = 0;
};
ExamplePieces PiecesOf(const SliceTensor& tensor, int64_t slot);

// Where the bytes of one example are in a tensor in tiles. Offsets and strides are in bytes.
struct TiledPieces {
  static constexpr int64_t kElementBytes = 2;  // bfloat16.
  static constexpr int64_t kPairBytes = kTilePack * kElementBytes;
  static constexpr int64_t kPairStride = kTileExamples * kPairBytes;  // To the next two channels.
  static constexpr int64_t kTileBytes = kTileChannels / kTilePack * kPairStride;

  int64_t offset = 0;          // Where the example's first piece is, from the tensor's start.
  int64_t channels = 0;        // Channels of an example.
  int64_t tiles = 0;           // All tiles that have a part of the example.
  int64_t tiles_of_pixel = 0;  // Tiles that have channels of one pixel of the example.
  int64_t tile_stride = 0;     // To the tile with the next 8 channels or the next pixel.
};
TiledPieces TiledPiecesOf(const SliceTensor& tensor, int64_t slot);

template <typename Visit>
void SliceTensor::ForEachPiece(int64_t slot, Visit visit) const {
  if (!is_tiled()) {
    const ExamplePieces pieces = PiecesOf(*this, slot);
    int64_t at = pieces.offset;
    for (int64_t i = 0; i < pieces.count; ++i, at += pieces.stride) visit(at, pieces.bytes);
    return;
  }
  const TiledPieces pieces = TiledPiecesOf(*this, slot);
  for (int64_t tile = 0; tile < pieces.tiles; ++tile) {
    int64_t at = pieces.offset + tile * pieces.tile_stride;
    const int64_t first = tile % pieces.tiles_of_pixel * kTileChannels;
    const int64_t end = std::min(first + kTileChannels, pieces.channels);
    for (int64_t c = first; c < end; c += kTilePack, at += TiledPieces::kPairStride) {
      visit(at, std::min(kTilePack, end - c) * TiledPieces::kElementBytes);
    }
  }
}

}  // namespace systole

#endif  // SYSTOLE_CORE_BATCH_SLICE_LAYOUT_H_
