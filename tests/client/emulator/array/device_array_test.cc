#include "client/emulator/array/device_array.h"

#include <cstdint>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

using testing::Each;
using testing::SizeIs;

TEST(DeviceArrayTest, StartsZeroedOnACacheLine) {
  for (const int64_t size : {1, 3, 64, 1000}) {
    const DeviceArray<uint16_t> array(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % 64, 0u);
    EXPECT_THAT(array.span(), testing::AllOf(SizeIs(size), Each(0)));
  }
}

TEST(DeviceArrayTest, SlackBehindTheEndMayBeReadAndWritten) {
  DeviceArray<float> array(5);
  float sum = 0;
  for (int64_t i = 0; i < kArraySlack; ++i) sum += array.data()[5 + i];
  EXPECT_EQ(sum, 0);
  array.data()[5 + kArraySlack - 1] = 1;
  EXPECT_THAT(array.span(), SizeIs(5));
}

TEST(DeviceArrayTest, MovesItsMemory) {
  DeviceArray<int32_t> from(4);
  from[2] = 7;
  const int32_t* const memory = from.data();
  const DeviceArray<int32_t> to = std::move(from);
  EXPECT_EQ(to.data(), memory);
  EXPECT_EQ(to[2], 7);
}

TEST(DeviceArrayTest, EmptyArrayHasNoElements) {
  EXPECT_EQ(DeviceArray<float>().size(), 0);
  EXPECT_THAT(DeviceArray<float>(0).span(), SizeIs(0));
}

}  // namespace
}  // namespace systole::emulator
