#include "client/emulator/array/numerics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

TEST(NumericsTest, NamesAreReadBack) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
    EXPECT_THAT(ParseNumerics(NumericsName(numerics)), IsOkAndHolds(numerics));
  }
}

TEST(NumericsTest, AnUnknownNameIsRefusedWithTheValidNames) {
  for (const char* name : {"", "Exact", "fast ", "bf16"}) {
    EXPECT_THAT(ParseNumerics(name), StatusIs(absl::StatusCode::kInvalidArgument,
                                              testing::HasSubstr("want exact or fast")));
  }
}

}  // namespace
}  // namespace systole::emulator
