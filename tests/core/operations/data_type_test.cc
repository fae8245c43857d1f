#include "core/operations/data_type.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(DataTypeTest, EachElementTypeMapsToADataTypeOfTheSameSize) {
  for (const ElementType made : {ElementType::kUint8, ElementType::kFloat32, ElementType::kInt64}) {
    EXPECT_EQ(DTypeBytes(static_cast<DType>(DataTypeOf(made))), ElementBytes(made))
        << ElementTypeName(made);
  }
  EXPECT_EQ(DataTypeOf(ElementType::kUint8), v1::UINT8);
  EXPECT_EQ(DataTypeOf(ElementType::kFloat32), v1::FLOAT32);
  EXPECT_EQ(DataTypeOf(ElementType::kInt64), v1::INT64);
}

}  // namespace
}  // namespace systole
