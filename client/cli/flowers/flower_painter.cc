#include "client/cli/flowers/flower_painter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/types/span.h"
#include "client/cli/flowers/canvas.h"
#include "client/texture/photograph_texture.h"
#include "core/numeric/normalise.h"
#include "core/random/counter_rng.h"

namespace systole {
namespace {

// The random numbers that make one photograph.
class Dice {
 public:
  Dice(uint64_t seed, int64_t number)
      : rng_(seed, /*epoch=*/0, number, /*purpose=*/0x666c7772) {}  // "flwr"

  float Between(float low, float high) { return low + (high - low) * rng_.UniformFloat(); }
  int Below(int limit) { return static_cast<int>(rng_.UniformInt(0, limit)); }
  bool Chance(float probability) { return rng_.UniformFloat() < probability; }
  uint32_t Bits() { return rng_.NextU32(); }

 private:
  CounterRng rng_;
};

constexpr Rgb kPetalColours[] = {
    {0.96f, 0.95f, 0.92f}, {0.97f, 0.90f, 0.62f}, {0.98f, 0.80f, 0.10f}, {0.96f, 0.58f, 0.08f},
    {0.95f, 0.55f, 0.62f}, {0.86f, 0.14f, 0.16f}, {0.78f, 0.16f, 0.48f}, {0.60f, 0.38f, 0.78f},
};
// For each kind, the two petal colours that it has a little more often than the other six. The
// numbers are indices of kPetalColours.
constexpr std::array<std::array<int, 2>, kFlowerKinds> kFavourites = {
    {{0, 4}, {2, 1}, {5, 4}, {2, 3}, {5, 7}}};
constexpr float kFavouriteChance = 0.25f;

constexpr Rgb kCentreColours[] = {
    {0.93f, 0.74f, 0.12f}, {0.62f, 0.46f, 0.12f}, {0.34f, 0.20f, 0.10f}, {0.45f, 0.52f, 0.16f}};

constexpr Rgb kBackgrounds[] = {{0.16f, 0.30f, 0.10f}, {0.30f, 0.44f, 0.16f}, {0.10f, 0.14f, 0.08f},
                                {0.42f, 0.34f, 0.24f}, {0.52f, 0.66f, 0.84f}, {0.62f, 0.62f, 0.58f},
                                {0.24f, 0.20f, 0.18f}, {0.48f, 0.56f, 0.34f}};

constexpr Rgb kLeafLight = {0.42f, 0.58f, 0.22f};
constexpr Rgb kLeafDark = {0.10f, 0.26f, 0.08f};

// In this file, a statement draws several numbers only inside braces or with `?:`, which fix the
// order of the draws. For arguments of a call and for operands, the compiler chooses the order.
Rgb Pick(Dice& dice, absl::Span<const Rgb> palette) {
  const Rgb c = palette[dice.Below(static_cast<int>(palette.size()))];
  const float light = dice.Between(0.85f, 1.12f);
  return {c.r * light * dice.Between(0.92f, 1.08f), c.g * light * dice.Between(0.92f, 1.08f),
          c.b * light * dice.Between(0.92f, 1.08f)};
}

Rgb LeafColour(Dice& dice) {
  const float light = dice.Between(0.8f, 1.2f);
  return Mix(kLeafDark, kLeafLight, dice.Between(0.0f, 1.0f)) * light;
}

Point Somewhere(Dice& dice, const Canvas& canvas) {
  const float x = dice.Between(-0.05f, 1.05f) * canvas.width();
  const float y = dice.Between(-0.05f, 1.05f) * canvas.height();
  return {x, y};
}

// Paints two colours that run into each other, with cloudy patches.
void PaintBackground(Dice& dice, Canvas& canvas) {
  constexpr int kCells = 6;
  const Rgb from = Pick(dice, kBackgrounds);
  const Rgb to = Pick(dice, kBackgrounds);
  const float patchiness = dice.Between(0.1f, 0.6f);
  const float direction = dice.Between(0.0f, 1.0f);
  const float dx = CosTurns(direction);
  const float dy = SinTurns(direction);
  float patches[kCells + 2][kCells + 2];
  for (auto& row : patches) {
    for (float& patch : row) patch = 1.0f + patchiness * dice.Between(-1.0f, 1.0f);
  }
  for (int y = 0; y < canvas.height(); ++y) {
    const float v = static_cast<float>(y) / canvas.height();
    const int cell_y = static_cast<int>(v * kCells);
    const float in_y = v * kCells - cell_y;
    for (int x = 0; x < canvas.width(); ++x) {
      const float u = static_cast<float>(x) / canvas.width();
      const int cell_x = static_cast<int>(u * kCells);
      const float in_x = u * kCells - cell_x;
      const float above =
          patches[cell_y][cell_x] * (1.0f - in_x) + patches[cell_y][cell_x + 1] * in_x;
      const float below =
          patches[cell_y + 1][cell_x] * (1.0f - in_x) + patches[cell_y + 1][cell_x + 1] * in_x;
      const float t = Clamp01(0.5f + (u - 0.5f) * dx + (v - 0.5f) * dy);
      canvas.at(x, y) = Mix(from, to, t) * (above * (1.0f - in_y) + below * in_y);
    }
  }
}

FlowerForm DrawForm(Dice& dice, FlowerKind kind) {
  FlowerForm form;
  form.kind = kind;
  const Rgb colour = dice.Chance(kFavouriteChance)
                         ? kPetalColours[kFavourites[static_cast<int>(kind)][dice.Below(2)]]
                         : kPetalColours[dice.Below(std::size(kPetalColours))];
  form.petal = colour * dice.Between(0.85f, 1.05f);
  const Rgb shaded = form.petal * dice.Between(0.55f, 0.9f);
  const Rgb flush = Pick(dice, kPetalColours);
  form.petal_base = Mix(shaded, flush, dice.Between(0.0f, 0.35f));
  form.centre = Pick(dice, kCentreColours);
  form.petal_width = dice.Between(0.8f, 1.1f);
  form.openness = dice.Between(0.0f, 1.0f);
  form.individual = dice.Bits();
  switch (kind) {
    case FlowerKind::kDaisy:
      form.petals = 9 + dice.Below(7);
      form.centre_radius = dice.Between(0.17f, 0.25f);
      break;
    case FlowerKind::kDandelion:
      form.petals = 40 + dice.Below(14);
      break;
    case FlowerKind::kRose:
      form.petals = 4 + dice.Below(3);
      break;
    case FlowerKind::kSunflower:
      form.petals = 15 + dice.Below(8);
      form.centre_radius = dice.Between(0.42f, 0.56f);
      break;
    case FlowerKind::kTulip:
      break;
  }
  return form;
}

// The place and the orientation of a flower in the picture.
struct Pose {
  Point centre;
  float radius;    // Pixels.
  float rotation;  // In turns. For a tulip: how far it leans off the vertical.
  float squash;    // 1: seen face on. Below 1: seen more from the side, so narrower.
  float tilt;      // The axis along which the flower is squashed, in turns.
};

void PaintOneFlower(const FlowerForm& form, const Pose& pose, Canvas& canvas) {
  const float reach = pose.radius * 1.08f;
  const int y_begin = std::max(0, static_cast<int>(pose.centre.y - reach));
  const int y_end = std::min(canvas.height(), static_cast<int>(pose.centre.y + reach) + 1);
  const int x_begin = std::max(0, static_cast<int>(pose.centre.x - reach));
  const int x_end = std::min(canvas.width(), static_cast<int>(pose.centre.x + reach) + 1);
  const float ct = CosTurns(pose.tilt), st = SinTurns(pose.tilt);
  const float cr = CosTurns(pose.rotation - pose.tilt), sr = SinTurns(pose.rotation - pose.tilt);
  const float scale = 1.0f / pose.radius;
  for (int y = y_begin; y < y_end; ++y) {
    for (int x = x_begin; x < x_end; ++x) {
      const float dx = (x - pose.centre.x) * scale;
      const float dy = (y - pose.centre.y) * scale;
      const float tx = dx * ct + dy * st;
      const float ty = (dy * ct - dx * st) / pose.squash;
      if (tx * tx + ty * ty > 1.17f) continue;
      const FlowerSample seen = SampleFlower(form, tx * cr + ty * sr, ty * cr - tx * sr, scale);
      if (seen.alpha > 0.0f) canvas.Blend(x, y, seen.colour, seen.alpha);
    }
  }
}

Pose DrawPose(Dice& dice, FlowerKind kind, const Canvas& canvas) {
  const float unit = static_cast<float>(std::min(canvas.width(), canvas.height()));
  Pose pose;
  pose.radius = unit * dice.Between(0.34f, 0.50f);
  pose.centre = {canvas.width() * 0.5f + unit * dice.Between(-0.13f, 0.13f),
                 canvas.height() * 0.5f + unit * dice.Between(-0.13f, 0.13f)};
  pose.tilt = dice.Between(0.0f, 1.0f);
  pose.squash = dice.Between(0.72f, 1.0f);
  pose.rotation =
      kind == FlowerKind::kTulip ? dice.Between(-0.09f, 0.09f) : dice.Between(0.0f, 1.0f);
  return pose;
}

void PaintLeaves(Dice& dice, int count, float size, Canvas& canvas) {
  const float unit = static_cast<float>(std::min(canvas.width(), canvas.height()));
  for (int i = 0; i < count; ++i) {
    const Point base = Somewhere(dice, canvas);
    const float direction = dice.Between(0.0f, 1.0f);
    const float length = unit * size * dice.Between(0.6f, 1.4f);
    const Point tip = {base.x + length * CosTurns(direction),
                       base.y + length * SinTurns(direction)};
    const float half_width = length * dice.Between(0.04f, 0.18f);
    const float bend = dice.Between(-0.15f, 0.15f);
    const Rgb colour = LeafColour(dice);
    canvas.DrawLeaf(base, tip, half_width, bend, colour, colour * 0.6f);
  }
}

void PaintBokeh(Dice& dice, Canvas& canvas) {
  const float unit = static_cast<float>(std::min(canvas.width(), canvas.height()));
  const int discs = dice.Below(9);
  for (int i = 0; i < discs; ++i) {
    const Rgb colour = dice.Chance(0.4f) ? Pick(dice, kPetalColours) : Pick(dice, kBackgrounds);
    const Point centre = Somewhere(dice, canvas);
    const float radius = unit * dice.Between(0.03f, 0.14f);
    canvas.DrawDisc(centre, radius, radius * 0.5f, colour, dice.Between(0.2f, 0.7f));
  }
}

// The stem leaves the picture at the bottom. A tulip's stem follows the lean of the flower.
void PaintStem(Dice& dice, FlowerKind kind, const Pose& pose, Canvas& canvas) {
  const float lean = kind == FlowerKind::kTulip ? pose.rotation : dice.Between(-0.12f, 0.12f);
  const float length = static_cast<float>(canvas.height());
  const Point foot = {pose.centre.x - length * SinTurns(lean),
                      pose.centre.y + length * CosTurns(lean)};
  const Rgb colour = LeafColour(dice);
  const float half_width = pose.radius * dice.Between(0.035f, 0.08f);
  canvas.DrawStem(pose.centre, foot, half_width, dice.Between(-0.05f, 0.05f), colour);
}

// Adds sunlight from one side, and the exposure, white balance and contrast of a camera.
void ApplyLight(Dice& dice, Canvas& canvas) {
  const float direction = dice.Between(0.0f, 1.0f);
  const float slope = dice.Between(0.0f, 0.35f);
  const float exposure = dice.Between(0.65f, 1.15f);
  const float contrast = dice.Between(0.75f, 1.1f);
  const Rgb balance = {exposure * dice.Between(0.88f, 1.12f), exposure * dice.Between(0.94f, 1.06f),
                       exposure * dice.Between(0.85f, 1.15f)};
  const float dx = slope * 2.0f * CosTurns(direction) / canvas.width();
  const float dy = slope * 2.0f * SinTurns(direction) / canvas.height();
  for (int y = 0; y < canvas.height(); ++y) {
    for (int x = 0; x < canvas.width(); ++x) {
      const float sun = 1.0f + dx * (x - canvas.width() * 0.5f) + dy * (y - canvas.height() * 0.5f);
      Rgb& p = canvas.at(x, y);
      p = {(p.r * balance.r * sun - 0.4f) * contrast + 0.4f,
           (p.g * balance.g * sun - 0.4f) * contrast + 0.4f,
           (p.b * balance.b * sun - 0.4f) * contrast + 0.4f};
    }
  }
}

void AddTexture(uint64_t seed, int64_t number, FlowerPhoto& photo) {
  CounterRng rng(seed, /*epoch=*/0, number, /*purpose=*/0x74787472);  // "txtr"
  const PhotographTexture texture = DrawPhotographTexture(rng, photo.width, photo.height);
  for (size_t i = 0; i < texture.detail.size(); ++i) {
    for (size_t channel = 0; channel < 3; ++channel) {
      uint8_t& value = photo.rgb[i * 3 + channel];
      value =
          RoundToUint8(static_cast<float>(value) + texture.detail[i] + texture.tint[channel][i]);
    }
  }
}

}  // namespace

FlowerPhoto PaintFlower(FlowerKind kind, uint64_t seed, int64_t number, const FlowerStyle& style) {
  Dice dice(seed, number);
  int short_side = 160 + dice.Below(81);
  int long_side = short_side + static_cast<int>(short_side * dice.Between(0.0f, 0.5f));
  if (style.long_side > 0) {
    long_side = style.long_side;
    short_side = long_side * 3 / 4;
  }
  const bool upright = dice.Chance(0.4f);
  Canvas canvas(upright ? short_side : long_side, upright ? long_side : short_side);

  PaintBackground(dice, canvas);
  PaintBokeh(dice, canvas);
  PaintLeaves(dice, dice.Below(8), 0.7f, canvas);
  const FlowerForm form = DrawForm(dice, kind);
  const Pose pose = DrawPose(dice, kind, canvas);
  if (dice.Chance(0.3f)) {  // A neighbour of the same kind, out of focus.
    Pose neighbour = DrawPose(dice, kind, canvas);
    neighbour.radius *= dice.Between(0.4f, 0.7f);
    neighbour.centre = Somewhere(dice, canvas);
    PaintOneFlower(DrawForm(dice, kind), neighbour, canvas);
  }
  canvas.Blur(1 + dice.Below(4));

  PaintLeaves(dice, dice.Below(4), 0.5f, canvas);
  PaintStem(dice, kind, pose, canvas);
  const Point shadow = {pose.centre.x + pose.radius * dice.Between(-0.15f, 0.15f),
                        pose.centre.y + pose.radius * dice.Between(0.0f, 0.2f)};
  canvas.DrawDisc(shadow, pose.radius * 0.8f, pose.radius * 0.7f, {0.02f, 0.03f, 0.02f},
                  dice.Between(0.1f, 0.5f));
  PaintOneFlower(form, pose, canvas);
  if (dice.Chance(0.35f)) PaintLeaves(dice, 1, 0.55f, canvas);  // A leaf in front of the flower.

  ApplyLight(dice, canvas);
  if (dice.Chance(0.4f)) canvas.Blur(1);
  const float noise = dice.Between(0.005f, 0.04f);
  if (!style.photo_texture) {
    return {canvas.width(), canvas.height(), canvas.ToBytes(noise, dice.Bits())};
  }
  // No sensor noise, because the texture is noise already.
  FlowerPhoto photo = {canvas.width(), canvas.height(), canvas.ToBytes(/*noise=*/0, 0)};
  AddTexture(seed, number, photo);
  return photo;
}

}  // namespace systole
