#include "server/rpc/call_metadata.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

constexpr char kParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(CallMetadataTest, TraceParentAndTraceStateAreRead) {
  const std::optional<TraceContext> context =
      TraceContextOf({{"other", "x"}, {"traceparent", kParent}, {"tracestate", "a=b"}});
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(TraceParentOf(*context), kParent);
  EXPECT_EQ(context->state, "a=b");
}

TEST(CallMetadataTest, AMissingInvalidOrRepeatedTraceParentGivesNoTrace) {
  EXPECT_EQ(TraceContextOf({}), std::nullopt);
  EXPECT_EQ(TraceContextOf({{"tracestate", "a=b"}}), std::nullopt);
  EXPECT_EQ(TraceContextOf({{"traceparent", ""}}), std::nullopt);
  EXPECT_EQ(TraceContextOf({{"traceparent", kParent}, {"traceparent", kParent}}), std::nullopt);
}

TEST(CallMetadataTest, TraceStatesAreJoinedAndInvalidTraceStatesAreDropped) {
  EXPECT_EQ(TraceContextOf({{"traceparent", kParent}, {"tracestate", "a=b"}, {"tracestate", "c=d"}})
                ->state,
            "a=b,c=d");
  const std::string large = absl::StrCat("a=", std::string(600, 'x'));
  for (const char* state : {"a", "a=b,a=c", large.c_str(), "a=b\n"}) {
    const auto context = TraceContextOf({{"traceparent", kParent}, {"tracestate", state}});
    ASSERT_TRUE(context.has_value());
    EXPECT_EQ(context->state, "");
  }
}

}  // namespace
}  // namespace systole
