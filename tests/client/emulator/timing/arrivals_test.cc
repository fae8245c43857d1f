#include "client/emulator/timing/arrivals.h"

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::HasSubstr;

Arrivals ThreeStepsOfTwoCores() {
  return {.tensors = {{"image", DType::kBfloat16, 3, {24, 24, 3, 16}},
                      {"label", DType::kInt64, 0, {16}}},
          .first_step = 7,
          .num_cores = 2,
          .ns = {0, 5, 100, 100, 100, 250}};
}

TEST(CheckArrivalsTest, AcceptsAValidOrEmptyRecording) {
  EXPECT_THAT(CheckArrivals(ThreeStepsOfTwoCores()), IsOk());
  Arrivals empty = ThreeStepsOfTwoCores();
  empty.ns.clear();
  EXPECT_THAT(CheckArrivals(empty), IsOk());
}

TEST(CheckArrivalsTest, InvalidFieldsAreRefusedByName) {
  const auto refused = [](const std::string& message, const std::function<void(Arrivals&)>& spoil) {
    Arrivals arrivals = ThreeStepsOfTwoCores();
    spoil(arrivals);
    EXPECT_THAT(CheckArrivals(arrivals),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused("a text of the feed's origin has 65537 bytes",
          [](auto& a) { a.origin.servers = std::string(65537, 'a'); });
  refused("0 tensors, want 1 to 65", [](auto& a) { a.tensors.clear(); });
  refused("a name of 0 bytes", [](auto& a) { a.tensors[0].name.clear(); });
  refused("a name of 129 bytes", [](auto& a) { a.tensors[0].name = std::string(129, 'a'); });
  refused("'label'", [](auto& a) { a.tensors[0].name = "label"; });
  refused("tensor '\\033[2J': 0 dimensions", [](auto& a) {
    a.tensors[0].name = "\x1b[2J";
    a.tensors[0].shape.clear();
  });
  refused("9 dimensions", [](auto& a) { a.tensors[0].shape.assign(9, 1); });
  refused("batch_axis 4", [](auto& a) { a.tensors[0].batch_axis = 4; });
  refused("batch_axis -1", [](auto& a) { a.tensors[0].batch_axis = -1; });
  refused("a dimension of 0", [](auto& a) { a.tensors[0].shape[0] = 0; });
  refused("at most 1099511627776 bytes", [](auto& a) { a.tensors[0].shape[0] = int64_t{1} << 40; });
  refused("holds 15 examples", [](auto& a) { a.tensors[1].shape[0] = 15; });
  refused("first_step is -7", [](auto& a) { a.first_step = -7; });
  refused("num_cores is 0", [](auto& a) { a.num_cores = 0; });
  refused("num_cores is 65537", [](auto& a) { a.num_cores = 65537; });
  refused("6 times, want one for each core and step", [](auto& a) { a.num_cores = 4; });
  refused("step 1, core 1: ns is 4, want 5", [](auto& a) { a.ns[3] = 4; });
  refused("step 0, core 0: ns is -1", [](auto& a) { a.ns[0] = -1; });
  refused("step 2, core 1: ns is 200000000000000000",
          [](auto& a) { a.ns[5] = 200'000'000'000'000'000; });
}

TEST(CheckArrivalsTest, ExampleShapeIsTheTensorShapeWithoutTheBatchAxis) {
  EXPECT_THAT(ThreeStepsOfTwoCores().tensors[0].example(), testing::ElementsAre(24, 24, 3));
  EXPECT_EQ(ThreeStepsOfTwoCores().per_core_batch(), 16);
}

}  // namespace
}  // namespace systole::emulator
