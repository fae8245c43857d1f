#include "bench/photographs.h"

#include <vector>

#include "client/texture/photograph_texture.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/numeric/normalise.h"
#include "core/random/counter_rng.h"

namespace systole::bench {

std::string MakePhotograph(uint64_t seed) {
  return MakePhotograph(seed, kPhotographWidth, kPhotographHeight, kPhotographQuality);
}

std::string MakePhotograph(uint64_t seed, int width, int height, int quality) {
  CounterRng rng(seed, /*epoch=*/0, /*record=*/0, /*purpose=*/0);
  const PhotographTexture texture = DrawPhotographTexture(rng, width, height);
  std::vector<uint8_t> pixels(texture.shapes.size() * 3);
  for (size_t i = 0; i < texture.shapes.size(); ++i) {
    const float light = texture.shapes[i] + (128 + texture.detail[i]);
    for (size_t channel = 0; channel < 3; ++channel) {
      pixels[i * 3 + channel] = RoundToUint8(light + texture.tint[channel][i]);
    }
  }
  return *EncodeJpeg(pixels, width, height, 3, {.quality = quality});
}

}  // namespace systole::bench
