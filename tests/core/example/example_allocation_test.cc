// Counts calls of operator new, because parsing must not make any.
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include "core/example/example_builder.h"
#include "core/example/example_parser.h"
#include "gtest/gtest.h"

namespace {
int64_t allocations = 0;
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  std::abort();
}
// These operators are not inlined. Otherwise g++ sees free() beside a new expression and warns of a
// mismatch.
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace systole {
namespace {

TEST(ExampleAllocationTest, ParsingAndReadingAllocatesNothing) {
  const std::string record = ExampleBuilder()
                                 .AddBytes("image", std::string(50000, 'j'))
                                 .AddBytes("a rather long name of a feature", "tulip")
                                 .AddInt64s("label", {4})
                                 .AddFloats("weights", {0.5f, -2.0f})
                                 .Serialize();
  const absl::StatusOr<ExampleParser> parser =
      ExampleParser::Create({"image", "label", "weights", "a rather long name of a feature"});
  FeatureView views[4];
  int64_t label[1];
  float weights[2];

  const int64_t before = allocations;
  MadeText made;
  bool good = parser->Parse(TensorFlowExample(), record, made, views).ok();
  good = good && views[0].BytesAt(0).ok() && views[1].CopyInt64s(label).ok() &&
         views[2].CopyFloats(weights).ok() && views[3].BytesAt(0).ok();
  good = good && ExampleView::Parse(record)->Find("label").count() == 1;
  const int64_t after = allocations;

  EXPECT_TRUE(good);
  EXPECT_EQ(after - before, 0);
  EXPECT_GT(before, 0);  // The counter works.
}

}  // namespace
}  // namespace systole
