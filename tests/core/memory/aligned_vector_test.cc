#include "core/memory/aligned_vector.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(AlignedVectorTest, ElementsStartOnACacheLineWheneverTheyMove) {
  AlignedVector<float> values;
  for (int i = 0; i < 100; ++i) {
    values.push_back(static_cast<float>(i));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(values.data()) % kBufferAlignment, 0u);
  }
  const AlignedVector<float> copy = values;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copy.data()) % kBufferAlignment, 0u);
  EXPECT_EQ(copy, values);
}

}  // namespace
}  // namespace systole
