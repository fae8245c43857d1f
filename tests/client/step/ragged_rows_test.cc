#include "client/step/ragged_rows.h"

#include <cstring>
#include <memory>
#include <vector>

#include "core/batch/slice_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A core with three examples, each with up to four items of two uint8 elements.
class RaggedRowsTest : public ::testing::Test {
 protected:
  Step MakeStep(std::vector<int32_t> lengths) {
    shape_ = std::make_shared<StepShape>(
        StepShape{.layout = *SliceLayout::Create(
                      {{.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {3}}},
                       {.spec = {.name = "t", .dtype = DType::kUint8, .shape = {3, 4, 2}}},
                       {.spec = {.name = "t_length", .dtype = DType::kInt32, .shape = {3}}},
                       {.spec = {.name = "flat", .dtype = DType::kUint8, .shape = {3}}},
                       {.spec = {.name = "flat_length", .dtype = DType::kInt32, .shape = {3}}}}),
                  .core_begin = 5,
                  .core_end = 6,
                  .placement = StepPlacement::kTensorMajor});
    StepBuffer buffer(static_cast<uint8_t*>(std::aligned_alloc(64, 1024)), std::free);
    uint8_t* const t = buffer.get() + shape_->OffsetOf(5, shape_->layout.IndexOf("t"));
    for (int i = 0; i < 24; ++i) t[i] = static_cast<uint8_t>(i);
    std::memcpy(buffer.get() + shape_->OffsetOf(5, shape_->layout.IndexOf("t_length")),
                lengths.data(), 12);
    return Step(0, shape_, std::move(buffer));
  }

  std::shared_ptr<StepShape> shape_;
};

TEST_F(RaggedRowsTest, RowsAreConcatenatedWithoutPadding) {
  const absl::StatusOr<RaggedRows> rows = RaggedRowsOf(MakeStep({2, 0, 1}), 5, "t");
  ASSERT_THAT(rows, IsOk());
  EXPECT_THAT(rows->values, ElementsAre(0, 1, 2, 3, 16, 17));
  EXPECT_THAT(rows->row_splits, ElementsAre(0, 2, 2, 3));
}

TEST_F(RaggedRowsTest, FullListsAreTheWholeTensor) {
  const absl::StatusOr<RaggedRows> rows = RaggedRowsOf(MakeStep({4, 4, 4}), 5, "t");
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->values.size(), 24u);
  EXPECT_THAT(rows->row_splits, ElementsAre(0, 4, 8, 12));
}

TEST_F(RaggedRowsTest, AnOutputThatIsNotPaddedIsRefused) {
  for (const char* name : {"valid", "flat", "nothing", "t_length"}) {
    EXPECT_THAT(RaggedRowsOf(MakeStep({0, 0, 0}), 5, name),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
  }
}

TEST_F(RaggedRowsTest, ALengthOutOfRangeIsDataLoss) {
  for (const int32_t length : {-1, 5}) {
    EXPECT_THAT(RaggedRowsOf(MakeStep({1, length, 1}), 5, "t"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("want 0 to 4")));
  }
}

}  // namespace
}  // namespace systole
