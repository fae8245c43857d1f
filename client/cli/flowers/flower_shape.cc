#include "client/cli/flowers/flower_shape.h"

#include <algorithm>
#include <cmath>

namespace systole {
namespace {

// Puts `above` over `below`.
FlowerSample Over(FlowerSample below, FlowerSample above) {
  const float alpha = above.alpha + below.alpha * (1.0f - above.alpha);
  if (alpha <= 0.0f) return {};
  return {Mix(below.colour, above.colour, above.alpha / alpha), alpha};
}

// These return half the width of a petal, 0..1, at the place `s` between its base (0) and tip (1).
float RoundedPetal(float s) {
  const float end = s < 0.7f ? 0.0f : (s - 0.7f) / 0.3f;
  return std::min(1.0f, 0.35f + 1.3f * s) * std::sqrt(std::max(0.0f, 1.0f - end * end));
}
float PointedPetal(float s) {
  const float from_widest = s < 0.45f ? (0.45f - s) / 0.45f : (s - 0.45f) / 0.55f;
  return s < 0.45f ? 1.0f - 0.4f * from_widest * from_widest : 1.0f - from_widest;
}
float RayPetal(float s) { return s < 0.85f ? 0.5f + 0.55f * s : (1.0f - s) / 0.15f; }
// A tulip's petal: rounded below, pointed above.
float CupPetal(float s) {
  if (s < 0.4f) return std::sqrt(std::max(0.0f, 1.0f - (0.4f - s) * (0.4f - s) / 0.16f));
  return 1.0f - (s - 0.4f) * (s - 0.4f) / 0.36f;
}

// One ring of petals around the middle.
struct PetalRow {
  float (*profile)(float s);
  int petals;
  float phase;          // How far the row is turned, in petals.
  float length;         // In flower radii.
  float length_spread;  // The shortest petal is shorter by this share of `length`.
  float width;          // 1: the petals just fill the ring.
  float sway;           // How far a petal may be off its place, in petals.
  float brightness;
  uint32_t row;
};

FlowerSample SampleRow(const FlowerForm& form, const PetalRow& row, float r, float turns,
                       float pixel) {
  const float places = turns * row.petals + row.phase;
  const float nearest = std::floor(places + 0.5f);
  const uint32_t petal = static_cast<uint32_t>(nearest) % row.petals;
  const uint32_t key = form.individual + row.row * 977u;
  const float off = places - nearest - row.sway * (Speckle(petal, key, 1) - 0.5f);
  const float angle = off / row.petals;
  const float length = row.length * (1.0f - row.length_spread * Speckle(petal, key, 2));
  const float s = r * CosTurns(angle) / length;
  if (s <= 0.0f || s >= 1.0f) return {};
  const float across = std::abs(r * SinTurns(angle));
  const float half = row.width * length * 3.1415927f / row.petals * row.profile(s);
  const float alpha = Clamp01((half - across) / pixel + 0.5f);
  if (alpha <= 0.0f) return {};
  const float rib = 1.0f - 0.22f * Clamp01(across / (half + pixel));
  const float own = 0.85f + 0.3f * Speckle(petal, key, 3);
  return {Mix(form.petal_base, form.petal, Clamp01(0.2f + 1.1f * s)) * (rib * own * row.brightness),
          alpha};
}

// The button of a daisy or the seed disc of a sunflower, domed and grained.
FlowerSample SampleCentre(const FlowerForm& form, float r, float x, float y, float turns,
                          float pixel) {
  const float alpha = Clamp01((form.centre_radius - r) / pixel + 0.5f);
  if (alpha <= 0.0f) return {};
  const float s = r / form.centre_radius;
  const bool seeds = form.kind == FlowerKind::kSunflower;
  const float ring = std::floor(s * (seeds ? 7.0f : 4.0f));
  const float seeds_in_ring = 4.0f + 5.0f * ring;
  const uint32_t seed = static_cast<uint32_t>(turns * seeds_in_ring + ring * 0.38f);
  const float grain = 0.7f + 0.6f * Speckle(seed, static_cast<uint32_t>(ring), form.individual);
  const float dome = 1.0f - 0.35f * s * s + 0.2f * (-x - y) / form.centre_radius;
  const float heart = seeds && s < 0.4f ? 0.75f : 1.0f;
  return {form.centre * (grain * dome * heart), alpha};
}

FlowerSample SampleDaisy(const FlowerForm& form, float x, float y, float pixel) {
  const float r = std::sqrt(x * x + y * y);
  const float turns = AngleTurns(y, x);
  const FlowerSample petals = SampleRow(
      form, {RoundedPetal, form.petals, 0.0f, 1.0f, 0.15f, form.petal_width * 0.8f, 0.25f, 1.0f, 0},
      r, turns, pixel);
  return Over(petals, SampleCentre(form, r, x, y, turns, pixel));
}

FlowerSample SampleSunflower(const FlowerForm& form, float x, float y, float pixel) {
  const float r = std::sqrt(x * x + y * y);
  const float turns = AngleTurns(y, x);
  FlowerSample seen = SampleRow(
      form,
      {PointedPetal, form.petals, 0.5f, 1.0f, 0.12f, form.petal_width * 1.25f, 0.2f, 0.72f, 1}, r,
      turns, pixel);
  seen = Over(seen, SampleRow(form,
                              {PointedPetal, form.petals, 0.0f, 0.95f, 0.15f,
                               form.petal_width * 1.1f, 0.2f, 1.0f, 0},
                              r, turns, pixel));
  return Over(seen, SampleCentre(form, r, x, y, turns, pixel));
}

FlowerSample SampleDandelion(const FlowerForm& form, float x, float y, float pixel) {
  const float r = std::sqrt(x * x + y * y);
  const float turns = AngleTurns(y, x);
  FlowerSample seen;
  // Four rows of rays, each shorter and brighter than the one below it.
  for (uint32_t row = 0; row < 4; ++row) {
    const float up = static_cast<float>(row);
    const PetalRow rays{RayPetal,   form.petals - static_cast<int>(row) * 6,
                        0.37f * up, 1.0f - 0.22f * up,
                        0.3f,       0.95f,
                        0.7f,       0.62f + 0.15f * up,
                        row};
    seen = Over(seen, SampleRow(form, rays, r, turns, pixel));
  }
  return seen;
}

FlowerSample SampleRose(const FlowerForm& form, float x, float y, float pixel) {
  // So that the petals look wound, each row's centre is a little off the flower's centre, and each
  // row is turned against the row before it.
  FlowerSample seen;
  float rim = 1.0f;
  for (uint32_t row = 0; row < 6; ++row) {
    const float lean = 0.10f * form.openness * row;
    const float ox = x - lean * (Speckle(row, form.individual, 11) - 0.5f);
    const float oy = y - lean * (Speckle(row, form.individual, 12) - 0.5f);
    const float r = std::sqrt(ox * ox + oy * oy);
    const int petals = row < 2 ? form.petals : std::max(2, form.petals - static_cast<int>(row));
    const float places =
        AngleTurns(oy, ox) * petals + Speckle(row, form.individual, 13) * petals + 0.41f * row;
    const float nearest = std::floor(places + 0.5f);
    const uint32_t petal = static_cast<uint32_t>(nearest) % petals;
    const float off = places - nearest;  // -0.5 .. 0.5 across one petal.
    const float own = Speckle(petal, form.individual + row, 14);
    // The petals are broad lobes. Each petal leans over its neighbour, so the petal's rim falls off
    // to one side.
    const float edge = rim * (1.0f - 0.5f * off * off - 0.10f * (off + 0.5f) - 0.08f * own);
    const float alpha = Clamp01((edge - r) / pixel + 0.5f);
    if (alpha > 0.0f) {
      const float depth = Clamp01((edge - r) / (0.30f * rim + 0.02f));  // 0 at the rim, 1 below.
      const float light = 1.12f - 0.72f * depth * std::sqrt(depth) - 0.25f * (off + 0.5f);
      seen = Over(seen, {Mix(form.petal, form.petal_base, depth) * (light + 0.12f * own), alpha});
    }
    rim *= 0.72f + 0.08f * Speckle(row, form.individual, 15);
  }
  return seen;
}

FlowerSample SampleTulip(const FlowerForm& form, float x, float y, float pixel) {
  const float s = (0.95f - y) / 1.9f;  // 0 at the foot of the cup, 1 at the tips.
  if (s <= 0.0f || s >= 1.0f) return {};
  struct CupPlace {
    float middle, lean, top, brightness;
  };
  // Back to front: two inner petals, two flanks, the front petal.
  const CupPlace places[] = {{-0.12f, -0.10f, 0.98f, 0.55f},
                             {0.14f, 0.12f, 0.96f, 0.60f},
                             {-0.20f, -0.22f, 1.0f, 0.80f},
                             {0.20f, 0.22f, 0.97f, 0.88f},
                             {0.0f, 0.0f, 0.88f, 1.08f}};
  FlowerSample seen;
  for (uint32_t i = 0; i < 5; ++i) {
    const CupPlace& place = places[i];
    const float own = Speckle(i, form.individual, 21);
    const float t = s / (place.top - 0.10f * own);
    if (t >= 1.0f) continue;
    const float lean = place.lean * (0.3f + 1.2f * form.openness) * t;
    const float middle = place.middle * Clamp01(t * 4.0f) + lean + 0.06f * (own - 0.5f);
    const float across = std::abs(x - middle);
    const float half = 0.40f * form.petal_width * CupPetal(t);
    const float alpha = Clamp01((half - across) / pixel + 0.5f);
    if (alpha <= 0.0f) continue;
    const float round = 1.0f - 0.38f * Clamp01(across / (half + pixel));
    seen = Over(seen, {Mix(form.petal_base, form.petal, Clamp01(0.1f + 1.4f * t)) *
                           (round * place.brightness),
                       alpha});
  }
  return seen;
}

}  // namespace

absl::string_view FlowerKindName(FlowerKind kind) {
  switch (kind) {
    case FlowerKind::kDaisy:
      return "daisy";
    case FlowerKind::kDandelion:
      return "dandelion";
    case FlowerKind::kRose:
      return "rose";
    case FlowerKind::kSunflower:
      return "sunflower";
    case FlowerKind::kTulip:
      return "tulip";
  }
  return "";
}

FlowerSample SampleFlower(const FlowerForm& form, float x, float y, float pixel) {
  switch (form.kind) {
    case FlowerKind::kDaisy:
      return SampleDaisy(form, x, y, pixel);
    case FlowerKind::kDandelion:
      return SampleDandelion(form, x, y, pixel);
    case FlowerKind::kRose:
      return SampleRose(form, x, y, pixel);
    case FlowerKind::kSunflower:
      return SampleSunflower(form, x, y, pixel);
    case FlowerKind::kTulip:
      return SampleTulip(form, x, y, pixel);
  }
  return {};
}

}  // namespace systole
