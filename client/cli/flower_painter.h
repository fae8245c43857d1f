// Paints small photographs of flowers for demos and tests: a scene with background, leaves, one
// main flower, light, blur and sensor noise. The five kinds share their colours, so that the shape
// of the flower has to be learned.
//
// Thread-safe: pure functions of their arguments.
#ifndef SYSTOLE_CLIENT_CLI_FLOWER_PAINTER_H_
#define SYSTOLE_CLIENT_CLI_FLOWER_PAINTER_H_

#include <cstdint>
#include <vector>

#include "client/cli/flower_shape.h"

namespace systole {

struct FlowerPhoto {
  int width = 0;  // The short side has 160 to 240 pixels, the long one at most 1.5 times as many.
  int height = 0;
  std::vector<uint8_t> rgb;  // [height, width, 3] uint8, row-major.
};

// Photograph number `number` of the set with this seed: the same bytes on every machine.
FlowerPhoto PaintFlower(FlowerKind kind, uint64_t seed, int64_t number);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_FLOWER_PAINTER_H_
