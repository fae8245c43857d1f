// The crops of TensorFlow's image networks: tf.image.sample_distorted_bounding_box, and the centre
// crop of the reference TPU ResNet. The code computes in f32, and in the same order as TensorFlow's
// code. So if the draws are the same, the boxes are the same.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_WINDOW_DISTORTED_BOX_H_
#define SYSTOLE_CORE_IMAGE_WINDOW_DISTORTED_BOX_H_

#include "absl/status/status.h"
#include "core/image/window/crop.h"
#include "core/random/counter_rng.h"

namespace systole {

// Gives the random numbers for a box. Single-thread.
class BoxDraws {
 public:
  virtual ~BoxDraws() = default;

  // Uniform in [0, 1).
  virtual float Unit() = 0;
  // Uniform in [0, limit). REQUIRES: limit > 0.
  virtual int Below(int limit) = 0;
};

// Draws from our own generator. Borrows `rng`.
class CounterBoxDraws final : public BoxDraws {
 public:
  explicit CounterBoxDraws(CounterRng& rng) : rng_(rng) {}

  float Unit() override { return rng_.UniformFloat(); }
  int Below(int limit) override { return static_cast<int>(rng_.UniformInt(0, limit)); }

 private:
  CounterRng& rng_;
};

// The defaults are TensorFlow's.
struct DistortedBoxOptions {
  // The aspect is drawn uniformly, not on a log scale.
  RandomResizedCropOptions ranges = {.min_area = 0.05f,
                                     .max_area = 1.0f,
                                     .min_aspect = 0.75f,
                                     .max_aspect = 1.33f,
                                     .attempts = 100};
  // If a box covers a smaller fraction of the image's area, another box is drawn. 0 to 1.
  float min_object_covered = 0.1f;
};

// InvalidArgument naming the field that is out of range.
absl::Status CheckDistortedBox(const DistortedBoxOptions& options);

// Each attempt draws in this order:
//   the aspect  Unit()
//   the height  Below(), if several heights are possible
//   y           Below(), if the box is less high than the image
//   x           Below(), if the box is less wide than the image
// A y or x that is drawn is never the last offset that would fit. If no attempt gives a box, the
// result is the whole image. REQUIRES: height and width are 1 to 65535, and the options are valid.
CropRect DistortedBox(const DistortedBoxOptions& options, int height, int width, BoxDraws& draws);

// The centred square that the reference TPU ResNet crops when it evaluates a network whose input is
// `size` pixels high and wide. The side of the square is size / (size + 32) of the image's short
// side, at least 1 pixel. If the margin is odd, the larger half lies above and left of the crop.
// REQUIRES: all arguments are > 0.
CropRect PaddedCentreCrop(int size, int height, int width);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_WINDOW_DISTORTED_BOX_H_
