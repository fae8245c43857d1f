// Paints small photographs of flowers for demos and tests: a scene with background, leaves, one
// main flower, light, blur and sensor noise. The five kinds share their colours, so that the shape
// of the flower has to be learned.
//
// Thread-safe: pure functions of their arguments.
#ifndef SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_PAINTER_H_
#define SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_PAINTER_H_

#include <cstdint>
#include <vector>

#include "client/cli/flowers/flower_shape.h"

namespace systole {

// The long side of a picture, in pixels. A flower needs some; memory bounds the other end.
inline constexpr int kLeastLongSide = 16;
inline constexpr int kMostLongSide = 8192;

struct FlowerStyle {
  // The long side in pixels; the short one has three quarters of it. 0: small pictures of many
  // shapes, whose short side has 160 to 240 pixels and whose long one at most 1.5 times as many.
  int long_side = 0;
  // Lays the texture of photographs over the flower, which costs a decoder what they cost. Without
  // it a picture is smooth, and its JPEG half as large.
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
