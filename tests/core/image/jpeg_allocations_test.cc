// Counts how often an image needs memory that takes malloc's lock: pieces larger than those that
// malloc keeps for each thread. libjpeg allocates such pieces for each image. Our code keeps its
// own pieces from image to image.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/image/image_transformer.h"
#include "core/image/window/crop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/jpeg/jpeg_fixture.h"
#include "tests/status_matchers.h"

namespace {

constexpr size_t kLargestKeptByThread = 1032;

int64_t allocations = 0;  // Counts pieces larger than kLargestKeptByThread. Used by one thread.

void Count(size_t size) {
  if (size > kLargestKeptByThread) ++allocations;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
namespace {
const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t size) { Count(size); }, [](const volatile void*) {});
}  // namespace
#else
// This replaces the C library's function, also for libjpeg.
extern "C" void* __libc_malloc(size_t size);
extern "C" void* malloc(size_t size) {
  Count(size);
  return __libc_malloc(size);
}
#endif

namespace systole {
namespace {

TEST(JpegAllocationsTest, AWarmTransformerMakesAtMostEightLargeAllocationsForEachImage) {
  ImageTransformer transformer = *ImageTransformer::Create({.output = {.height = 64, .width = 64}});
  std::vector<uint8_t> out(transformer.output_bytes());
  for (const JpegKind& kind : {JpegKind{.name = "420", .h = 2, .v = 2}, JpegKind{.name = "444"},
                               JpegKind{.name = "grey", .colour = JpegColour::kGrey}}) {
    const std::string jpeg = MakeJpeg(kind, 500, 375, 1);
    const auto decode = [&] {
      ASSERT_THAT(transformer.ReadHeader(jpeg), IsOk());
      ASSERT_THAT(transformer.Transform({20, 30, 300, 400}, false, absl::MakeSpan(out)), IsOk());
    };
    decode();
    const int64_t before = allocations;
    for (int i = 0; i < 10; ++i) decode();
    const int64_t taken = allocations - before;
    EXPECT_LE(taken, 10 * 8) << kind.name;
    EXPECT_GE(taken, 10 * 1) << kind.name;  // libjpeg's own calls are counted.
  }
}

}  // namespace
}  // namespace systole
