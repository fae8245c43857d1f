#include "core/numeric/simd_target.h"

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

TEST(SimdTargetTest, BestTargetIsTheDefaultAndThePortableOneIsLast) {
  const auto targets = SupportedSimdTargets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(CurrentSimdTarget(), targets.front());
  EXPECT_THAT(targets.back(), AnyOf("SCALAR", "EMU128"));
}

TEST(SimdTargetTest, EachTargetCanBeForcedAndReleased) {
  const auto targets = SupportedSimdTargets();
  for (const std::string& target : targets) {
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    EXPECT_EQ(CurrentSimdTarget(), target);
    EXPECT_EQ(SupportedSimdTargets(), targets);  // Forcing a target hides no other.
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
  EXPECT_EQ(CurrentSimdTarget(), targets.front());
}

TEST(SimdTargetTest, BothPortableNamesWork) {
  ASSERT_THAT(ForceSimdTarget("EMU128"), IsOk());
  EXPECT_EQ(CurrentSimdTarget(), SupportedSimdTargets().back());
  ASSERT_THAT(ForceSimdTarget("SCALAR"), IsOk());
  EXPECT_EQ(CurrentSimdTarget(), SupportedSimdTargets().back());
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(SimdTargetTest, UnknownTargetIsAnErrorThatListsTheKnownOnes) {
  EXPECT_THAT(ForceSimdTarget("AVX9"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"AVX9\""), HasSubstr(SupportedSimdTargets().front()))));
  EXPECT_EQ(CurrentSimdTarget(), SupportedSimdTargets().front());
}

TEST(SimdTargetTest, EnvironmentForcesATarget) {
  const std::string portable = SupportedSimdTargets().back();
  ASSERT_EQ(setenv(kSimdTargetVariable, portable.c_str(), 1), 0);
  EXPECT_THAT(ForceSimdTargetFromEnvironment(), IsOk());
  EXPECT_EQ(CurrentSimdTarget(), portable);
  ASSERT_EQ(setenv(kSimdTargetVariable, "avx2", 1), 0);  // Names are case-sensitive.
  EXPECT_THAT(ForceSimdTargetFromEnvironment(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("SYSTOLE_SIMD_TARGET"), HasSubstr("\"avx2\""))));
  ASSERT_EQ(setenv(kSimdTargetVariable, "", 1), 0);
  EXPECT_THAT(ForceSimdTargetFromEnvironment(), IsOk());
  ASSERT_EQ(unsetenv(kSimdTargetVariable), 0);
  EXPECT_THAT(ForceSimdTargetFromEnvironment(), IsOk());
  EXPECT_EQ(CurrentSimdTarget(), portable);  // Nothing changes if the variable is unset.
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

}  // namespace
}  // namespace systole
