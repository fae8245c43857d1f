#include "client/cli/flowers/flower_painter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/checksum/xxh3.h"
#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sanitizers.h"

namespace systole {
namespace {

FlowerKind Kind(int64_t number) { return static_cast<FlowerKind>(number % kFlowerKinds); }

TEST(FlowerPainterTest, SameSeedAndNumberGiveTheSamePhotograph) {
  for (int k = 0; k < kFlowerKinds; ++k) {
    const FlowerPhoto a = PaintFlower(Kind(k), 5, 17);
    const FlowerPhoto b = PaintFlower(Kind(k), 5, 17);
    EXPECT_EQ(a.rgb, b.rgb);
    EXPECT_NE(a.rgb, PaintFlower(Kind(k), 6, 17).rgb);
    EXPECT_NE(a.rgb, PaintFlower(Kind(k), 5, 18).rgb);
  }
}

TEST(FlowerPainterTest, PhotographsVaryInSizeWithinTheStatedBounds) {
  std::set<std::pair<int, int>> sizes;
  bool upright = false;
  bool lying = false;
  for (int64_t i = 0; i < 30; ++i) {
    const FlowerPhoto photo = PaintFlower(Kind(i), 1, i);
    const int shorter = std::min(photo.width, photo.height);
    const int longer = std::max(photo.width, photo.height);
    EXPECT_GE(shorter, 160);
    EXPECT_LE(shorter, 240);
    EXPECT_LE(longer, shorter * 3 / 2);
    EXPECT_EQ(photo.rgb.size(), size_t{3} * photo.width * photo.height);
    sizes.insert({photo.width, photo.height});
    upright = upright || photo.height > photo.width;
    lying = lying || photo.width > photo.height;
  }
  EXPECT_GT(sizes.size(), 25u);
  EXPECT_TRUE(upright);
  EXPECT_TRUE(lying);
}

TEST(FlowerPainterTest, PicturesHaveTheGivenLongSideAndARatioOfThreeToFour) {
  const FlowerPhoto lying = PaintFlower(Kind(0), 1, 0, {.long_side = 500});
  EXPECT_EQ(std::minmax(lying.width, lying.height), std::minmax(375, 500));
  const FlowerPhoto small = PaintFlower(Kind(0), 1, 0, {.long_side = kLeastLongSide});
  EXPECT_EQ(std::max(small.width, small.height), kLeastLongSide);
}

TEST(FlowerPainterTest, TextureChangesPixelsButHardlyTheMeanBrightness) {
  const FlowerPhoto smooth = PaintFlower(Kind(3), 1, 3, {.long_side = 200});
  const FlowerPhoto photo = PaintFlower(Kind(3), 1, 3, {.long_side = 200, .photo_texture = true});
  ASSERT_EQ(smooth.rgb.size(), photo.rgb.size());
  double sum = 0;
  for (size_t i = 0; i < smooth.rgb.size(); ++i) sum += photo.rgb[i] - smooth.rgb[i];
  EXPECT_NE(smooth.rgb, photo.rgb);
  EXPECT_LT(std::abs(sum / static_cast<double>(smooth.rgb.size())), 8);
}

// Classifies pictures by the nearest mean colour. If this rule did well, the data set could be
// learned without looking at shapes.
TEST(FlowerPainterTest, MeanColourTellsLittleAboutTheKind) {
  constexpr int64_t kImages = kSanitized ? 60 : 600;
  using Colour = std::array<double, 3>;
  std::vector<Colour> means(kImages);
  WorkerPool pool(2);
  ParallelFor(pool, kImages, [&](int64_t i) {
    const FlowerPhoto photo = PaintFlower(Kind(i), /*seed=*/1, i);
    Colour sum = {};
    for (size_t at = 0; at < photo.rgb.size(); ++at) sum[at % 3] += photo.rgb[at];
    for (double& channel : sum) channel /= static_cast<double>(photo.rgb.size() / 3);
    means[i] = sum;
  });
  // The first half gives the centroids, the second half the accuracy.
  std::array<Colour, kFlowerKinds> centroids = {};
  for (int64_t i = 0; i < kImages / 2; ++i) {
    for (int c = 0; c < 3; ++c) {
      centroids[i % kFlowerKinds][c] += means[i][c] / (kImages / 2 / kFlowerKinds);
    }
  }
  int64_t right = 0;
  for (int64_t i = kImages / 2; i < kImages; ++i) {
    const auto distance = [&](const Colour& centroid) {
      double sum = 0;
      for (int c = 0; c < 3; ++c) sum += (means[i][c] - centroid[c]) * (means[i][c] - centroid[c]);
      return sum;
    };
    const auto nearest = std::min_element(
        centroids.begin(), centroids.end(),
        [&](const Colour& a, const Colour& b) { return distance(a) < distance(b); });
    right += (nearest - centroids.begin()) == i % kFlowerKinds;
  }
  if (kSanitized) return;  // With so few images the accuracy is a matter of luck.
  EXPECT_LT(static_cast<double>(right) / (kImages / 2), 0.60);
}

// Hashes of the pictures of seed 1. The hashes differ if another compiler or CPU, or a change of
// the painter, draws other pictures. After a change on purpose, put the new hashes here. The
// pictures of all other seeds differ then, too.
TEST(FlowerPainterTest, DrawsTheSamePicturesOnEveryMachine) {
  const uint64_t want[kFlowerKinds] = {15928843926194322856u, 4555674673000546769u,
                                       8354119918049222188u, 5711348683632406013u,
                                       11122643295074407993u};
  for (int k = 0; k < kFlowerKinds; ++k) {
    const FlowerPhoto photo = PaintFlower(Kind(k), 1, k);
    const uint64_t seen =
        Xxh3(absl::string_view(reinterpret_cast<const char*>(photo.rgb.data()), photo.rgb.size()));
    EXPECT_EQ(seen, want[k]) << FlowerKindName(Kind(k));
  }
}

TEST(FlowerShapeTest, MiddleIsInsideAndCornersAreOutside) {
  for (int k = 0; k < kFlowerKinds; ++k) {
    const FlowerForm form = {.kind = Kind(k), .petals = 20, .individual = 3};
    EXPECT_EQ(SampleFlower(form, 0.02f, 0.0f, 0.01f).alpha, 1.0f) << FlowerKindName(form.kind);
    EXPECT_EQ(SampleFlower(form, 0.95f, 0.95f, 0.01f).alpha, 0.0f) << FlowerKindName(form.kind);
    EXPECT_EQ(SampleFlower(form, -0.95f, 0.95f, 0.01f).alpha, 0.0f) << FlowerKindName(form.kind);
  }
}

TEST(FlowerShapeTest, RosesCoverMoreAreaThanDaisiesAndTulips) {
  // The part of the flower's circle that is covered.
  const auto covered = [](FlowerKind kind) {
    const FlowerForm form = {.kind = kind, .petals = 13, .individual = 3};
    int inside = 0;
    for (int y = -50; y <= 50; ++y) {
      for (int x = -50; x <= 50; ++x) {
        inside += SampleFlower(form, x * 0.02f, y * 0.02f, 0.02f).alpha > 0.5f;
      }
    }
    return inside / (50.0 * 50.0 * 3.1416);
  };
  EXPECT_GT(covered(FlowerKind::kRose), covered(FlowerKind::kDaisy));
  EXPECT_LT(covered(FlowerKind::kTulip), covered(FlowerKind::kRose));
  EXPECT_GT(covered(FlowerKind::kTulip), 0.2);
}

}  // namespace
}  // namespace systole
