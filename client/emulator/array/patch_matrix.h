// A matrix whose rows are gathered from memory, so that a convolution's patches are never stored as
// a whole.
//
// Thread-compatible value types. They borrow the memory that they describe.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_PATCH_MATRIX_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_PATCH_MATRIX_H_

#include <cstdint>

namespace systole::emulator {

// Row r belongs to place (image, y, x); x changes fastest. The row starts at
//   data + image * image_stride + y * y_stride + x * x_stride
// and consists of `runs` runs. Each run has `run_length` consecutive elements, and starts
// `run_stride` elements after the start of the run before it. kArraySlack elements after the row's
// last element must be readable.
template <typename Element>
struct PatchMatrix {
  const Element* data = nullptr;
  int64_t images = 0, height = 1, width = 1;
  int64_t image_stride = 0, y_stride = 0, x_stride = 0;
  int64_t runs = 1, run_length = 0, run_stride = 0;

  int64_t rows() const { return images * height * width; }
  int64_t columns() const { return runs * run_length; }

  // The ordinary dense row-major [rows, columns] matrix.
  static PatchMatrix Dense(const Element* data, int64_t rows, int64_t columns) {
    return {.data = data, .images = rows, .image_stride = columns, .run_length = columns};
  }
};

// Walks the rows of a PatchMatrix in order. Borrows it.
template <typename Element>
class RowWalk {
 public:
  // Starts at row `row`.
  RowWalk(const PatchMatrix<Element>& patches, int64_t row) : p_(patches) {
    const int64_t per_image = p_.height * p_.width;
    const int64_t image = row / per_image;
    y_ = (row - image * per_image) / p_.width;
    x_ = row - image * per_image - y_ * p_.width;
    image_ = p_.data + image * p_.image_stride;
  }

  // Where the next row starts.
  const Element* Next() {
    const Element* row = image_ + y_ * p_.y_stride + x_ * p_.x_stride;
    if (++x_ == p_.width) {
      x_ = 0;
      if (++y_ == p_.height) {
        y_ = 0;
        image_ += p_.image_stride;
      }
    }
    return row;
  }

 private:
  const PatchMatrix<Element>& p_;
  const Element* image_;
  int64_t y_, x_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_PATCH_MATRIX_H_
