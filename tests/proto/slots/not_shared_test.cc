#include "proto/slots/not_shared.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/slots.pb.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

TEST(NotSharedTextTest, EveryReasonHasADistinctText) {
  std::set<std::string> texts;
  for (int reason = v1::NotShared_MIN; reason <= v1::NotShared_MAX; ++reason) {
    ASSERT_TRUE(v1::NotShared_IsValid(reason));
    EXPECT_TRUE(texts.insert(NotSharedText(reason)).second) << reason;
    EXPECT_THAT(NotSharedText(reason), testing::Not(HasSubstr("does not know")));
  }
}

TEST(NotSharedTextTest, AnUnknownReasonIsShownByItsNumber) {
  EXPECT_THAT(NotSharedText(v1::NotShared_MAX + 1),
              HasSubstr("reason 9, which this version does not know"));
  EXPECT_THAT(NotSharedText(-1), HasSubstr("reason -1"));
}

}  // namespace
}  // namespace systole
