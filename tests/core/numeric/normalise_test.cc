#include "core/numeric/normalise.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr PixelType kTypes[] = {PixelType::kUint8, PixelType::kFloat32, PixelType::kBfloat16,
                                PixelType::kFloat16};

// Normalises as the definition says, one value at a time.
std::vector<uint8_t> Reference(const std::vector<float>& in, int channels,
                               const std::vector<float>& scale, const std::vector<float>& bias,
                               PixelType type) {
  std::vector<uint8_t> out(in.size() * PixelTypeBytes(type));
  for (size_t i = 0; i < in.size(); ++i) {
    const volatile float product = in[i] * scale[i % channels % scale.size()];
    const float value = product + bias[i % channels % bias.size()];
    const uint8_t u8 = RoundToUint8(value);
    const uint16_t half = type == PixelType::kFloat16 ? RoundToFloat16(value) : RoundToBf16(value);
    const void* from = type == PixelType::kUint8     ? static_cast<const void*>(&u8)
                       : type == PixelType::kFloat32 ? static_cast<const void*>(&value)
                                                     : static_cast<const void*>(&half);
    std::memcpy(out.data() + i * PixelTypeBytes(type), from, PixelTypeBytes(type));
  }
  return out;
}

TEST(NormaliseTest, RoundToUint8RoundsHalfToEvenAndSaturates) {
  EXPECT_EQ(RoundToUint8(0.5f), 0);
  EXPECT_EQ(RoundToUint8(1.5f), 2);
  EXPECT_EQ(RoundToUint8(2.5f), 2);
  EXPECT_EQ(RoundToUint8(0.50001f), 1);
  EXPECT_EQ(RoundToUint8(254.5f), 254);
  EXPECT_EQ(RoundToUint8(254.51f), 255);
  EXPECT_EQ(RoundToUint8(1e30f), 255);
  EXPECT_EQ(RoundToUint8(-1e30f), 0);
  EXPECT_EQ(RoundToUint8(-0.0f), 0);
  EXPECT_EQ(RoundToUint8(kNan), 0);
  EXPECT_EQ(RoundToUint8(std::numeric_limits<float>::infinity()), 255);
}

TEST(NormaliseTest, ScalesAndBiasesEachChannel) {
  const std::vector<uint8_t> in = {0, 1, 2, 10, 20, 30};
  const std::vector<float> scale = {1.0f, 0.5f, 2.0f};
  const std::vector<float> bias = {0.0f, 1.0f, -5.0f};
  std::vector<float> out(6);
  ASSERT_THAT(
      NormaliseUint8(in, 3, {.scale = scale, .bias = bias}, PixelType::kFloat32,
                     absl::MakeSpan(reinterpret_cast<uint8_t*>(out.data()), 6 * sizeof(float))),
      IsOk());
  EXPECT_THAT(out, ElementsAre(0.0f, 1.5f, -1.0f, 10.0f, 11.0f, 55.0f));
}

TEST(NormaliseTest, UnitScaleMultipliesLikeTensorFlowInsteadOfDividing) {
  std::vector<uint8_t> in(256);
  for (int i = 0; i < 256; ++i) in[i] = static_cast<uint8_t>(i);
  const std::vector<float> scale = {kUint8ToUnit};
  std::vector<uint8_t> out(256 * sizeof(float));
  ASSERT_THAT(NormaliseUint8(in, 1, {.scale = scale}, PixelType::kFloat32, absl::MakeSpan(out)),
              IsOk());
  int differs_from_division = 0;
  for (int i = 0; i < 256; ++i) {
    float value;
    std::memcpy(&value, out.data() + i * sizeof(float), sizeof(float));
    EXPECT_EQ(value, static_cast<float>(i) * (1.0f / 255.0f));
    differs_from_division += value != static_cast<float>(i) / 255.0f;
  }
  EXPECT_GT(differs_from_division, 0);  // So this test would notice a division.
}

TEST(NormaliseTest, EveryTargetTypeChannelCountAndLengthEqualsTheDefinition) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (int channels : {1, 2, 3, 4, 16}) {
      std::vector<float> scale, bias;
      for (int c = 0; c < channels; ++c) {
        scale.push_back(0.013f * static_cast<float>(c + 1));
        bias.push_back(1.7f - 0.31f * static_cast<float>(c));
      }
      for (int pixels : {0, 1, 5, 16, 49}) {
        std::vector<uint8_t> bytes;
        std::vector<float> floats;
        std::vector<float> bytes_as_floats;
        for (int i = 0; i < pixels * channels; ++i) {
          bytes.push_back(static_cast<uint8_t>(i * 37));
          bytes_as_floats.push_back(bytes.back());
          floats.push_back(static_cast<float>(i) * 123.456f - 300.0f);
        }
        if (!floats.empty()) floats[0] = kNan;
        for (PixelType type : kTypes) {
          for (const bool one_bias : {false, true}) {
            const std::vector<float> b = one_bias ? std::vector<float>{0.25f} : bias;
            std::vector<uint8_t> out(bytes.size() * PixelTypeBytes(type));
            ASSERT_THAT(NormaliseUint8(bytes, channels, {.scale = scale, .bias = b}, type,
                                       absl::MakeSpan(out)),
                        IsOk());
            EXPECT_EQ(out, Reference(bytes_as_floats, channels, scale, b, type));
            ASSERT_THAT(NormaliseFloat(floats, channels, {.scale = scale, .bias = b}, type,
                                       absl::MakeSpan(out)),
                        IsOk());
            EXPECT_EQ(out, Reference(floats, channels, scale, b, type));
          }
        }
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

// Normalises all values of `in`, in pieces of `cut` values.
std::vector<uint8_t> InPieces(const TensorNormaliser& normaliser, const std::vector<uint8_t>& in,
                              size_t cut, PixelType type) {
  std::vector<uint8_t> out(in.size() * PixelTypeBytes(type));
  for (size_t first = 0; first < in.size(); first += cut) {
    normaliser.Apply(static_cast<int64_t>(first), absl::MakeConstSpan(in).subspan(first, cut),
                     out.data() + first * PixelTypeBytes(type));
  }
  return out;
}

TEST(TensorNormaliserTest, PiecesOfEveryLayoutEqualTheDefinitionOnEveryTarget) {
  const std::vector<float> scale = {0.013f, 0.37f, 1.9f};
  const std::vector<float> bias = {1.7f, -0.31f, 0.0f};
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (const int channels : {1, 3}) {
      // `inner` is the length of a run of one channel: 1 (interleaved channels), short runs, the
      // runs just within and just beyond kMaxPatternValues for 3 channels, and a long run.
      for (const int64_t inner : {1, 2, 5, 16, 682, 683, 3000}) {
        std::vector<uint8_t> in;
        std::vector<float> as_floats;  // Interleaved, for the definition.
        std::vector<size_t> place;     // place[i] is the index of as_floats[i] in `in`.
        for (int64_t block = 0; block < 2; ++block) {
          for (int64_t i = 0; i < inner; ++i) {
            for (int64_t c = 0; c < channels; ++c) {
              place.push_back(static_cast<size_t>((block * channels + c) * inner + i));
            }
          }
        }
        for (size_t i = 0; i < place.size(); ++i) in.push_back(static_cast<uint8_t>(i * 37));
        for (const size_t at : place) as_floats.push_back(in[at]);
        for (PixelType type : kTypes) {
          const size_t bytes = PixelTypeBytes(type);
          const auto first = [channels](const std::vector<float>& factor) {
            return std::vector<float>(factor.begin(), factor.begin() + channels);
          };
          const std::vector<float> s = first(scale), b = first(bias);
          const std::vector<uint8_t> interleaved = Reference(as_floats, channels, s, b, type);
          std::vector<uint8_t> want(interleaved.size());
          for (size_t i = 0; i < place.size(); ++i) {
            std::memcpy(want.data() + place[i] * bytes, interleaved.data() + i * bytes, bytes);
          }
          const auto normaliser =
              TensorNormaliser::Create(channels, inner, {.scale = s, .bias = b}, type);
          ASSERT_THAT(normaliser, IsOk());
          for (const size_t cut : {size_t{1}, size_t{7}, size_t{64}, in.size()}) {
            ASSERT_EQ(InPieces(*normaliser, in, cut, type), want) << inner << " cut at " << cut;
          }
        }
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(TensorNormaliserTest, OneFactorServesEveryChannel) {
  const std::vector<uint8_t> in = {0, 1, 2, 10, 20, 30};
  const std::vector<float> scale = {2.0f};
  const std::vector<float> bias = {1.0f, 2.0f, 3.0f};
  const auto scaled = TensorNormaliser::Create(3, 1, {.scale = scale}, PixelType::kUint8);
  ASSERT_THAT(scaled, IsOk());
  EXPECT_THAT(InPieces(*scaled, in, 4, PixelType::kUint8), ElementsAre(0, 2, 4, 20, 40, 60));
  const auto both =
      TensorNormaliser::Create(3, 1, {.scale = scale, .bias = bias}, PixelType::kUint8);
  ASSERT_THAT(both, IsOk());
  EXPECT_THAT(InPieces(*both, in, 4, PixelType::kUint8), ElementsAre(1, 4, 7, 21, 42, 63));
}

TEST(TensorNormaliserTest, BadShapesAreNamed) {
  const std::vector<float> two = {1.0f, 2.0f};
  EXPECT_THAT(TensorNormaliser::Create(3, 0, {}, PixelType::kFloat32),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inner is 0")));
  EXPECT_THAT(TensorNormaliser::Create(17, 1, {}, PixelType::kFloat32),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("channels is 17")));
  EXPECT_THAT(TensorNormaliser::Create(3, 1, {.scale = two}, PixelType::kFloat32),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("scale has 2 entries")));
}

TEST(NormaliseTest, FactorsAreRoundedOnceFromDoubles) {
  const std::vector<double> mean = {0.485, 0.456, 0.406};
  const std::vector<double> stddev = {0.229, 0.224, 0.225};
  const auto factors = FactorsOf(1 / 255.0, mean, stddev);
  ASSERT_THAT(factors, IsOk());
  EXPECT_THAT(factors->scale, ElementsAre(static_cast<float>(1 / 255.0 / 0.229),
                                          static_cast<float>(1 / 255.0 / 0.224),
                                          static_cast<float>(1 / 255.0 / 0.225)));
  EXPECT_THAT(factors->bias,
              ElementsAre(static_cast<float>(-0.485 / 0.229), static_cast<float>(-0.456 / 0.224),
                          static_cast<float>(-0.406 / 0.225)));
}

TEST(NormaliseTest, NormaliseFactorsImplyTheNumberOfChannels) {
  const NormaliseFactors factors = {.scale = {2.0f, 0.5f, -1.0f}, .bias = {1.0f, 0.0f, 255.0f}};
  const std::vector<uint8_t> pixels = {1, 2, 3, 40, 50, 60};
  const std::vector<float> floats(pixels.begin(), pixels.end());
  for (const PixelType type : kTypes) {
    const std::vector<uint8_t> want = Reference(floats, 3, factors.scale, factors.bias, type);
    std::vector<uint8_t> got(want.size());
    EXPECT_THAT(NormaliseUint8(pixels, factors, type, absl::MakeSpan(got)), IsOk());
    EXPECT_EQ(got, want);
    got.assign(want.size(), 0);
    EXPECT_THAT(NormaliseFloat(floats, factors, type, absl::MakeSpan(got)), IsOk());
    EXPECT_EQ(got, want);
  }
}

TEST(NormaliseTest, MissingFactorsChangeNothingAndOneStddevServesAllChannels) {
  const auto nothing = FactorsOf(1, {}, {});
  ASSERT_THAT(nothing, IsOk());
  EXPECT_THAT(nothing->scale, ElementsAre(1.0f));
  EXPECT_THAT(nothing->bias, ElementsAre(0.0f));
  const auto one_stddev = FactorsOf(2, {4.0, 8.0}, {2.0});
  ASSERT_THAT(one_stddev, IsOk());
  EXPECT_THAT(one_stddev->scale, ElementsAre(1.0f, 1.0f));
  EXPECT_THAT(one_stddev->bias, ElementsAre(-2.0f, -4.0f));
}

TEST(NormaliseTest, FactorsThatOverflowOrVanishInFloatAreRefused) {
  EXPECT_THAT(FactorsOf(1, {}, {0.0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no stddev of 0")));
  EXPECT_THAT(FactorsOf(1, {1e300}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want finite numbers")));
  EXPECT_THAT(FactorsOf(1e-300, {}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x * 0 ")));
}

TEST(NormaliseTest, WritesToUnalignedOutput) {
  const std::vector<uint8_t> in(40, 7);
  std::vector<uint8_t> out(40 * 4 + 1);
  ASSERT_THAT(NormaliseUint8(in, 1, {}, PixelType::kFloat32, absl::MakeSpan(out).subspan(1)),
              IsOk());
  float last;
  std::memcpy(&last, out.data() + 1 + 39 * 4, sizeof(last));
  EXPECT_EQ(last, 7.0f);
}

TEST(NormaliseTest, BadShapesAreNamed) {
  const std::vector<uint8_t> in(6);
  const std::vector<float> two = {1.0f, 2.0f};
  std::vector<uint8_t> out(6);
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const auto span = absl::MakeSpan(out);
  EXPECT_THAT(NormaliseUint8(in, 4, {}, PixelType::kUint8, span),
              StatusIs(kInvalid, HasSubstr("6 values are not a multiple of 4 channels")));
  EXPECT_THAT(NormaliseUint8(in, 0, {}, PixelType::kUint8, span),
              StatusIs(kInvalid, HasSubstr("channels is 0, want 1 to 16")));
  EXPECT_THAT(NormaliseUint8(in, 17, {}, PixelType::kUint8, span),
              StatusIs(kInvalid, HasSubstr("channels is 17")));
  EXPECT_THAT(NormaliseUint8(in, 3, {.scale = two}, PixelType::kUint8, span),
              StatusIs(kInvalid, HasSubstr("scale has 2 entries, want 1, or 3, one per channel")));
  EXPECT_THAT(NormaliseUint8(in, 3, {.bias = two}, PixelType::kUint8, span),
              StatusIs(kInvalid, HasSubstr("bias has 2 entries")));
  EXPECT_THAT(NormaliseUint8(in, 3, {}, PixelType::kBfloat16, span),
              StatusIs(kInvalid, HasSubstr("output has 6 bytes, want 12")));
}

TEST(NormaliseTest, EachDtypeMapsToAPixelTypeOfTheSameSize) {
  for (const DType dtype : {DType::kUint8, DType::kFloat32, DType::kBfloat16, DType::kFloat16}) {
    EXPECT_EQ(static_cast<int64_t>(PixelTypeBytes(PixelTypeOf(dtype))), DTypeBytes(dtype))
        << DTypeName(dtype);
  }
  EXPECT_NE(PixelTypeOf(DType::kBfloat16), PixelTypeOf(DType::kFloat16));
}

}  // namespace
}  // namespace systole
