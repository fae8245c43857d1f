#include "core/trace/trace_context.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

constexpr char kGood[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContextTest, ATraceParentIsReadAndWrittenAsItWas) {
  const std::optional<TraceContext> context = ParseTraceParent(kGood);
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(HexOf(context->trace), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(HexOf(context->span), "00f067aa0ba902b7");
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(TraceParentOf(*context), kGood);
  EXPECT_FALSE(
      ParseTraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")->sampled);
}

TEST(TraceContextTest, OnlyTheSampledFlagIsKept) {
  const std::string head = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-";
  EXPECT_EQ(TraceParentOf(*ParseTraceParent(absl::StrCat(head, "ff"))), absl::StrCat(head, "01"));
  EXPECT_EQ(TraceParentOf(*ParseTraceParent(absl::StrCat(head, "02"))), absl::StrCat(head, "00"));
}

TEST(TraceContextTest, InvalidTraceParentsAreRefused) {
  for (const char* text : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
                           " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00F067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0A",
                           "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
                           "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}) {
    EXPECT_EQ(ParseTraceParent(text), std::nullopt) << text;
  }
}

TEST(TraceContextTest, OfALaterVersionOnlyTheFieldsOfVersion00AreRead) {
  const std::optional<TraceContext> good = ParseTraceParent(kGood);
  const std::string later = absl::StrCat("cc", absl::string_view(kGood).substr(2));
  EXPECT_EQ(ParseTraceParent(later), good);
  EXPECT_EQ(ParseTraceParent(absl::StrCat(later, "-what-comes")), good);
  EXPECT_EQ(ParseTraceParent(absl::StrCat(later, ".what-comes")), std::nullopt);
}

TEST(TraceContextTest, ATraceStateNeedsValidMembersWithDistinctKeys) {
  for (const char* text : {"a=b", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "1a-_*/@x=!~ z",
                           "a=1 , \tb=2", "a=1,,b=2,", "a= 1"}) {
    EXPECT_TRUE(IsTraceState(text)) << text;
  }
  for (const char* text : {"", ",", "a", "=b", "a=", "A=b", "a=b=c", "a=b,a=c", "_a=b", "a b=c",
                           "a=\xc3\xa9", "a=b\n", "a=b\r\nx: y"}) {
    EXPECT_FALSE(IsTraceState(text)) << text;
  }
}

TEST(TraceContextTest, TraceStateValuesMembersAndBytesAreLimited) {
  EXPECT_TRUE(IsTraceState(absl::StrCat("a=", std::string(256, 'x'))));
  EXPECT_FALSE(IsTraceState(absl::StrCat("a=", std::string(257, 'x'))));
  std::string members = "k0=1";
  for (int i = 1; i < 32; ++i) absl::StrAppend(&members, ",k", i, "=1");
  EXPECT_TRUE(IsTraceState(members));
  EXPECT_FALSE(IsTraceState(absl::StrCat(members, ",k32=1")));
  const std::string long_one =
      absl::StrCat("a=", std::string(250, 'x'), ",b=", std::string(256, 'x'));
  ASSERT_EQ(long_one.size(), 511u);
  EXPECT_TRUE(IsTraceState(long_one));
  EXPECT_FALSE(IsTraceState(absl::StrCat(long_one, ", ")));
}

}  // namespace
}  // namespace systole
