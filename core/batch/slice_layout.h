// Where the tensors of one core's slice of a step stand in one block of memory.
//
//   [tensor 0][pad][tensor 1][pad] ..   sorted by name, each on a 64-byte boundary
//
// Both ends build it from the same tensor descriptions, so a chunk's (tensor, offset) means one
// place. Thread-compatible value type.
#ifndef SYSTOLE_CORE_BATCH_SLICE_LAYOUT_H_
#define SYSTOLE_CORE_BATCH_SLICE_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/tensor/tensor.h"

namespace systole {

// The tensor that says which places hold a real example: uint8[per-core batch], 1 or 0.
inline constexpr char kValidTensor[] = "valid";

// The tensor that says how many items of a padded output (v1::Padded) an example has:
// int32[per-core batch].
inline std::string LengthTensor(absl::string_view output) {
  return absl::StrCat(output, "_length");
}

// How the bytes of one example stand in a tensor: `count` pieces of `bytes` each, `stride` apart. A
// batch-major tensor has one piece; with the batch innermost, each element is a piece.
struct ExamplePieces {
  int64_t offset = 0;  // Of the first piece, from the tensor's start.
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t stride = 0;
};

// One tensor of a slice.
struct SliceTensor {
  TensorSpec spec;
  // Which dimension of spec.shape counts the examples: 0 or the last one.
  int batch_axis = 0;
  // From the start of the slice, in bytes; set by SliceLayout.
  int64_t offset = 0;

  int64_t per_core_batch() const { return spec.shape[static_cast<size_t>(batch_axis)]; }
  // REQUIRES: 0 <= slot < per_core_batch().
  ExamplePieces PiecesOf(int64_t slot) const;

  friend bool operator==(const SliceTensor&, const SliceTensor&) = default;
};

class SliceLayout {
 public:
  // Sorts by name and places the tensors.
  //   InvalidArgument  no tensors or more than kMaxSliceTensors, two of one name,
  //                    no `valid` of type uint8[per-core batch],
  //                    a rank of 0, a batch axis neither first nor last,
  //                    dimensions that are not positive or differ in the batch, more than
  //                    kMaxSliceBytes in all. Descriptions from a peer are checked here before they
  //                    decide an allocation.
  static absl::StatusOr<SliceLayout> Create(std::vector<SliceTensor> tensors);

  // An empty layout, to assign to.
  SliceLayout() = default;

  absl::Span<const SliceTensor> tensors() const { return tensors_; }
  // Index of the tensor of this name, or -1.
  int IndexOf(absl::string_view name) const;
  int valid_index() const { return valid_index_; }
  int64_t per_core_batch() const { return tensors_[0].per_core_batch(); }
  // Bytes of one slice in memory, padding included.
  int64_t slice_bytes() const { return slice_bytes_; }
  // Bytes of the tensors of one slice, without the padding: what travels.
  int64_t payload_bytes() const { return payload_bytes_; }

  // Tensor `index` of the slice that starts at `slice`. Borrows this layout and `slice`.
  TensorView View(int index, const uint8_t* slice) const;

  friend bool operator==(const SliceLayout&, const SliceLayout&) = default;

 private:
  std::vector<SliceTensor> tensors_;
  int valid_index_ = -1;
  int64_t slice_bytes_ = 0;
  int64_t payload_bytes_ = 0;
};

// The 64 outputs that a feed can have, and `valid`. All code that keeps or sends a slice's tensors
// uses this limit.
inline constexpr int kMaxSliceTensors = 65;
// A slice of 64 GiB is a mistake in a spec, or an attack.
inline constexpr int64_t kMaxSliceBytes = int64_t{64} << 30;

// Zeros the place of example `slot` in every tensor of the slice, `valid` included.
void ClearExample(const SliceLayout& layout, int64_t slot, uint8_t* slice);
// The same in one tensor, whose values begin at `values`.
void ClearExample(const SliceTensor& tensor, int64_t slot, uint8_t* values);

// Copies the dense bytes of one example into its place. REQUIRES: sizes fit.
void PlaceExample(const SliceTensor& tensor, int64_t slot, const uint8_t* example, uint8_t* slice);

// XXH3-128 (32 hex digits) over the tensors of a slice, sorted by name: for each the length of its
// name, the name, dtype, rank, dimensions, bytes; numbers as 8 bytes, least significant first.
std::string SliceDigest(const SliceLayout& layout, const uint8_t* slice);

// The same over the place of one example, with the batch dimension left out of the shapes.
std::string ExampleDigest(const SliceLayout& layout, int64_t slot, const uint8_t* slice);

}  // namespace systole

#endif  // SYSTOLE_CORE_BATCH_SLICE_LAYOUT_H_
