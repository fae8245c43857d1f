// The shapes of the five kinds of flowers that `systole make-flowers` draws. This file gives the
// kinds only their shapes; the caller chooses the colours:
//   daisy      one row of narrow petals with gaps, small button in the middle
//   dandelion  several rows of many thin rays, no button
//   rose       round, broad petals wound into each other
//   sunflower  a large seed disc with a ring of short pointed petals
//   tulip      a cup seen from the side
//
// Thread-safe: pure functions of values.
#ifndef SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_SHAPE_H_
#define SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_SHAPE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "client/cli/flowers/canvas.h"

namespace systole {

enum class FlowerKind { kDaisy = 0, kDandelion, kRose, kSunflower, kTulip };
inline constexpr int kFlowerKinds = 5;

// "daisy", "dandelion", "rose", "sunflower", "tulip".
absl::string_view FlowerKindName(FlowerKind kind);

// What distinguishes one flower from another.
struct FlowerForm {
  FlowerKind kind = FlowerKind::kDaisy;
  Rgb petal;                    // At the tips.
  Rgb petal_base;               // Near the middle.
  Rgb centre;                   // Button or seed disc; used by daisy and sunflower.
  int petals = 12;              // In the outermost row; not used by the tulip.
  float centre_radius = 0.25f;  // In flower radii.
  float petal_width = 0.8f;     // With 1, petals about fill the ring; a tulip has the usual cup.
  float openness = 0.5f;        // 0 to 1: how far petals lean out; used by tulip and rose.
  uint32_t individual = 0;      // Decides the irregularities of the petals.
};

// What one point of a flower shows. Alpha 0 is outside the flower.
struct FlowerSample {
  Rgb colour;
  float alpha = 0;
};
// The flower at (x, y), in units of its radius. y points down, and a tulip stands upright. `pixel`
// is the size of one pixel in these units. Edges fade over one pixel.
FlowerSample SampleFlower(const FlowerForm& form, float x, float y, float pixel);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_FLOWERS_FLOWER_SHAPE_H_
