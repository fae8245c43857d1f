// Compares the operations that feeds run with the references, on every instruction set.
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/numeric/simd_target.h"
#include "core/operations/program.h"
#include "core/random/counter_rng.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr ExampleKey kExample = {.seed = 5, .epoch = 1, .record = 3};

absl::StatusOr<Program> Compile(const std::string& operation, const ValueType& input) {
  v1::Output output;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString("transforms { " + operation + " }", &output))
      << operation;
  return Program::Create(output.transforms(), input, input.shape);
}

// Returns the bits of the values. All NaNs have the same bits here, so they are equal.
std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float x : values) bits.push_back(std::isnan(x) ? ~0u : std::bit_cast<uint32_t>(x));
  return bits;
}

TEST(FastOperationsTest, KernelsGiveTheReferencesBitsOnEverySimdTarget) {
  // A kernel takes several pixels at a time. The images have more pixels than a kernel takes at a
  // time, and their number of pixels is odd. Special numbers come first, then random ones.
  const float special[] = {0,      -0.0f,    1,   0.5f,      -1,   1e-38f, 1e-40f, 3e38f,
                           -3e38f, INFINITY, NAN, -INFINITY, 0.3f, 255,    1e-7f,  2};
  CounterRng rng(1, 2, 3, 4);
  Value floats = Value::Create(ElementType::kFloat32, {101, 59, 3});
  for (size_t i = 0; i < floats.floats.size(); ++i) {
    floats.floats[i] = i < 9000 ? special[rng.NextU32() % 16] : rng.UniformFloat();
  }
  Value uint8s = Value::Create(ElementType::kUint8, {101, 59, 3});
  for (size_t i = 0; i < uint8s.uint8s.size(); ++i) {
    // In the first half the channels are often equal.
    uint8s.uint8s[i] = static_cast<uint8_t>(rng.NextU32() & (i < 9000 ? 0xc0 : 0xff));
  }
  Value usual = floats;  // Without special numbers, so that sums are finite.
  for (float& x : usual.floats) x = rng.UniformFloat() * 300 - 20;
  for (const char* operation : {"brightness { delta_max: 0.3 }",
                                "contrast { factor_max: 2 }",
                                "gamma { gamma_max: 2 }",
                                "grayscale {}",
                                "grayscale { channels: 3 }",
                                "per_image_standardization {}",
                                "clip_by_value { min: 0 max: 1 }",
                                "normalize { mean: [1, 2, 3] stddev: 0.7 }",
                                "normalize { scale: 0.3 }",
                                "round_to_uint8 {}",
                                "cast { dtype: UINT8 }",
                                "cast { dtype: UINT8 scale: true }",
                                "cast { dtype: FLOAT32 }",
                                "cast { dtype: FLOAT32 scale: true }",
                                "flip_left_right {}",
                                "hue { delta_min: 1 delta_max: 1 }",
                                "hue { delta_min: -1 delta_max: -1 }",
                                "hue { delta_min: -0.3 delta_max: -0.3 }",
                                "hue { delta_min: -1 delta_max: 1 }",
                                "saturation { factor_min: 1 factor_max: 1 }",
                                "saturation { factor_max: 2 }",
                                "saturation { factor_min: 1e9 factor_max: 1e9 }"}) {
    for (const Value& image : {floats, usual, uint8s}) {
      const auto program = Compile(operation, image.type);
      ASSERT_THAT(program, IsOk());
      const auto want = program->Interpret(image, kExample);
      ASSERT_THAT(want, IsOk());
      for (const std::string& target : SupportedSimdTargets()) {
        ASSERT_THAT(ForceSimdTarget(target), IsOk());
        const auto got = program->Run(image, kExample, 0, 1);
        ASSERT_THAT(got, IsOk());
        EXPECT_EQ(BitsOf(got->floats), BitsOf(want->floats)) << operation << " " << target;
        EXPECT_EQ(got->uint8s, want->uint8s) << operation << " " << target;
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

}  // namespace
}  // namespace systole
