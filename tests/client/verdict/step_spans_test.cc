#include "client/verdict/step_spans.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

absl::Duration Ms(int64_t milliseconds) { return absl::Milliseconds(milliseconds); }

StageTimes Stages(int64_t read, int64_t make, int64_t wait, int costliest = -1,
                  int operation = -1) {
  return {.read = Ms(read),
          .make = Ms(make),
          .wait = Ms(wait),
          .costliest = costliest,
          .operation = operation};
}

// "storage 0-10, decode 10-30 (output 2, operation 7)", in milliseconds.
std::string Text(const StepSpans& spans) {
  constexpr const char* kNames[] = {"storage", "decode", "wire", "client", "unknown"};
  const auto time = [](absl::Duration at) {
    return at == -absl::InfiniteDuration() ? "before" : absl::StrCat(absl::ToInt64Milliseconds(at));
  };
  return absl::StrJoin(spans.spans(), ", ", [&](std::string* out, const StageSpan& span) {
    absl::StrAppend(out, kNames[static_cast<int>(span.cause)], " ", time(span.begin), "-",
                    time(span.end));
    if (span.output >= 0) {
      absl::StrAppend(out, " (output ", span.output, ", operation ", span.operation, ")");
    }
  });
}

TEST(StepSpansTest, StageTimesAreCountedBackFromTheArrivalOfTheFirstChunk) {
  StepSpans spans;
  spans.BeginSlice(Stages(10, 20, 5, 2, 7), Ms(100), Ms(103));
  spans.AddChunk(Ms(110), Ms(112));
  spans.AddChunk(Ms(112), Ms(115));
  spans.Complete();
  // Of the 15 ms after the arrival, 8 were spent in this process.
  EXPECT_EQ(Text(spans),
            "storage 65-75, decode 75-95 (output 2, operation 7), wire 95-107, client 107-115");
  EXPECT_EQ(spans.complete_at(), Ms(115));
}

TEST(StepSpansTest, WhereSlicesOverlapTheStagesOfTheLaterSliceCount) {
  StepSpans spans;
  spans.BeginSlice(Stages(0, 50, 0), Ms(100), Ms(101));
  // This slice was made partly while the first slice was made, and finished later.
  spans.BeginSlice(Stages(40, 60, 0), Ms(180), Ms(181));
  spans.Complete();
  EXPECT_EQ(Text(spans), "decode 50-80, storage 80-120, decode 120-180, client 180-181");
}

TEST(StepSpansTest, TheStagesOfASliceThatWaitedForThePreviousSliceDoNotCount) {
  StepSpans spans;
  spans.BeginSlice(Stages(0, 10, 0), Ms(100), Ms(150));  // This process is slow.
  spans.BeginSlice(Stages(0, 30, 60), Ms(152), Ms(160));
  spans.Complete();
  EXPECT_EQ(Text(spans), "decode 90-100, client 100-150, wire 150-152, client 152-160");
}

TEST(StepSpansTest, NothingIsKnownOfTheTimeBeforeASliceWithoutStages) {
  StepSpans spans;
  spans.BeginSlice(std::nullopt, Ms(100), Ms(101));
  spans.AddChunk(Ms(105), Ms(106));
  spans.BeginSlice(std::nullopt, Ms(120), Ms(121));
  spans.Complete();
  EXPECT_EQ(Text(spans),
            "unknown before-100, wire 100-104, client 104-106, unknown 106-120, client 120-121");
}

TEST(StepSpansTest, SlicesThatComeOutOfOrderCountUpToTheLatestArrival) {
  StepSpans spans;
  spans.BeginSlice(Stages(0, 50, 0), Ms(100), Ms(100));
  spans.BeginSlice(Stages(0, 30, 0), Ms(80), Ms(80));
  spans.Complete();
  EXPECT_EQ(Text(spans), "decode 50-100");
  EXPECT_EQ(spans.complete_at(), Ms(100));
}

TEST(StepSpansTest, AChunkThatCouldHaveBeenHandledEarlierWasHeldUpByThisProcess) {
  StepSpans spans;
  spans.BeginSlice(Stages(10, 20, 5), Ms(100), Ms(143));
  spans.AddChunk(Ms(150), Ms(170));
  spans.AddChunk(Ms(160), Ms(180));  // It came while this process handled the previous chunk.
  spans.Complete();
  EXPECT_EQ(Text(spans), "storage 65-75, decode 75-95, wire 95-107, client 107-180");
}

TEST(StepSpansTest, TheSpansOfALateCopyCountUpToTheFirstSpanOfTheStep) {
  StepSpans late;
  late.BeginSlice(Stages(300, 0, 0), Ms(400), Ms(401));
  late.BeginSlice(Stages(99, 0, 0), Ms(500), Ms(501));
  StepSpans spans;
  spans.BeginSlice(Stages(0, 10, 0), Ms(460), Ms(461));
  spans.Complete();
  spans.AddBefore(late);
  EXPECT_EQ(Text(spans),
            "storage 100-400, client 400-401, storage 401-450, decode 450-460, client 460-461");
  EXPECT_EQ(spans.complete_at(), Ms(461));
  StepSpans later;
  later.BeginSlice(Stages(10, 0, 0), Ms(470), Ms(471));
  spans.AddBefore(later);
  spans.AddBefore(StepSpans());
  EXPECT_EQ(spans.spans().size(), 5u);
}

TEST(StepSpansTest, AdjacentEqualSpansOfManySlicesAreMerged) {
  StepSpans spans;
  for (int64_t core = 1; core <= 1000; ++core) {
    spans.BeginSlice(Stages(0, 10, 0), Ms(10 * core), Ms(10 * core));
  }
  spans.Complete();
  EXPECT_EQ(Text(spans), "decode 0-10000");
}

TEST(StepSpansTest, SlicesWhoseCostliestOperationsDifferAreKeptApart) {
  StepSpans spans;
  for (int operation = 0; operation < 2; ++operation) {
    for (int core = 1; core <= 2; ++core) {
      const absl::Duration arrived = Ms(10 * (2 * operation + core));
      spans.BeginSlice(Stages(0, 10, 0, 1, operation), arrived, arrived);
    }
  }
  spans.Complete();
  EXPECT_EQ(Text(spans),
            "decode 0-20 (output 1, operation 0), decode 20-40 (output 1, operation 1)");
}

TEST(StepSpansTest, AStepWithoutChunksHasNoSpans) {
  StepSpans spans;
  spans.Complete();
  EXPECT_TRUE(spans.spans().empty());
  EXPECT_EQ(spans.complete_at(), -absl::InfiniteDuration());
}

}  // namespace
}  // namespace systole
