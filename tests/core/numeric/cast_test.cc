#include "core/numeric/cast.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/numeric/bf16.h"
#include "core/numeric/canonical_nan.h"
#include "core/numeric/float16.h"
#include "core/numeric/simd_target.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

// Returns `count` values. They include zeros, NaNs and infinities of either sign, subnormals, and
// values between two integers.
std::vector<float> Values(size_t count) {
  const float special[] = {0.0f,
                           -0.0f,
                           std::numeric_limits<float>::quiet_NaN(),
                           -std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           1e-40f,
                           -1e-40f,
                           0.5f,
                           1.5f,
                           254.5f,
                           254.999f,
                           255.0f,
                           65519.0f,
                           65520.0f,
                           3e38f,
                           0.99f,
                           -0.01f};
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    const size_t kind = i * 7 % 23;
    values.push_back(kind < std::size(special) ? special[kind]
                                               : static_cast<float>(i) * 1.37f - 20);
  }
  return values;
}

// Casts as the definition says, one value at a time.
std::vector<uint8_t> CastOneByOne(const std::vector<float>& in, PixelType type) {
  std::vector<uint8_t> out(in.size() * PixelTypeBytes(type));
  for (size_t i = 0; i < in.size(); ++i) {
    const float x = CanonicalNan(in[i]);
    const uint8_t byte = RoundToUint8(x);
    const uint16_t half = type == PixelType::kFloat16 ? RoundToFloat16(x) : RoundToBf16(x);
    const void* from = type == PixelType::kUint8     ? static_cast<const void*>(&byte)
                       : type == PixelType::kFloat32 ? static_cast<const void*>(&x)
                                                     : static_cast<const void*>(&half);
    std::memcpy(out.data() + i * PixelTypeBytes(type), from, PixelTypeBytes(type));
  }
  return out;
}

TEST(CastTest, EveryTargetTypeAndLengthEqualsTheDefinition) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (const PixelType type :
         {PixelType::kUint8, PixelType::kFloat32, PixelType::kBfloat16, PixelType::kFloat16}) {
      for (size_t count = 0; count < 70; ++count) {
        const std::vector<float> in = Values(count);
        // The output begins at the second byte of `out`, so it is not aligned.
        std::vector<uint8_t> out(count * PixelTypeBytes(type) + 1);
        CastFloats(in, type, absl::MakeSpan(out).subspan(1));
        out.erase(out.begin());
        EXPECT_EQ(out, CastOneByOne(in, type)) << static_cast<int>(type) << " " << count;
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(CastTest, CuttingToUint8DropsTheFractionAndSaturatesOnEveryTarget) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (const float factor : {1.0f, 255.5f}) {
      for (size_t count = 0; count < 70; ++count) {
        const std::vector<float> in = Values(count);
        std::vector<uint8_t> want;
        for (const float x : in) {
          const float scaled = x * factor;
          want.push_back(!(scaled > 0)   ? 0
                         : scaled >= 255 ? 255
                                         : static_cast<uint8_t>(std::floor(scaled)));
        }
        std::vector<uint8_t> out(count);
        CutToUint8(in, factor, absl::MakeSpan(out));
        EXPECT_EQ(out, want) << factor << " " << count;
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

}  // namespace
}  // namespace systole
