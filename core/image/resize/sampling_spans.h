// Tables of a resize by a kernel of any width: which input pixels make each output pixel, and with
// which weights. This is what TensorFlow's ScaleAndTranslate computes for tf.image.resize with
// antialias=True, or with a method for which TensorFlow has no other code (lanczos, gaussian,
// mitchellcubic).
//   kernel width  radius * max(in / out, 1) if antialiased, else radius
//   weights       the kernel's values at the centres of the input's pixels, divided by their sum
//
// Everything is computed in f32 and in TensorFlow's order, so the weights are TensorFlow's to the
// bit. The exceptions are Lanczos (sines) and the Gaussian (exponentials). Our sines and
// exponentials are nearly always correctly rounded. TensorFlow's come from libm, whose bits depend
// on the CPU.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_RESIZE_SAMPLING_SPANS_H_
#define SYSTOLE_CORE_IMAGE_RESIZE_SAMPLING_SPANS_H_

#include <vector>

namespace systole {

enum class SamplingKernel {
  kTriangle,
  kKeysCubic,
  kMitchellCubic,
  kLanczos3,
  kLanczos5,
  kGaussian,
};

struct SamplingSpans {
  // How many weights each output pixel has, at most the input's size. If an output pixel is made of
  // fewer input pixels, its last weights are 0.
  int span = 0;
  std::vector<int> starts;     // The first input pixel of each output pixel.
  std::vector<float> weights;  // [out, span].
};

// Makes the tables for `out` output pixels from `in` input pixels along one side. REQUIRES: both
// are 1 to 65535. Takes O(in + out) memory.
SamplingSpans MakeSamplingSpans(SamplingKernel kernel, int in, int out, bool antialias);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_RESIZE_SAMPLING_SPANS_H_
