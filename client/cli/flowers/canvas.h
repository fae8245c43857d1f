// A picture in float RGB that the flower painter draws on: soft shapes, blur, and conversion to 8
// bits.
//   pixels: [height, width, 3] float, row-major, nominal range 0..1
// The code uses only additions, multiplications, square roots and comparisons, so that the picture
// is the same on every x86 CPU.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_FLOWERS_CANVAS_H_
#define SYSTOLE_CLIENT_CLI_FLOWERS_CANVAS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace systole {

struct Rgb {
  float r = 0, g = 0, b = 0;
};

inline Rgb operator*(Rgb colour, float factor) {
  return {colour.r * factor, colour.g * factor, colour.b * factor};
}

// `a` at t = 0, `b` at t = 1.
inline Rgb Mix(Rgb a, Rgb b, float t) {
  return {a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

inline float Clamp01(float x) { return x < 0.0f ? 0.0f : (x > 1.0f ? 1.0f : x); }

// Sine and cosine of an angle in turns (1 = full circle), within 0.0011 of the true value. Computed
// from parabolas, because libm's results differ between CPUs.
float SinTurns(float turns);
inline float CosTurns(float turns) { return SinTurns(turns + 0.25f); }

// The angle of (x, y) in turns, in [0, 1), within 0.001. (0, 0) gives 0.
float AngleTurns(float y, float x);

// A pseudo-random number in [0, 1) that depends only on `a`, `b` and `c`. Used for textures.
float Speckle(uint32_t a, uint32_t b, uint32_t c);

// A point in pixels; y points down.
struct Point {
  float x = 0, y = 0;
};

class Canvas {
 public:
  // REQUIRES: width > 0 and height > 0.
  Canvas(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  Rgb& at(int x, int y) { return pixels_[static_cast<size_t>(y) * width_ + x]; }
  const Rgb& at(int x, int y) const { return pixels_[static_cast<size_t>(y) * width_ + x]; }

  // Mixes `colour` into pixel (x, y) with weight `alpha`.
  void Blend(int x, int y, Rgb colour, float alpha) {
    Rgb& pixel = at(x, y);
    pixel = Mix(pixel, colour, alpha);
  }

  // A disc whose edge fades over `softness` pixels.
  void DrawDisc(Point centre, float radius, float softness, Rgb colour, float alpha);

  // A leaf: a lens from `base` to `tip` with a midrib. `half_width` is half of its width in the
  // middle. `shade` is mixed in towards one side. The leaf is bowed sideways by `bend` times its
  // length.
  void DrawLeaf(Point base, Point tip, float half_width, float bend, Rgb colour, Rgb shade);

  // A bowed stroke of constant half width, lighter along its middle.
  void DrawStem(Point base, Point tip, float half_width, float bend, Rgb colour);

  // Blurs with two passes of a box filter in each direction. The filter is 2 * radius + 1 pixels
  // wide. Beyond the edge of the picture, the pixels at the edge repeat.
  void Blur(int radius);

  // [height, width, 3] uint8; values are clamped. `noise` is the spread of the sensor noise as a
  // fraction of the full range. `noise_key` decides the noise.
  std::vector<uint8_t> ToBytes(float noise, uint32_t noise_key) const;

 private:
  int width_;
  int height_;
  std::vector<Rgb> pixels_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_FLOWERS_CANVAS_H_
