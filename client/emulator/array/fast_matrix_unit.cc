#include "client/emulator/array/fast_matrix_unit.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace systole::emulator {
namespace {

using Patches = PatchMatrix<uint16_t>;

// A block that is copied has about this many elements, or more if kLeastRows rows have more. This
// many elements fill half of a common L2 cache, so oneDNN finds the block in the cache.
constexpr int64_t kBlockElements = 1 << 18;
// A block has at least this many rows, because each block has a fixed cost: oneDNN prepares the
// other operand again, or adds to the result again.
constexpr int64_t kLeastRows = 256;

// The distance from one row to the next. Nullopt if the distances differ, if a row is not one piece
// of memory, or if rows overlap.
std::optional<int64_t> RowStride(const Patches& p) {
  if (p.runs != 1) return std::nullopt;
  const struct {
    int64_t size, stride;
  } dimensions[] = {{p.width, p.x_stride}, {p.height, p.y_stride}, {p.images, p.image_stride}};
  // How many rows the dimensions so far have, and the distance from one row to the next.
  int64_t rows = 1, stride = p.run_length;
  for (const auto& dimension : dimensions) {
    if (dimension.size == 1) continue;
    if (rows == 1) stride = dimension.stride;
    if (dimension.stride != rows * stride) return std::nullopt;
    rows *= dimension.size;
  }
  return stride >= p.run_length ? std::optional(stride) : std::nullopt;
}

int64_t BlockRows(int64_t columns) { return std::max(kLeastRows, kBlockElements / columns); }

// Consecutive rows of a matrix, as oneDNN takes them.
struct Block {
  const uint16_t* data;
  int64_t stride;
};

// Hands out a matrix in blocks of consecutive rows, in ascending order. A block points into the
// matrix if its rows have a stride. Otherwise the block is copied into `copy`.
class BlockReader {
 public:
  BlockReader(const Patches& patches, DeviceArray<uint16_t>& copy)
      : p_(patches), stride_(RowStride(patches)), copy_(copy), walk_(patches, 0) {}

  bool in_place() const { return stride_.has_value(); }

  // The next `rows` rows, which are valid until the next call.
  Block Next(int64_t rows) {
    if (stride_.has_value()) {
      const Block block = {.data = p_.data + row_ * *stride_, .stride = *stride_};
      row_ += rows;
      return block;
    }
    const int64_t columns = p_.columns();
    if (copy_.size() < rows * columns) copy_ = DeviceArray<uint16_t>(rows * columns);
    uint16_t* to = copy_.data();
    for (int64_t r = 0; r < rows; ++r) {
      const uint16_t* from = walk_.Next();
      for (int64_t run = 0; run < p_.runs; ++run) {
        std::memcpy(to, from + run * p_.run_stride, p_.run_length * sizeof(uint16_t));
        to += p_.run_length;
      }
    }
    return {.data = copy_.data(), .stride = columns};
  }

 private:
  const Patches& p_;
  const std::optional<int64_t> stride_;
  DeviceArray<uint16_t>& copy_;
  RowWalk<uint16_t> walk_;
  int64_t row_ = 0;
};

bool ClearOutput(int64_t rows, int64_t columns, float* out, int64_t out_stride) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(out + r * out_stride, columns, 0.0f);
  return true;
}

}  // namespace

int64_t FastMatrixUnit::MostBlockElements(int64_t columns) {
  return BlockRows(std::max<int64_t>(1, columns)) * columns;
}

bool FastMatrixUnit::Multiply(const Patches& a, const uint16_t* b, int64_t n, float* out,
                              int64_t out_stride) {
  if (!OneDnnGemm::IsSupported()) return false;
  const int64_t m = a.rows(), depth = a.columns();
  if (m == 0 || n == 0 || depth == 0) return ClearOutput(m, n, out, out_stride);
  BlockReader rows_of_a(a, a_block_);
  const int64_t block_rows = rows_of_a.in_place() ? m : BlockRows(depth);
  for (int64_t row = 0; row < m; row += block_rows) {
    const int64_t rows = std::min(block_rows, m - row);
    const Block block = rows_of_a.Next(rows);
    const StridedGemm shape = {.m = rows,
                               .k = depth,
                               .n = n,
                               .a_stride = block.stride,
                               .b_stride = n,
                               .out_stride = out_stride};
    if (!gemm_.Multiply(shape, block.data, b, out + row * out_stride)) return false;
  }
  return true;
}

bool FastMatrixUnit::MultiplyTransposed(const Patches& a, const Patches& b, float* out,
                                        int64_t out_stride) {
  if (!OneDnnGemm::IsSupported()) return false;
  const int64_t m = a.columns(), n = b.columns(), depth = a.rows();
  if (m == 0 || n == 0 || depth == 0) return ClearOutput(m, n, out, out_stride);
  BlockReader rows_of_a(a, a_block_), rows_of_b(b, b_block_);
  const bool in_place = rows_of_a.in_place() && rows_of_b.in_place();
  const int64_t block_rows = in_place ? depth : BlockRows(std::max(m, n));
  for (int64_t row = 0; row < depth; row += block_rows) {
    const int64_t rows = std::min(block_rows, depth - row);
    const Block a_block = rows_of_a.Next(rows), b_block = rows_of_b.Next(rows);
    const StridedGemm shape = {.m = m,
                               .k = rows,
                               .n = n,
                               .a_stride = a_block.stride,
                               .b_stride = b_block.stride,
                               .out_stride = out_stride,
                               .transposed = true,
                               .accumulate = row > 0};
    if (!gemm_.Multiply(shape, a_block.data, b_block.data, out)) return false;
  }
  return true;
}

}  // namespace systole::emulator
