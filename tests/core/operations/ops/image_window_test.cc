#include "core/operations/ops/image_window.h"

#include <cstdint>
#include <variant>
#include <vector>

#include "core/operations/ops/plain_image.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr ExampleKey kExample = {.seed = 3, .epoch = 1, .record = 5};

Move Mirror(bool mirrored) {
  return MirrorPart{.mirrored = [mirrored](const ExampleKey&) { return mirrored; }};
}

Move Cut(const CropRect& rect) {
  return WindowPart{.window = [rect](int, int, const ExampleKey&) { return rect; }};
}

// A part of an image of height x width pixels.
CropRect DrawRect(int height, int width, CounterRng& rng) {
  CropRect rect;
  rect.y = static_cast<int>(rng.UniformInt(0, height));
  rect.x = static_cast<int>(rng.UniformInt(0, width));
  rect.height = static_cast<int>(rng.UniformInt(1, height - rect.y + 1));
  rect.width = static_cast<int>(rng.UniformInt(1, width - rect.x + 1));
  return rect;
}

TEST(ImageWindowTest, GivesThePixelsOfAllCropsAndMirrorsInSequence) {
  for (int64_t round = 0; round < 2000; ++round) {
    CounterRng rng(11, 0, round, 1);
    const int64_t height = rng.UniformInt(1, 20);
    const int64_t width = rng.UniformInt(1, 20);
    Value image = Value::Create(ElementType::kUint8, {height, width, round % 2 == 0 ? 1 : 3});
    for (uint8_t& x : image.uint8s) x = static_cast<uint8_t>(rng.NextU32());
    Value want = image;
    std::vector<Move> moves;
    for (int64_t left = rng.UniformInt(0, 6); left > 0; --left) {
      if (rng.UniformInt(0, 2) == 0) {
        const CropRect rect =
            DrawRect(static_cast<int>(want.height()), static_cast<int>(want.width()), rng);
        moves.push_back(Cut(rect));
        want = CropPlainly(want, rect);
      } else {
        moves.push_back(Mirror(rng.UniformInt(0, 4) > 0));
        if (std::get<MirrorPart>(moves.back()).mirrored(kExample)) want = MirrorPlainly(want);
      }
    }
    const absl::StatusOr<ImageWindow> window =
        WindowOf(moves, static_cast<int>(height), static_cast<int>(width), kExample);
    ASSERT_THAT(window, IsOk());
    const Value cut = CropPlainly(image, window->rect);
    const Value got = window->mirrored ? MirrorPlainly(cut) : cut;
    ASSERT_EQ(got.type, want.type) << "round " << round;
    ASSERT_EQ(got.uint8s, want.uint8s) << "round " << round;
  }
}

TEST(ImageWindowTest, ACropAfterAMirrorIsCutFromTheOtherSide) {
  const CropRect rect = {.y = 1, .x = 2, .height = 3, .width = 4};
  const absl::StatusOr<ImageWindow> window =
      WindowOf(std::vector<Move>{Mirror(true), Cut(rect)}, 8, 9, kExample);
  ASSERT_THAT(window, IsOk());
  EXPECT_EQ(window->rect, (CropRect{.y = 1, .x = 3, .height = 3, .width = 4}));
  EXPECT_TRUE(window->mirrored);
}

TEST(ImageWindowTest, ACropGetsTheSizeThatThePreviousCropLeaves) {
  int seen_height = 0;
  int seen_width = 0;
  const Move look = WindowPart{.window = [&](int height, int width, const ExampleKey& example) {
    EXPECT_EQ(example.record, kExample.record);
    seen_height = height;
    seen_width = width;
    return WholeImage(height, width);
  }};
  const CropRect rect = {.y = 0, .x = 0, .height = 3, .width = 4};
  EXPECT_THAT(WindowOf(std::vector<Move>{Cut(rect), look}, 8, 9, kExample), IsOk());
  EXPECT_EQ(seen_height, 3);
  EXPECT_EQ(seen_width, 4);
}

TEST(ImageWindowTest, TheErrorOfACropThatDoesNotFitIsReturned) {
  const Move misfit =
      WindowPart{.window = [](int, int, const ExampleKey&) -> absl::StatusOr<CropRect> {
        return absl::DataLossError("too small");
      }};
  EXPECT_THAT(WindowOf(std::vector<Move>{Mirror(true), misfit, Mirror(true)}, 8, 9, kExample),
              StatusIs(absl::StatusCode::kDataLoss, "too small"));
}

TEST(ImageWindowTest, WithoutMovesIsTheWholeImage) {
  const absl::StatusOr<ImageWindow> window = WindowOf({}, 8, 9, kExample);
  ASSERT_THAT(window, IsOk());
  EXPECT_EQ(window->rect, WholeImage(8, 9));
  EXPECT_FALSE(window->mirrored);
}

}  // namespace
}  // namespace systole
