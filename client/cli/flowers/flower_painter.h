// Paints small photographs of flowers for demos and tests: a scene with background, leaves, one
// main flower, light, blur and sensor noise. The five kinds share their colours, so a model must
// learn the shapes of the flowers.
//
// Thread-safe: pure functions of their arguments.
#ifndef SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_PAINTER_H_
#define SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_PAINTER_H_

#include <cstdint>
#include <vector>

#include "client/cli/flowers/flower_shape.h"

namespace systole {

// Limits of a picture's long side, in pixels. A smaller picture shows no flower, and a larger one
// takes too much memory.
inline constexpr int kLeastLongSide = 16;
inline constexpr int kMostLongSide = 8192;

struct FlowerStyle {
  // The long side in pixels; the short side is three quarters of it. 0: small pictures of many
  // shapes, with a short side of 160 to 240 pixels and a long side of at most 1.5 times the short
  // side.
  int long_side = 0;
  // Lays a photograph's texture over the flower, so that decoding takes as long as for a
  // photograph. Without the texture a picture is smooth, and its JPEG half as large.
  bool photo_texture = false;
};

struct FlowerPhoto {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;  // [height, width, 3] uint8, row-major.
};

// Photograph number `number` of the set with this seed: the same bytes on every machine.
// REQUIRES: style.long_side is 0 or kLeastLongSide to kMostLongSide.
FlowerPhoto PaintFlower(FlowerKind kind, uint64_t seed, int64_t number,
                        const FlowerStyle& style = {});

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_PAINTER_H_
