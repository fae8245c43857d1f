#include "core/tensor/tensor.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::ElementsAre;

TEST(TensorSpecTest, BytesAreElementsTimesWidth) {
  const TensorSpec image{.name = "image", .dtype = DType::kBfloat16, .shape = {16, 224, 224, 3}};
  EXPECT_EQ(image.num_bytes(), 16 * 224 * 224 * 3 * 2);
  EXPECT_EQ(image.DebugString(), "image bfloat16[16,224,224,3]");
}

TEST(TensorSpecTest, AScalarHasOneElement) {
  const TensorSpec scalar{.name = "x", .dtype = DType::kInt64, .shape = {}};
  EXPECT_EQ(scalar.num_bytes(), 8);
  EXPECT_EQ(scalar.DebugString(), "x int64[]");
}

TEST(TensorSpecTest, EveryTypeHasItsWidthAndName) {
  EXPECT_EQ(DTypeBytes(DType::kUint8), 1);
  EXPECT_EQ(DTypeBytes(DType::kBfloat16), 2);
  EXPECT_EQ(DTypeBytes(DType::kFloat16), 2);
  EXPECT_EQ(DTypeBytes(DType::kInt32), 4);
  EXPECT_EQ(DTypeBytes(DType::kFloat32), 4);
  EXPECT_EQ(DTypeBytes(DType::kInt64), 8);
  EXPECT_EQ(DTypeName(DType::kUint8), "uint8");
  EXPECT_EQ(DTypeName(DType::kInt32), "int32");
  EXPECT_EQ(DTypeName(DType::kInt64), "int64");
  EXPECT_EQ(DTypeName(DType::kFloat32), "float32");
  EXPECT_EQ(DTypeName(DType::kBfloat16), "bfloat16");
  EXPECT_EQ(DTypeName(DType::kFloat16), "float16");
}

TEST(TensorViewTest, ReadsElementsInPlace) {
  const std::vector<int64_t> values = {3, 5};
  const std::vector<int64_t> shape = {2};
  const TensorView view{.dtype = DType::kInt64,
                        .shape = shape,
                        .data = reinterpret_cast<const uint8_t*>(values.data())};
  EXPECT_THAT(view.As<int64_t>(), ElementsAre(3, 5));
  EXPECT_EQ(view.bytes().size(), 16u);
}

}  // namespace
}  // namespace systole
