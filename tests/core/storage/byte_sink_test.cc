#include "core/storage/byte_sink.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

TEST(StringSinkTest, AppendsInOrderAfterTheExistingText) {
  std::string out = "a";
  StringSink sink(&out);
  EXPECT_THAT(sink.Append("bc"), IsOk());
  EXPECT_THAT(sink.Append(""), IsOk());
  EXPECT_THAT(sink.Append(absl::string_view("\0d", 2)), IsOk());
  EXPECT_THAT(sink.Close(), IsOk());
  EXPECT_EQ(out, std::string("abc\0d", 5));
}

TEST(StringSinkTest, CloseTwiceIsFailedPrecondition) {
  std::string out;
  StringSink sink(&out);
  EXPECT_THAT(sink.Close(), IsOk());
  EXPECT_THAT(sink.Close(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     testing::HasSubstr("closed already")));
  EXPECT_THAT(sink.Append("a"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         testing::HasSubstr("closed already")));
}

}  // namespace
}  // namespace systole
