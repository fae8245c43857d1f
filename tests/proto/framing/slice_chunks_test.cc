#include "proto/framing/slice_chunks.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/framing/chunk.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

TEST(SliceChunksTest, CutsEveryByteOfEveryTensorInOrder) {
  // Tensor `a` has two and a half chunks, `b` exactly one, and `valid` a small one.
  const int64_t batch = 2;
  const absl::StatusOr<SliceLayout> layout =
      SliceLayout::Create({{.spec = {.name = "a", .shape = {batch, kChunkBytes + kChunkBytes / 4}}},
                           {.spec = {.name = "b", .shape = {batch, kChunkBytes / 2}}},
                           {.spec = {.name = "valid", .shape = {batch}}}});
  ASSERT_THAT(layout, IsOk());
  std::vector<uint8_t> slice(static_cast<size_t>(layout->slice_bytes()));
  for (size_t i = 0; i < slice.size(); ++i) slice[i] = static_cast<uint8_t>(i % 251);
  const auto owner = std::make_shared<int>(0);

  std::vector<uint8_t> gathered(slice.size(), 0);
  std::vector<std::pair<int, int64_t>> places;  // Tensor and offset.
  SliceChunks chunks(9, 4, *layout, slice.data(), owner,
                     /*not_shared=*/5, StageTimes{.make = absl::Seconds(3)});
  while (!chunks.done()) {
    int64_t payload_bytes = 0;
    const grpc::ByteBuffer message = chunks.Next(payload_bytes);
    const absl::StatusOr<ReceivedChunk> chunk = ReceivedChunk::Parse(message);
    ASSERT_THAT(chunk, IsOk());
    EXPECT_EQ(chunk->header().step, 9);
    EXPECT_EQ(chunk->header().core, 4);
    EXPECT_EQ(chunk->header().not_shared, places.empty() ? 5 : 0);
    EXPECT_EQ(chunk->header().stages.has_value(), places.empty());
    EXPECT_EQ(chunk->header().stages.value_or(StageTimes()).make,
              places.empty() ? absl::Seconds(3) : absl::ZeroDuration());
    EXPECT_EQ(chunk->data_bytes(), payload_bytes);
    EXPECT_LE(payload_bytes, kChunkBytes);
    places.emplace_back(chunk->header().tensor, chunk->header().offset);
    const int64_t at = layout->tensors()[static_cast<size_t>(chunk->header().tensor)].offset +
                       chunk->header().offset;
    ASSERT_THAT(
        chunk->CopyTo(absl::MakeSpan(gathered.data() + at, static_cast<size_t>(payload_bytes))),
        IsOk());
  }
  EXPECT_THAT(places, testing::ElementsAre(std::pair(0, 0), std::pair(0, kChunkBytes),
                                           std::pair(0, 2 * kChunkBytes), std::pair(1, 0),
                                           std::pair(2, 0)));
  for (const SliceTensor& tensor : layout->tensors()) {
    for (int64_t i = 0; i < tensor.spec.num_bytes(); ++i) {
      ASSERT_EQ(gathered[static_cast<size_t>(tensor.offset + i)],
                slice[static_cast<size_t>(tensor.offset + i)]);
    }
  }
}

TEST(SliceChunksTest, AChunkKeepsTheOwnerOfItsDataAlive) {
  const absl::StatusOr<SliceLayout> layout =
      SliceLayout::Create({{.spec = {.name = "valid", .shape = {2}}}});
  ASSERT_THAT(layout, IsOk());
  const std::vector<uint8_t> slice(64);
  auto owner = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = owner;
  grpc::ByteBuffer message;
  {
    SliceChunks chunks(0, 0, *layout, slice.data(), std::move(owner));
    int64_t payload_bytes = 0;
    message = chunks.Next(payload_bytes);
  }
  EXPECT_FALSE(watch.expired());
  message.Clear();
  EXPECT_TRUE(watch.expired());
}

TEST(SliceChunksTest, ADefaultConstructedObjectIsDone) { EXPECT_TRUE(SliceChunks().done()); }

}  // namespace
}  // namespace systole
