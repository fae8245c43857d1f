#include "core/record/source/record_index.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(RecordIndexDeathTest, EndOffsetsThatDoNotIncreaseFailACheck) {
  EXPECT_DEATH(RecordIndex({16, 16}), "check failed");
  EXPECT_DEATH(RecordIndex({0}), "check failed");
}

}  // namespace
}  // namespace systole
