#include "client/cli/flowers/canvas.h"

#include <algorithm>
#include <cmath>

namespace systole {
namespace {

uint32_t Scramble(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

// The pixel range [begin, end) that covers low..high, cut to [0, limit).
struct PixelRange {
  PixelRange(float low, float high, int limit)
      : begin(std::max(0, static_cast<int>(std::floor(low)))),
        end(std::min(limit, static_cast<int>(std::floor(high)) + 2)) {}
  int begin, end;
};

// Locates points relative to a bowed line from base to tip.
struct AlongLine {
  AlongLine(Point base, Point tip, float bend) : base_(base), bend_(bend) {
    const float dx = tip.x - base.x;
    const float dy = tip.y - base.y;
    length = std::max(1.0f, std::sqrt(dx * dx + dy * dy));
    ux_ = dx / length;
    uy_ = dy / length;
  }

  // `along` runs from 0 at the base to 1 at the tip; `across` is the distance in pixels, signed.
  void Locate(float x, float y, float* along, float* across) const {
    const float dx = x - base_.x;
    const float dy = y - base_.y;
    *along = (dx * ux_ + dy * uy_) / length;
    *across = dy * ux_ - dx * uy_ - 4.0f * bend_ * length * *along * (1.0f - *along);
  }

  float length;

 private:
  Point base_;
  float bend_;
  float ux_, uy_;
};

// Running box filter of one line of `count` pixels that lie `stride` apart.
void BlurLine(const Rgb* in, Rgb* out, int count, int stride, int radius) {
  const float scale = 1.0f / static_cast<float>(2 * radius + 1);
  const auto pixel = [&](int i) {
    return in[static_cast<size_t>(std::clamp(i, 0, count - 1)) * stride];
  };
  Rgb sum;
  for (int i = -radius; i <= radius; ++i) {
    const Rgb p = pixel(i);
    sum = {sum.r + p.r, sum.g + p.g, sum.b + p.b};
  }
  for (int i = 0; i < count; ++i) {
    out[static_cast<size_t>(i) * stride] = sum * scale;
    const Rgb enters = pixel(i + radius + 1);
    const Rgb leaves = pixel(i - radius);
    sum = {sum.r + enters.r - leaves.r, sum.g + enters.g - leaves.g, sum.b + enters.b - leaves.b};
  }
}

}  // namespace

float SinTurns(float turns) {
  const float t = 2.0f * (turns - std::floor(turns + 0.5f));  // -1 .. 1: half a turn each way.
  const float parabola = 4.0f * t * (1.0f - std::abs(t));
  return 0.225f * (parabola * std::abs(parabola) - parabola) + parabola;
}

float AngleTurns(float y, float x) {
  const float ax = std::abs(x);
  const float ay = std::abs(y);
  const float high = std::max(ax, ay);
  if (high == 0.0f) return 0.0f;
  const float ratio = std::min(ax, ay) / high;
  float turns = ratio * (0.125f + 0.0434487f * (1.0f - ratio));  // At most one eighth of a turn.
  if (ay > ax) turns = 0.25f - turns;
  if (x < 0.0f) turns = 0.5f - turns;
  if (y < 0.0f) turns = 1.0f - turns;
  return turns >= 1.0f ? 0.0f : turns;
}

float Speckle(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t bits = Scramble(a ^ Scramble(b ^ Scramble(c + 0x9e3779b9u)));
  return static_cast<float>(bits >> 8) * (1.0f / 16777216.0f);
}

Canvas::Canvas(int width, int height)
    : width_(width), height_(height), pixels_(static_cast<size_t>(width) * height) {}

void Canvas::DrawDisc(Point centre, float radius, float softness, Rgb colour, float alpha) {
  const float outer = radius + softness;
  const PixelRange ys(centre.y - outer, centre.y + outer, height_);
  const PixelRange xs(centre.x - outer, centre.x + outer, width_);
  for (int y = ys.begin; y < ys.end; ++y) {
    for (int x = xs.begin; x < xs.end; ++x) {
      const float dx = x - centre.x;
      const float dy = y - centre.y;
      const float inside = radius - std::sqrt(dx * dx + dy * dy);
      const float cover = Clamp01(inside / softness + 0.5f);
      if (cover > 0.0f) Blend(x, y, colour, cover * alpha);
    }
  }
}

void Canvas::DrawLeaf(Point base, Point tip, float half_width, float bend, Rgb colour, Rgb shade) {
  const AlongLine line(base, tip, bend);
  const float margin = half_width + std::abs(bend) * line.length + 1.0f;
  const PixelRange ys(std::min(base.y, tip.y) - margin, std::max(base.y, tip.y) + margin, height_);
  const PixelRange xs(std::min(base.x, tip.x) - margin, std::max(base.x, tip.x) + margin, width_);
  for (int y = ys.begin; y < ys.end; ++y) {
    for (int x = xs.begin; x < xs.end; ++x) {
      float along, across;
      line.Locate(x, y, &along, &across);
      if (along <= 0.0f || along >= 1.0f) continue;
      const float half = half_width * 4.0f * along * (1.0f - along);
      const float cover = Clamp01(half - std::abs(across) + 0.5f);
      if (cover <= 0.0f) continue;
      const float side = 0.5f + 0.5f * across / half_width;
      const float rib = std::abs(across) < 0.8f ? 0.25f : 0.0f;
      Blend(x, y, Mix(colour, shade, Clamp01(side - rib)), cover);
    }
  }
}

void Canvas::DrawStem(Point base, Point tip, float half_width, float bend, Rgb colour) {
  const AlongLine line(base, tip, bend);
  const float margin = half_width + std::abs(bend) * line.length + 1.0f;
  const PixelRange ys(std::min(base.y, tip.y) - margin, std::max(base.y, tip.y) + margin, height_);
  const PixelRange xs(std::min(base.x, tip.x) - margin, std::max(base.x, tip.x) + margin, width_);
  for (int y = ys.begin; y < ys.end; ++y) {
    for (int x = xs.begin; x < xs.end; ++x) {
      float along, across;
      line.Locate(x, y, &along, &across);
      if (along < 0.0f || along > 1.0f) continue;
      const float cover = Clamp01(half_width - std::abs(across) + 0.5f);
      if (cover <= 0.0f) continue;
      const float round = 1.0f - 0.35f * Clamp01(std::abs(across) / half_width);
      Blend(x, y, colour * round, cover);
    }
  }
}

void Canvas::Blur(int radius) {
  if (radius <= 0) return;
  std::vector<Rgb> other(pixels_.size());
  for (int pass = 0; pass < 2; ++pass) {
    for (int y = 0; y < height_; ++y) {
      const size_t row = static_cast<size_t>(y) * width_;
      BlurLine(&pixels_[row], &other[row], width_, 1, radius);
    }
    for (int x = 0; x < width_; ++x) BlurLine(&other[x], &pixels_[x], height_, width_, radius);
  }
}

std::vector<uint8_t> Canvas::ToBytes(float noise, uint32_t noise_key) const {
  std::vector<uint8_t> bytes(pixels_.size() * 3);
  const float spread = noise / 147.8f;  // The standard deviation of a sum of four bytes.
  for (size_t i = 0; i < pixels_.size(); ++i) {
    const float channels[3] = {pixels_[i].r, pixels_[i].g, pixels_[i].b};
    for (int c = 0; c < 3; ++c) {
      const uint32_t dice = Scramble(static_cast<uint32_t>(i * 3 + c) ^ noise_key);
      const int sum = (dice & 255) + ((dice >> 8) & 255) + ((dice >> 16) & 255) + (dice >> 24);
      const float value = channels[c] + spread * static_cast<float>(sum - 510);
      bytes[i * 3 + c] = static_cast<uint8_t>(Clamp01(value) * 255.0f + 0.5f);
    }
  }
  return bytes;
}

}  // namespace systole
