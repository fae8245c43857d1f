#include "client/cli/commands/step_printer.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Step 9 of cores 2 and 3. Its tensors are `a` int64[2], `h` uint8[3,2] with the examples last, and
// `valid`. The bytes of `h` count up from 1 in each slice. The second example of core 3 is not
// valid.
Step SomeStep() {
  absl::StatusOr<SliceLayout> layout = SliceLayout::Create(
      {{.spec = {.name = "a", .dtype = DType::kInt64, .shape = {2}}},
       {.spec = {.name = "h", .dtype = DType::kUint8, .shape = {3, 2}}, .batch_axis = 1},
       {.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {2}}}});
  EXPECT_THAT(layout, IsOk());
  auto shape = std::make_shared<const StepShape>(
      StepShape{.layout = *layout, .core_begin = 2, .core_end = 4});
  StepBuffer buffer(static_cast<uint8_t*>(std::aligned_alloc(64, 384)),
                    [](uint8_t* memory) { std::free(memory); });
  std::memset(buffer.get(), 0, 384);
  for (int core = 0; core < 2; ++core) {
    uint8_t* slice = buffer.get() + core * 192;
    const int64_t a[] = {-5, int64_t{1} << 40};
    std::memcpy(slice, a, sizeof(a));
    for (int i = 0; i < 6; ++i) slice[64 + i] = static_cast<uint8_t>(i + 1);
    slice[128] = 1;
    slice[129] = core == 0 ? 1 : 0;
  }
  return Step(9, shape, buffer);
}

std::string Printed(StepPrinting printing, const std::string& output = "") {
  const Step step = SomeStep();
  const absl::StatusOr<StepPrinter> printer = StepPrinter::Create(printing, output, step.layout());
  EXPECT_THAT(printer, IsOk());
  std::ostringstream out;
  printer->Print(step, out);
  return out.str();
}

TEST(StepPrinterTest, PrintsTheDigestOfEachSlice) {
  const Step step = SomeStep();
  EXPECT_EQ(Printed(StepPrinting::kDigest),
            absl::StrCat("9 2 ", SliceDigest(step.layout(), step.slice(2)), "\n9 3 ",
                         SliceDigest(step.layout(), step.slice(3)), "\n"));
}

TEST(StepPrinterTest, PrintsTheDigestOfEachExample) {
  const Step step = SomeStep();
  std::string wanted;
  for (int core = 2; core < 4; ++core) {
    for (int slot = 0; slot < 2; ++slot) {
      absl::StrAppend(&wanted, "9 ", core, " ", slot, " ",
                      ExampleDigest(step.layout(), slot, step.slice(core)), "\n");
    }
  }
  EXPECT_EQ(Printed(StepPrinting::kExampleDigests), wanted);
}

TEST(StepPrinterTest, PrintsValuesByExampleAndADashForAnInvalidExample) {
  EXPECT_EQ(Printed(StepPrinting::kValues, "a"), "9 2 -5 1099511627776\n9 3 -5 -\n");
  EXPECT_EQ(Printed(StepPrinting::kValues, "h"), "9 2 1 3 5 2 4 6\n9 3 1 3 5 -\n");
  EXPECT_EQ(Printed(StepPrinting::kValues, "valid"), "9 2 1 1\n9 3 1 0\n");
}

TEST(StepPrinterTest, PrintsNothingWhereNothingIsWanted) {
  EXPECT_EQ(Printed(StepPrinting::kNothing), "");
}

TEST(StepPrinterTest, AnOutputThatIsNotThereIsRefused) {
  EXPECT_THAT(StepPrinter::Create(StepPrinting::kValues, "b", SomeStep().layout()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--print b"), HasSubstr("a, h, valid"))));
}

template <typename T>
std::string Text(DType dtype, T value) {
  uint8_t bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  return ElementText(dtype, bytes);
}

TEST(StepPrinterTest, ElementsOfEveryTypeArePrintedAsDecimalText) {
  EXPECT_EQ(Text(DType::kUint8, uint8_t{200}), "200");
  EXPECT_EQ(Text(DType::kInt32, std::numeric_limits<int32_t>::min()), "-2147483648");
  EXPECT_EQ(Text(DType::kInt64, std::numeric_limits<int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(Text(DType::kFloat32, 0.1f), "0.1");
  EXPECT_EQ(Text(DType::kFloat32, -1e30f), "-1e+30");
  EXPECT_EQ(Text(DType::kFloat32, std::numeric_limits<float>::infinity()), "inf");
  EXPECT_EQ(Text(DType::kBfloat16, uint16_t{0x3f80}), "1");
  EXPECT_EQ(Text(DType::kBfloat16, uint16_t{0xc040}), "-3");
  EXPECT_EQ(Text(DType::kFloat16, uint16_t{0x3c00}), "1");
  EXPECT_EQ(Text(DType::kFloat16, uint16_t{0xc200}), "-3");
}

}  // namespace
}  // namespace systole
