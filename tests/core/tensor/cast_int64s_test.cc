#include "core/tensor/cast_int64s.h"

#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

template <typename Number>
std::vector<Number> Cast(const std::vector<int64_t>& values, DType dtype) {
  std::vector<uint8_t> bytes(values.size() * sizeof(Number));
  EXPECT_THAT(CastInt64s(values, dtype, absl::MakeSpan(bytes)), IsOk());
  std::vector<Number> numbers(values.size());
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

TEST(CastInt64sTest, EveryInt64StaysAsItIs) {
  const std::vector<int64_t> values = {0, -1, std::numeric_limits<int64_t>::min(),
                                       std::numeric_limits<int64_t>::max()};
  EXPECT_THAT(Cast<int64_t>(values, DType::kInt64), ElementsAreArray(values));
}

TEST(CastInt64sTest, EveryInt32KeepsItsValue) {
  const std::vector<int64_t> values = {0, -1, std::numeric_limits<int32_t>::min(),
                                       std::numeric_limits<int32_t>::max()};
  EXPECT_THAT(Cast<int32_t>(values, DType::kInt32), ElementsAreArray(values));
}

TEST(CastInt64sTest, AnEmptyInputGivesAnEmptyOutput) {
  EXPECT_TRUE(Cast<int64_t>({}, DType::kInt64).empty());
  EXPECT_TRUE(Cast<int32_t>({}, DType::kInt32).empty());
}

TEST(CastInt64sTest, AValueThatDoesNotFitInt32IsRefusedWithItsIndex) {
  std::vector<uint8_t> bytes(12);
  EXPECT_THAT(CastInt64s({7, int64_t{1} << 31, 8}, DType::kInt32, absl::MakeSpan(bytes)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "value 2147483648 at index 1 does not fit int32; use dtype: INT64"));
  EXPECT_THAT(
      CastInt64s({7, 8, -(int64_t{1} << 31) - 1}, DType::kInt32, absl::MakeSpan(bytes)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("value -2147483649 at index 2")));
}

}  // namespace
}  // namespace systole
