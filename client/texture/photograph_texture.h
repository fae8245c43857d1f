// Noise that makes a drawn picture's JPEG as large and as slow to decode as a photograph's. As in
// photographs, its amplitude falls with its frequency (1/f) and colour varies less than brightness.
// Benchmarks draw whole pictures of this noise (bench/photographs.h). `systole make-flowers` adds
// it to its flowers. bench/README.md says how the noise was compared with real photographs.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_TEXTURE_PHOTOGRAPH_TEXTURE_H_
#define SYSTOLE_CLIENT_TEXTURE_PHOTOGRAPH_TEXTURE_H_

#include <array>
#include <vector>

#include "core/random/counter_rng.h"

namespace systole {

// JPEG quality at which a drawn picture is as large as a photograph: some 0.46 bytes a pixel.
inline constexpr int kPhotographQuality = 96;

// Each vector is [height, width], row-major. Its values are to be added to pixel values from 0 to
// 255.
struct PhotographTexture {
  // Light and dark areas of 32 pixels and more: for pictures that have no other content.
  std::vector<float> shapes;
  // Finer structure. Its strength varies over the picture: skies are smooth, leaves are not.
  std::vector<float> detail;
  // Noise in each of red, green and blue.
  std::array<std::vector<float>, 3> tint;
};

// Draws a texture. The same draws from `rng` give the same texture on every machine. REQUIRES:
// width and height are positive.
PhotographTexture DrawPhotographTexture(CounterRng& rng, int width, int height);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_TEXTURE_PHOTOGRAPH_TEXTURE_H_
