#include "client/lanes/lane_cursor.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;

// Cores 3 and 4 of a feed. A core's slice has `valid` of 2 bytes at 0 and `x` of 6 bytes at 64. The
// slice is rounded up to 128 bytes.
std::shared_ptr<const StepShape> Shape() {
  absl::StatusOr<SliceLayout> layout = SliceLayout::Create(
      {{.spec = {.name = "valid", .shape = {2}}}, {.spec = {.name = "x", .shape = {2, 3}}}});
  EXPECT_THAT(layout, IsOk());
  return std::make_shared<StepShape>(
      StepShape{.layout = *std::move(layout), .core_begin = 3, .core_end = 5});
}

TEST(LaneCursorTest, WalksOverCoresTensorsAndSteps) {
  LaneCursor cursor(Shape(), /*first_step=*/7, /*end_step=*/13, /*stride=*/3);
  for (const int64_t step : {7, 10}) {
    const struct {
      ChunkHeader header;
      int64_t bytes, offset;
      bool ends_step;
    } kChunks[] = {
        {{.step = step, .core = 3, .tensor = 0, .offset = 0}, 2, 0, false},
        {{.step = step, .core = 3, .tensor = 1, .offset = 0}, 5, 64, false},
        {{.step = step, .core = 3, .tensor = 1, .offset = 5}, 1, 69, false},
        {{.step = step, .core = 4, .tensor = 0, .offset = 0}, 2, 128, false},
        {{.step = step, .core = 4, .tensor = 1, .offset = 0}, 6, 192, true},
    };
    for (const auto& chunk : kChunks) {
      EXPECT_EQ(cursor.step(), step);
      EXPECT_FALSE(cursor.at_end());
      const absl::StatusOr<ChunkPlace> place = cursor.Accept(chunk.header, chunk.bytes);
      ASSERT_THAT(place, IsOk());
      EXPECT_EQ(place->step, step);
      EXPECT_EQ(place->offset, chunk.offset);
      EXPECT_EQ(place->ends_step, chunk.ends_step);
    }
  }
  EXPECT_TRUE(cursor.at_end());
  EXPECT_THAT(
      cursor.Accept({.step = 13, .core = 3}, 2),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("after the last step asked for, 10")));
}

TEST(LaneCursorTest, AChunkWithAnyUnexpectedFieldOrSizeIsRefused) {
  const ChunkHeader right = {.step = 7, .core = 3};
  std::vector<std::pair<ChunkHeader, const char*>> wrong;
  for (const int64_t step : {-7, 6, 8, 10}) {
    wrong.push_back({{.step = step, .core = 3}, "want 7"});
  }
  for (const int core : {-3, 0, 2, 4, 5}) wrong.push_back({{.step = 7, .core = core}, "want 3"});
  for (const int tensor : {-1, 1, 2}) {
    wrong.push_back({{.step = 7, .core = 3, .tensor = tensor}, "tensor"});
  }
  for (const int64_t offset : {-1, 1, 2}) {
    wrong.push_back({{.step = 7, .core = 3, .offset = offset}, "offset"});
  }
  for (const auto& [header, message] : wrong) {
    LaneCursor cursor(Shape(), 7, 13, 3);
    EXPECT_THAT(cursor.Accept(header, 2),
                StatusIs(absl::StatusCode::kInternal, HasSubstr(message)));
  }
  for (const int64_t bytes : {int64_t{-1}, int64_t{0}, int64_t{3}, int64_t{1} << 62}) {
    LaneCursor cursor(Shape(), 7, 13, 3);
    EXPECT_THAT(cursor.Accept(right, bytes),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("want 1 to 2")));
  }
  LaneCursor cursor(Shape(), 7, 13, 3);
  EXPECT_THAT(cursor.Accept(right, 2), IsOk());
}

TEST(LaneCursorTest, SlicesInSlotsAndInChunksMayBeMixed) {
  LaneCursor cursor(Shape(), /*first_step=*/7, /*end_step=*/9, /*stride=*/1);
  absl::StatusOr<ChunkPlace> place =
      cursor.AcceptSlice({.step = 7, .core = 3, .slot = 1, .slot_bytes = 128});
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(place->step, 7);
  EXPECT_EQ(place->offset, 0);
  EXPECT_FALSE(place->ends_step);
  EXPECT_THAT(cursor.Accept({.step = 7, .core = 4, .tensor = 0}, 2), IsOk());
  place = cursor.Accept({.step = 7, .core = 4, .tensor = 1}, 6);
  ASSERT_THAT(place, IsOk());
  EXPECT_TRUE(place->ends_step);
  EXPECT_THAT(cursor.Accept({.step = 8, .core = 3, .tensor = 0}, 2), IsOk());
  EXPECT_THAT(cursor.Accept({.step = 8, .core = 3, .tensor = 1}, 6), IsOk());
  place = cursor.AcceptSlice({.step = 8, .core = 4, .slot = 1, .slot_bytes = 128});
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(place->step, 8);
  EXPECT_EQ(place->offset, 128);
  EXPECT_TRUE(place->ends_step);
  EXPECT_TRUE(cursor.at_end());
  EXPECT_THAT(cursor.AcceptSlice({.step = 9, .core = 3, .slot = 1, .slot_bytes = 128}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("after the last step")));
}

TEST(LaneCursorTest, ASliceInASlotWithAWrongPlaceOrSizeIsRefused) {
  const std::pair<ChunkHeader, const char*> kWrong[] = {
      {{.step = 8, .core = 3, .slot = 1, .slot_bytes = 128}, "step 8, want 7"},
      {{.step = 7, .core = 4, .slot = 1, .slot_bytes = 128}, "core 4, want 3"},
      {{.step = 7, .core = 3, .tensor = 1, .slot = 1, .slot_bytes = 128}, "tensor 1, want 0"},
      {{.step = 7, .core = 3, .offset = 5, .slot = 1, .slot_bytes = 128}, "offset 5, want 0"},
      {{.step = 7, .core = 3, .slot = 1, .slot_bytes = 127}, "slot_bytes 127, want 128"},
      {{.step = 7, .core = 3, .slot = 1, .slot_bytes = -1}, "slot_bytes -1, want 128"},
  };
  for (const auto& [header, message] : kWrong) {
    LaneCursor cursor(Shape(), 7, 13, 3);
    EXPECT_THAT(cursor.AcceptSlice(header),
                StatusIs(absl::StatusCode::kInternal, HasSubstr(message)));
  }
  // A slot may not come in the middle of a slice, whatever the header says.
  for (const int tensor : {0, 1}) {
    LaneCursor cursor(Shape(), 7, 13, 3);
    ASSERT_THAT(cursor.Accept({.step = 7, .core = 3}, 2), IsOk());
    EXPECT_THAT(
        cursor.AcceptSlice({.step = 7, .core = 3, .tensor = tensor, .slot = 1, .slot_bytes = 128}),
        StatusIs(absl::StatusCode::kInternal, HasSubstr("tensor")));
  }
}

}  // namespace
}  // namespace systole
