#include "core/operations/data_type.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(DataTypeTest, ValuesOfAnElementTypeTakeTheBytesOfItsDtype) {
  for (const ElementType made : {ElementType::kUint8, ElementType::kFloat32, ElementType::kInt64}) {
    EXPECT_EQ(DTypeBytes(static_cast<DType>(DataTypeOf(made))), ElementBytes(made))
        << ElementTypeName(made);
  }
  EXPECT_EQ(DataTypeOf(ElementType::kUint8), v1::UINT8);
  EXPECT_EQ(DataTypeOf(ElementType::kFloat32), v1::FLOAT32);
  EXPECT_EQ(DataTypeOf(ElementType::kInt64), v1::INT64);
}

TEST(DataTypeTest, ValuesAreWrittenWithTheBytesOfTheirDtype) {
  for (const DType dtype : {DType::kUint8, DType::kFloat32, DType::kBfloat16, DType::kFloat16}) {
    EXPECT_EQ(static_cast<int64_t>(PixelTypeBytes(PixelTypeOf(dtype))), DTypeBytes(dtype))
        << DTypeName(dtype);
  }
  EXPECT_NE(PixelTypeOf(DType::kBfloat16), PixelTypeOf(DType::kFloat16));
}

}  // namespace
}  // namespace systole
