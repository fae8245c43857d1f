#include "client/cli/commands/timing_flags.h"

#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using emulator::ArrivalTensor;
using emulator::TimedCores;
using testing::AllOf;
using testing::HasSubstr;

// Stores `texts` in the fields that flags are bound to, as the command line would.
class TextOptions final : public OptionList {
 public:
  explicit TextOptions(std::map<std::string, std::string> texts) : texts_(std::move(texts)) {}
  void Flag(const std::string&, bool*, const std::string&) override {}
  void FlagWithValue(const std::string&, const std::string&, std::string*,
                     const std::string&) override {}
  void Positional(const std::string&, std::string*, const std::string&) override {}
  void PositionalList(const std::string&, std::vector<std::string>*, const std::string&) override {}
  void Required(const std::string&, const std::string&, std::string*, const std::string&) override {
  }
  void Required(const std::string&, const std::string&, int64_t*, const std::string&) override {}
  void Optional(const std::string& name, const std::string&, std::string* field,
                const std::string&) override {
    if (texts_.contains(name)) *field = texts_[name];
  }
  void Optional(const std::string& name, const std::string&, int64_t* field,
                const std::string&) override {
    if (!texts_.contains(name)) return;
    EXPECT_TRUE(absl::SimpleAtoi(texts_[name], field));
  }
  void Optional(const std::string&, const std::string&, uint64_t*, const std::string&) override {}
  void Optional(const std::string&, const std::string&, double*, const std::string&) override {}
  void Optional(const std::string& name, const std::string&, std::optional<int64_t>* field,
                const std::string&) override {
    int64_t value = 0;
    if (!texts_.contains(name)) return;
    EXPECT_TRUE(absl::SimpleAtoi(texts_[name], &value));
    *field = value;
  }
  void Optional(const std::string& name, const std::string&, std::optional<double>* field,
                const std::string&) override {
    double value = 0;
    if (!texts_.contains(name)) return;
    EXPECT_TRUE(absl::SimpleAtod(texts_[name], &value));
    *field = value;
  }
  void Optional(const std::string&, absl::Duration*, const std::string&) override {}
  void Optional(const std::string&, std::optional<absl::Duration>*, const std::string&) override {}

 private:
  std::map<std::string, std::string> texts_;
};

absl::StatusOr<TimedSteps> Load(const std::map<std::string, std::string>& texts) {
  TextOptions options(texts);
  TimingFlags flags;
  flags.Declare(options);
  return flags.Load();
}

// 128 examples of 224 x 224 x 3 bfloat16 and their labels.
const ArrivalTensor kImage = {
    .name = "image", .dtype = DType::kBfloat16, .shape = {128, 224, 224, 3}};
const ArrivalTensor kLabel = {.name = "label", .dtype = DType::kInt64, .shape = {128}};

absl::StatusOr<TimedCores> Cores(const std::map<std::string, std::string>& texts,
                                 int num_cores = 8) {
  const absl::StatusOr<TimedSteps> steps = Load(texts);
  if (!steps.ok()) return steps.status();
  const absl::StatusOr<TimedFeed> feed = steps->FeedFor({kImage, kLabel}, num_cores);
  if (!feed.ok()) return feed.status();
  EXPECT_EQ(feed->program.has_value(), !feed->cores.model.empty());
  return feed->cores;
}

TEST(TimingFlagsTest, AGivenStepTimeNeedsNoChip) {
  const absl::StatusOr<TimedCores> cores =
      Cores({{"--step-time-us", "375"}, {"--queue-depth", "5"}}, /*num_cores=*/3);
  ASSERT_THAT(cores, IsOk());
  EXPECT_EQ(cores->infeed.step_time, absl::Microseconds(375));
  EXPECT_EQ(cores->infeed.transfer_time, absl::ZeroDuration());
  EXPECT_EQ(cores->infeed.num_cores, 3);
  EXPECT_EQ(cores->infeed.queue_depth, 5);
  EXPECT_EQ(cores->per_core_batch, 128);
  EXPECT_EQ(cores->slice_bytes, 128 * 224 * 224 * 3 * 2 + 128 * 8);
}

// A step of ResNet-50 with 128 examples a core takes 272 ms on v2-8 and 144 ms on v3-8, as in the
// compiler's own tests. Padding turns 3 channels into 8, and the one row of labels into 8. The
// batch fills its 128 lanes. Two cores share a link of 16 GB/s.
TEST(TimingFlagsTest, ModelAndSliceGiveTheStepOfTheCompiledProgram) {
  const absl::StatusOr<TimedCores> v2 = Cores({{"--model", "resnet50"}, {"--slice", "v2-8"}});
  ASSERT_THAT(v2, IsOk());
  EXPECT_EQ(v2->model, "resnet50");
  EXPECT_EQ(v2->slice, "v2-8");
  EXPECT_EQ(v2->infeed.cores_per_chip, 2);
  EXPECT_GT(v2->infeed.step_time, absl::Milliseconds(200));
  EXPECT_LT(v2->infeed.step_time, absl::Milliseconds(300));
  EXPECT_GE(v2->padded_slice_bytes, 224 * 224 * 8 * 128 * 2);
  EXPECT_LT(v2->padded_slice_bytes, 224 * 224 * 8 * 128 * 2 + 100'000);
  EXPECT_GT(v2->infeed.transfer_time, absl::Milliseconds(5));
  const absl::StatusOr<TimedCores> v3 =
      Cores({{"--model", "resnet50"}, {"--chip", "v3"}, {"--slice", "v3-8"}});
  ASSERT_THAT(v3, IsOk());
  EXPECT_LT(v3->infeed.step_time, v2->infeed.step_time);
}

TEST(TimingFlagsTest, TheNhwcLayoutIsNotPaddedButNhwcTiledIs) {
  const absl::StatusOr<TimedCores> dense = Cores({{"--step-time-us", "1"}, {"--layout", "nhwc"}});
  ASSERT_THAT(dense, IsOk());
  EXPECT_EQ(dense->padded_slice_bytes, dense->slice_bytes);
  const absl::StatusOr<TimedCores> tiled =
      Cores({{"--step-time-us", "1"}, {"--layout", "nhwc-tiled"}});
  ASSERT_THAT(tiled, IsOk());
  EXPECT_GT(tiled->padded_slice_bytes, 42 * tiled->slice_bytes);
}

TEST(TimingFlagsTest, InvalidTimingOptionsAreRefused) {
  const auto refusal = [](const std::map<std::string, std::string>& texts) {
    return Load(texts).status();
  };
  for (const std::map<std::string, std::string>& texts :
       {std::map<std::string, std::string>{},
        {{"--model", "resnet50"}},
        {{"--slice", "v3-8"}},
        {{"--model", "resnet50"}, {"--step-time-us", "5"}},
        {{"--slice", "v3-8"}, {"--step-time-us", "5"}},
        {{"--chip", "v3"}, {"--step-time-us", "5"}},
        {{"--model", "resnet50"}, {"--slice", "v3-8"}, {"--step-time-us", "5"}}}) {
    EXPECT_THAT(refusal(texts),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("or --step-time-us alone")));
  }
  for (const char* time : {"0", "-5", "3600000001"}) {
    EXPECT_THAT(refusal({{"--step-time-us", time}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want 1 to 3600000000")));
  }
  for (const char* depth : {"0", "65537"}) {
    EXPECT_THAT(refusal({{"--step-time-us", "5"}, {"--queue-depth", depth}}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--queue-depth " + std::string(depth))));
  }
  EXPECT_THAT(refusal({{"--step-time-us", "5"}, {"--layout", "chwn"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("hwcn-tiled")));
  EXPECT_THAT(refusal({{"--model", "resnet49"}, {"--slice", "v3-8"}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("resnet49")));
  EXPECT_THAT(refusal({{"--model", "resnet50"}, {"--slice", "v9-8"}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("v9")));
  EXPECT_THAT(refusal({{"--model", "resnet50"}, {"--slice", "v3-9"}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("v3-9")));
  EXPECT_THAT(Cores({{"--model", "resnet50"}, {"--slice", "v3-8"}}, 4).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("slice v3-8 has 8 cores, the feed 4")));
}

// The clock accepts the largest values that the options accept.
TEST(TimingFlagsTest, TheLargestAllowedValuesAreAccepted) {
  EXPECT_THAT(Cores({{"--step-time-us", "3600000000"}, {"--queue-depth", "65536"}}).status(),
              IsOk());
}

TEST(TimingFlagsTest, AFeedThatTheModelCannotTakeIsRefused) {
  const absl::StatusOr<TimedSteps> steps = Load({{"--model", "resnet50"}, {"--slice", "v3-8"}});
  ASSERT_THAT(steps, IsOk());
  const auto refusal = [&steps](const ArrivalTensor& image) {
    return steps->FeedFor({image, kLabel}, /*num_cores=*/8).status();
  };
  ArrivalTensor small = kImage;
  small.shape = {128, 64, 64, 3};
  EXPECT_THAT(
      refusal(small),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("output 'image' gives examples of bfloat16[64,64,3], but model "
                               "resnet50 takes [224,224,3] of bfloat16, float16, float32 or "
                               "uint8: change"),
                     HasSubstr("--image-output"))));
  ArrivalTensor labels = kImage;
  labels.dtype = DType::kInt64;
  EXPECT_THAT(refusal(labels),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("int64[224,224,3]")));
  ArrivalTensor picture = kImage;
  picture.name = "picture";
  EXPECT_THAT(refusal(picture),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has no output 'image' (it has picture, label); "
                                 "give --image-output the name of the output that "
                                 "model resnet50 takes")));
}

TEST(TimingFlagsTest, TheModelsInputMayBeFlatAndItsBatchInnermost) {
  const absl::StatusOr<TimedSteps> steps =
      Load({{"--model", "resnet50"}, {"--slice", "v3-8"}, {"--image-output", "picture"}});
  ASSERT_THAT(steps, IsOk());
  for (const ArrivalTensor& image :
       {ArrivalTensor{.name = "picture", .dtype = DType::kUint8, .shape = {128, 224 * 224 * 3}},
        ArrivalTensor{.name = "picture",
        .dtype = DType::kUint8,
        .batch_axis = 3,
        .shape = {224, 224, 3, 128}}}) {
    const absl::StatusOr<TimedFeed> feed = steps->FeedFor({kLabel, image}, /*num_cores=*/8);
    ASSERT_THAT(feed, IsOk());
    EXPECT_EQ(feed->program->infeed.dtype, DType::kUint8);
    EXPECT_EQ(feed->program->infeed.useful_bytes, 128 * 224 * 224 * 3);
  }
}

TEST(TimingFlagsTest, ARateGivesTheStepTimeAsItsInverse) {
  const absl::StatusOr<TimedSteps> steps = Load({{"--rate", "40"}});
  ASSERT_THAT(steps, IsOk());
  EXPECT_EQ(steps->step_time, absl::Milliseconds(25));
  for (const char* wrong : {"0", "-1", "nan", "1e9"}) {
    EXPECT_THAT(Load({{"--rate", wrong}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("steps a second")))
        << wrong;
  }
  EXPECT_THAT(Load({{"--rate", "40"}, {"--step-time-us", "25000"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--rate alone")));
}

}  // namespace
}  // namespace systole
