#include "client/cli/progress_bar.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "core/flow/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

int64_t Drawings(const std::string& text) { return std::count(text.begin(), text.end(), '\r'); }

TEST(ProgressBarTest, ShowsLabelPartAndCount) {
  std::ostringstream out;
  ProgressBar bar(out, /*enabled=*/true, "packing", 3600);
  bar.Add(1620);
  EXPECT_THAT(out.str(), EndsWith("packing [=============>                ]  45%  1620/3600"));
}

TEST(ProgressBarTest, WritesNothingWhenDisabled) {
  std::ostringstream out;
  {
    ProgressBar bar(out, /*enabled=*/false, "packing", 2);
    bar.Add(1);
    bar.Add(1, "remark");
  }
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressBarTest, LeavesAnEmptyLineBehind) {
  std::ostringstream out;
  { ProgressBar bar(out, /*enabled=*/true, "packing", 2); }
  EXPECT_THAT(out.str(), EndsWith("\r\x1b[K"));
}

TEST(ProgressBarTest, DrawsOnlyWhenThePercentChange) {
  std::ostringstream out;
  ProgressBar bar(out, /*enabled=*/true, "packing", 1'000'000);
  for (int i = 0; i < 20'000; ++i) bar.Add(1);
  EXPECT_EQ(Drawings(out.str()), 3);  // 0, 1 and 2 per cent.
}

TEST(ProgressBarTest, DrawsANewRemarkAtOnce) {
  std::ostringstream out;
  ProgressBar bar(out, /*enabled=*/true, "training", 1'000'000);
  bar.Add(1, "loss 1.60");
  bar.Add(1, "loss 1.60");
  EXPECT_EQ(Drawings(out.str()), 2);
  EXPECT_THAT(out.str(), EndsWith("1/1000000  loss 1.60"));
}

TEST(ProgressBarTest, StaysAtAHundredPercentWhenThereIsNothingOrTooMuchToDo) {
  std::ostringstream out;
  ProgressBar none(out, /*enabled=*/true, "packing", 0);
  EXPECT_THAT(out.str(), HasSubstr("100%  0/0"));
  ProgressBar few(out, /*enabled=*/true, "packing", 2);
  few.Add(5);
  EXPECT_THAT(out.str(), EndsWith("100%  5/2"));
}

TEST(ProgressBarTest, CountsEveryThread) {
  std::ostringstream out;
  ProgressBar bar(out, /*enabled=*/true, "packing", 1000);
  WorkerPool pool(4);
  ParallelFor(pool, 1000, [&](int64_t) { bar.Add(1); });
  EXPECT_THAT(out.str(), EndsWith("100%  1000/1000"));
}

}  // namespace
}  // namespace systole
