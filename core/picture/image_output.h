// Shows an image output of a feed as pictures that people can judge. Undoes `normalize`, so that
// the values are pixels again.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_PICTURE_IMAGE_OUTPUT_H_
#define SYSTOLE_CORE_PICTURE_IMAGE_OUTPUT_H_

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/batch/slice_layout.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The largest width and height of a picture, in pixels, unless Create() gets another `max_edge`.
// The picture of a larger image has only every second pixel, or every third, and so on.
inline constexpr int64_t kMaxPictureEdge = 512;

struct ShownPicture {
  std::string jpeg;
  int width = 0;
  int height = 0;
};

class ImageOutput {
 public:
  // REQUIRES: max_edge >= 1. Nullopt if `tensor` holds no images. A tensor holds images if each
  // example has the shape [height, width, 1 or 3] before `output.layout` reorders it, and its type
  // is UINT8 or a type of floats.
  //   InvalidArgument  the transforms of `output` are wrong, or a normalize has factors for another
  //                    number of channels than `tensor` has.
  static absl::StatusOr<std::optional<ImageOutput>> Create(const v1::Output& output,
                                                           const SliceTensor& tensor,
                                                           int64_t max_edge = kMaxPictureEdge);

  // Extends the range of the values seen so far to the values of example `slot`. `values` is where
  // the tensor begins. Call Widen() for all examples before HowText() and Picture().
  void Widen(const uint8_t* values, int64_t slot);

  // Returns a text that says how a value becomes a pixel. It can stand at the end of a sentence.
  std::string HowText() const;

  // The picture of example `slot`, of JPEG quality 90. NaN becomes black. Errors: EncodeJpeg's.
  absl::StatusOr<ShownPicture> Picture(const uint8_t* values, int64_t slot) const;

  // In each direction the picture has one pixel for this many pixels of the image.
  int64_t every() const { return every_; }
  int width() const { return static_cast<int>((width_ + every_ - 1) / every_); }
  int height() const { return static_cast<int>((height_ + every_ - 1) / every_); }

 private:
  // After normalize was undone, values from `black` to `white` become pixels from 0 to 255.
  struct Scale {
    double black = 0;
    double white = 255;
  };

  ImageOutput() = default;
  absl::Status UndoNormalizes(const v1::Output& output);
  bool IsStretched() const;
  Scale PixelScale() const;
  // The value with all `normalize` transforms undone. `example` is the address of the example's
  // first element.
  double PutBack(const uint8_t* example, int64_t y, int64_t x, int64_t channel) const;

  DType dtype_ = DType::kUint8;
  int64_t height_ = 0, width_ = 0, channels_ = 0;
  // The distances between rows and between pixels, and the offsets of a pixel's channels, in
  // elements.
  int64_t y_step_ = 0, x_step_ = 0;
  std::array<int64_t, 3> channel_at_ = {};
  SliceTensor tensor_;
  int64_t every_ = 1;

  bool from_uint8_ = false;  // The transforms begin with a decode of pixels of 0 to 255.
  bool is_normalized_ = false;
  // All `normalize` transforms together, for each channel: value = pixel * scale + bias.
  std::array<double, 3> scale_ = {1, 1, 1}, bias_ = {0, 0, 0};

  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PICTURE_IMAGE_OUTPUT_H_
