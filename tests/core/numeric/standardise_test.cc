#include "core/numeric/standardise.h"

#include <cstdint>
#include <string>
#include <vector>

#include "core/numeric/simd_target.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

// Values whose sums depend on the order of the additions.
std::vector<float> Floats(size_t count) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    const float x = static_cast<float>(i * 2654435761u % 1000) / 7 - 50;
    values.push_back(i % 5 == 0 ? x * 1e15f : x);
  }
  return values;
}

std::vector<uint8_t> Bytes(size_t count) {
  std::vector<uint8_t> values;
  for (size_t i = 0; i < count; ++i) values.push_back(static_cast<uint8_t>(i * 37 + i / 9));
  return values;
}

// The definition: term i goes to sum i % 8. Then the eight sums are added in order.
double SumOneByOne(const std::vector<double>& terms) {
  double sums[8] = {};
  for (size_t i = 0; i < terms.size(); ++i) sums[i % 8] += terms[i];
  double sum = 0;
  for (const double one : sums) sum += one;
  return sum;
}

// Expects that SumOf(), SumOfSquares() and Standardise() follow their definitions to the last bit.
template <typename T>
void ExpectDefinition(const std::vector<T>& values) {
  const float mean = 12.3f;
  const float divisor = 7.7f;
  std::vector<double> terms;
  std::vector<double> squares;
  std::vector<float> scaled;
  for (const T value : values) {
    const float x = value;
    const float difference = x - mean;
    terms.push_back(x);
    squares.push_back(double{difference} * double{difference});
    scaled.push_back(difference / divisor);
  }
  const absl::Span<const T> span = values;
  EXPECT_EQ(SumOf(span), SumOneByOne(terms)) << values.size();
  EXPECT_EQ(SumOfSquares(span, mean), SumOneByOne(squares)) << values.size();
  std::vector<float> out(values.size());
  Standardise(span, mean, divisor, absl::MakeSpan(out));
  EXPECT_EQ(out, scaled) << values.size();
}

TEST(StandardiseTest, EveryTargetAndLengthEqualsTheDefinition) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (size_t count = 0; count < 70; ++count) {
      ExpectDefinition(Floats(count));
      ExpectDefinition(Bytes(count));
    }
    ExpectDefinition(Floats(5003));
    ExpectDefinition(Bytes(5003));
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(StandardiseTest, TheOrderOfTheAdditionsChangesTheSum) {
  // If both orders gave the same sum, the tests above would not notice a wrong order.
  double sum = 0;
  for (const float x : Floats(5003)) sum += x;
  EXPECT_NE(SumOf(absl::Span<const float>(Floats(5003))), sum);
}

TEST(StandardiseTest, TheResultMayReplaceTheInput) {
  std::vector<float> values = Floats(45);
  std::vector<float> want(values.size());
  Standardise(absl::MakeConstSpan(values), 3, 4, absl::MakeSpan(want));
  Standardise(absl::MakeConstSpan(values), 3, 4, absl::MakeSpan(values));
  EXPECT_EQ(values, want);
}

}  // namespace
}  // namespace systole
