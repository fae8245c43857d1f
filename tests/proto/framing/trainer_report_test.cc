#include "proto/framing/trainer_report.h"

#include <cstddef>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;
using ::testing::Optional;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMaxInt = std::numeric_limits<int>::max();

TEST(TrainerReportTest, AReportSurvivesConversionToAMessageAndBack) {
  for (size_t limit = 0; limit < kNumFeedLimits; ++limit) {
    const bool decode = static_cast<FeedLimit>(limit) == FeedLimit::kDecode;
    const TrainerReport report = {.waits = 0.25,
                                  .steps_per_second = 12.5,
                                  .limit = static_cast<FeedLimit>(limit),
                                  .output = decode ? 3 : -1};
    v1::TrainerReport message;
    SetReport(report, message);
    EXPECT_EQ(ReportOf(message), report) << limit;
  }
}

TEST(TrainerReportTest, AnEmptyReportIsAnEmptyMessage) {
  v1::TrainerReport message;
  SetReport({}, message);
  EXPECT_EQ(message.ByteSizeLong(), 0u);
  EXPECT_EQ(ReportOf(message), TrainerReport());
}

TEST(TrainerReportTest, WhateverAPeerSendsIsWithinBounds) {
  for (const double waits : {0.0, -0.0, 1.0, -1.0, 1e300, -1e300, 5e-324, kInfinity, -kInfinity}) {
    for (const double rate : {0.0, -1.0, 1e300, kInfinity, -kInfinity, kNan}) {
      for (const int limit : {0, 6, 7, -1, kMaxInt, std::numeric_limits<int>::min()}) {
        for (const int output : {0, 1, -1, kMaxInt, std::numeric_limits<int>::min()}) {
          v1::TrainerReport message;
          message.set_wait_ratio(waits);
          message.set_steps_per_second(rate);
          message.set_limit(static_cast<v1::TrainerReport::Limit>(limit));
          message.set_costliest_output(output);
          v1::TrainerReport received;  // An enum may have any number on the wire.
          ASSERT_TRUE(received.ParseFromString(message.SerializeAsString()));
          const TrainerReport report = ReportOf(received);
          EXPECT_THAT(report.waits, Optional(AllOf(Ge(0.0), Le(1.0))));
          EXPECT_THAT(report.steps_per_second, AllOf(Ge(0.0), Le(kMaxStepsPerSecond)));
          EXPECT_LT(static_cast<size_t>(report.limit), kNumFeedLimits);
          EXPECT_GE(report.output, -1);
        }
      }
    }
  }
}

TEST(TrainerReportTest, AReportWithANanWaitRatioIsTreatedAsEmpty) {
  v1::TrainerReport message;
  message.set_wait_ratio(kNan);
  message.set_steps_per_second(3);
  message.set_limit(v1::TrainerReport::STORAGE);
  EXPECT_EQ(ReportOf(message), TrainerReport());
}

}  // namespace
}  // namespace systole
