// Numerics `fast` on a CPU without bf16 products. With ONEDNN_MAX_CPU_ISA, oneDNN uses only the
// instructions that such a CPU has.
#include <random>
#include <vector>

#include "client/emulator/array/flush_scope.h"
#include "client/emulator/array/matrix_unit.h"
#include "client/emulator/array/numerics.h"
#include "client/emulator/array/onednn_gemm.h"
#include "core/numeric/bf16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

std::vector<float> BothProducts(Numerics numerics) {
  std::mt19937 random(1);
  DeviceArray<uint16_t> a(60 * 50), b(50 * 40), c(60 * 40);
  for (DeviceArray<uint16_t>* operand : {&a, &b, &c}) {
    for (uint16_t& value : operand->span()) {
      value = RoundToBf16Flush(static_cast<float>(random() % 2001) / 1000.0f - 1.0f);
    }
  }
  const FlushScope flush;
  MatrixUnit<float> unit(numerics);
  std::vector<float> out(60 * 40 + 50 * 40);
  const auto matrix_a = PatchMatrix<uint16_t>::Dense(a.data(), 60, 50);
  unit.Multiply(matrix_a, b.data(), 40, out.data(), 40);
  unit.MultiplyTransposed(matrix_a, PatchMatrix<uint16_t>::Dense(c.data(), 60, 40),
                          out.data() + 60 * 40, 40);
  return out;
}

TEST(FastFallbackTest, WithoutBf16ProductsFastIsExact) {
  ASSERT_FALSE(OneDnnGemm::IsSupported());
  EXPECT_EQ(BothProducts(Numerics::kFast), BothProducts(Numerics::kExact));
}

TEST(FastFallbackTest, ANoteSaysThatFastWasExact) {
  EXPECT_THAT(MissingNumericsNote(Numerics::kFast),
              testing::HasSubstr("had the bits and the speed of 'exact', because"));
  EXPECT_EQ(MissingNumericsNote(Numerics::kExact), "");
}

}  // namespace
}  // namespace systole::emulator
