#include "client/servers/trace_headers.h"

#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kOne[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kOther[] = "00-11111111111111111111111111111111-2222222222222222-00";

class TraceHeadersTest : public testing::Test {
 protected:
  void SetUp() override { Set(nullptr, nullptr); }
  void TearDown() override { Set(nullptr, nullptr); }
  static void Set(const char* parent, const char* state) {
    SetOne("TRACEPARENT", parent);
    SetOne("TRACESTATE", state);
  }

 private:
  static void SetOne(const char* name, const char* value) {
    if (value == nullptr) {
      unsetenv(name);
    } else {
      setenv(name, value, 1);
    }
  }
};

TEST_F(TraceHeadersTest, WithoutOptionAndVariableThereIsNoTrace) {
  EXPECT_EQ(TraceHeadersOf("").parent, "");
  EXPECT_EQ(TraceHeadersOf(kOne).parent, kOne);
}

TEST_F(TraceHeadersTest, TheOptionOverridesTheEnvironmentVariables) {
  Set(kOther, "a=b");
  EXPECT_EQ(TraceHeadersOf("").parent, kOther);
  EXPECT_EQ(TraceHeadersOf("").state, "a=b");
  EXPECT_EQ(TraceHeadersOf(kOne).parent, kOne);
  EXPECT_EQ(TraceHeadersOf(kOne).state, "");  // The state belongs to kOther's trace.
}

TEST_F(TraceHeadersTest, VariablesThatAreMalformedAreLeftOut) {
  Set("nothing", "a=b");
  EXPECT_EQ(TraceHeadersOf("").parent, "");
  EXPECT_EQ(TraceHeadersOf("").state, "");
  Set(kOne, "a=b\nevil: x");
  EXPECT_EQ(TraceHeadersOf("").parent, kOne);
  EXPECT_EQ(TraceHeadersOf("").state, "");
}

TEST_F(TraceHeadersTest, AnOptionThatIsMalformedIsRefused) {
  EXPECT_THAT(CheckTraceParent(""), IsOk());
  EXPECT_THAT(CheckTraceParent(kOne), IsOk());
  EXPECT_THAT(CheckTraceParent("4bf9\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'4bf9\\n', want a traceparent"), HasSubstr(kOne))));
}

}  // namespace
}  // namespace systole
