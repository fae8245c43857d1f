#include "core/engine/run_blocks.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

TEST(RunBlocksTest, FindsTheBlockThatHoldsTheSpanDespiteAnEmptyBlock) {
  const MemorySource source("0123456789", "a");
  // Each block has an error with its name, so that the test can see which block was found.
  const auto block = [&source](uint64_t offset, uint64_t size, const char* name) {
    return std::make_shared<const Block>(
        BlockRange{.source = &source, .offset = offset, .size = size},
        absl::UnavailableError(name));
  };
  for (const bool empty_first : {false, true}) {
    std::vector<BlockPtr> blocks = {block(4, 0, "empty"), block(4, 3, "whole")};
    if (!empty_first) std::swap(blocks[0], blocks[1]);
    blocks.push_back(block(0, 4, "before"));
    const RunBlocks run(std::move(blocks));
    EXPECT_THAT(run.Find(source, {.offset = 4, .size = 3}),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("whole")));
    EXPECT_THAT(run.Find(source, {.offset = 1, .size = 3}),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("before")));
    EXPECT_THAT(run.Find(source, {.offset = 6, .size = 2}),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("no block")));
  }
}

}  // namespace
}  // namespace systole
