#include "client/emulator/timing/arrivals.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kText[] =
    "systole-arrivals 1\n"
    "recorded drain\n"
    "tensor image bfloat16 3 24 24 3 16\n"
    "tensor label int64 0 16\n"
    "first_step 7\n"
    "cores 2\n"
    "steps 3\n"
    "0 5\n"
    "100 100\n"
    "100 250\n"
    "end\n";

TEST(ArrivalsTest, ReadsWhatItWrites) {
  const absl::StatusOr<Arrivals> arrivals = ParseArrivals(kText, "a.txt");
  ASSERT_THAT(arrivals, IsOk());
  EXPECT_EQ(arrivals->recorded_by, RecordedBy::kDrain);
  EXPECT_EQ(arrivals->first_step, 7);
  EXPECT_EQ(arrivals->num_cores, 2);
  EXPECT_EQ(arrivals->steps(), 3);
  EXPECT_EQ(arrivals->per_core_batch(), 16);
  EXPECT_THAT(arrivals->tensors[0].shape, ElementsAre(24, 24, 3, 16));
  EXPECT_THAT(arrivals->ns, ElementsAre(0, 5, 100, 100, 100, 250));
  EXPECT_EQ(ArrivalsText(*arrivals), kText);
  Arrivals paced = *arrivals;
  paced.recorded_by = RecordedBy::kPaced;
  paced.ns.clear();
  EXPECT_THAT(ParseArrivals(ArrivalsText(paced), "b"), IsOkAndHolds(paced));
}

// The text with one part replaced is refused, naming the line and what was wanted.
TEST(ArrivalsTest, WhateverIsNotTheFormatIsRefusedByLine) {
  const struct {
    const char* from;
    const char* to;
    const char* message;
  } kCases[] = {
      {"arrivals 1", "arrivals 2", "x:1: 'systole-arrivals 2', want 'systole-arrivals 1'"},
      {"drain", "soup", "x:2: 'recorded soup', want 'recorded drain' or 'recorded paced'"},
      {"bfloat16", "bfloat17", "x:3: "},
      {"tensor image", "tensor label", "x:4: 'tensor label int64 0 16', want "},
      {"tensor image", "tensor im\x1b[2J", "x:3: 'tensor im\\033[2J "},
      {"tensor image ", "tensor ", "x:3: "},
      {"tensor image ", "tensor  ", "x:3: "},
      {"tensor image bfloat16 3", "tensor image bfloat16 4", "x:3: "},
      {"24 24 3 16", "24 24 0 16", "x:3: "},
      {"24 24 3 16", "24  24 3 16", "x:3: "},
      {"24 24 3 16", "24 24 3 1099511627776", "x:3: "},
      {"24 24 3 16", "1 1 1 1 1 1 1 1 16", "x:3: "},
      {"int64 0 16", "int64 0 15", "x:4: 'tensor label int64 0 15', want "},
      {"tensor label int64", "tensr label int64",
       "x:4: 'tensr label int64 0 16', want 'first_step N'"},
      {"first_step 7", "first_step -7", "x:5: "},
      {"first_step 7", "first_step 99999999999999999999", "x:5: "},
      {"cores 2", "cores 0", "x:6: 'cores 0', want 'cores N', N from 1 to 65536"},
      {"cores 2", "cores 65537", "x:6: "},
      {"cores 2", "cores 3", "x:8: '0 5', want 3 numbers"},
      {"cores 2", "cores 1", "x:8: '0 5', want 1 numbers"},
      {"steps 3", "steps 4", "x:11: 'end', want 2 numbers"},
      {"steps 3", "steps 2", "x:10: '100 250', want 'end' after 2 steps"},
      {"steps 3", "steps 1000000000000", "x:7: "},
      {"steps 3", "steps 7", "x:7: "},  // 24 bytes follow, a step takes 4 at least.
      {"100 100\n", "100 4\n", "x:9: '100 4', want core 1's time at least 5, its step before"},
      {"100 100\n", "100 +100\n", "x:9: "},
      {"100 100\n", "100 100 \n", "x:9: "},
      {"100 100\n", "100 0x64\n", "x:9: "},
      {"0 5", "0 200000000000000000", "x:8: "},
      {"end\n", "end", "x:11: the file ends here, want 'end'; it was cut short"},
      {"end\n", "end\n\n", "x:12: 1 bytes after 'end', want none"},
  };
  for (const auto& test : kCases) {
    const std::string text = absl::StrReplaceAll(kText, {{test.from, test.to}});
    ASSERT_NE(text, kText) << test.from;
    EXPECT_THAT(ParseArrivals(text, "x").status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.message)))
        << test.from << " -> " << test.to;
  }
}

TEST(ArrivalsTest, ALongLineOrNameIsRefusedWhole) {
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"image", std::string(129, 'a')},
        {"tensor image bfloat16 3",
         absl::StrCat("tensor image bfloat16 ", std::string(1200, '0'), "3")}}) {
    EXPECT_THAT(ParseArrivals(absl::StrReplaceAll(kText, {{from, to}}), "x").status(),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("x:3: ")));
  }
  EXPECT_THAT(
      ParseArrivals(absl::StrReplaceAll(kText, {{"image", std::string(128, 'a')}}), "x").status(),
      IsOk());
}

TEST(ArrivalsTest, EveryCutIsRefused) {
  const std::string text = kText;
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_THAT(ParseArrivals(text.substr(0, length), "x").status(),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("x:")))
        << length;
  }
}

TEST(ArrivalsTest, AMessageDoesNotRepeatAPageOfForeignBytes) {
  const std::string text = absl::StrCat(std::string(10000, '\xff'), "\n");
  const absl::Status status = ParseArrivals(text, "x").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\\377\\377")));
  EXPECT_LT(status.message().size(), 400u);
}

}  // namespace
}  // namespace systole::emulator
