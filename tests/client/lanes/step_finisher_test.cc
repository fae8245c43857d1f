#include "client/lanes/step_finisher.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "core/batch/slice_layout.h"
#include "core/checksum/crc32c.h"
#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/framing/layout_description.h"
#include "systole/v1/service.pb.h"
#include "tests/proto/framing/sliced_message.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

// The StepShape that a server describes if a spec's output `x` has this dtype and this shape.
std::shared_ptr<const StepShape> ShapeOf(DType dtype, std::vector<int64_t> shape,
                                         int batch_axis = 0) {
  const int64_t batch = shape[static_cast<size_t>(batch_axis)];
  const auto layout = SliceLayout::Create(
      {{.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {batch}}},
       {.spec = {.name = "x", .dtype = dtype, .shape = std::move(shape)}, .batch_axis = batch_axis},
       {.spec = {.name = "y", .dtype = DType::kInt64, .shape = {batch}}}});
  EXPECT_THAT(layout, IsOk());
  return std::make_shared<const StepShape>(
      StepShape{.layout = *layout, .core_begin = 3, .core_end = 5});
}

// An answer that describes `shape`, with a compact form for `x`.
v1::ResolveFeedResponse AnswerOf(const StepShape& shape, const v1::CompactForm& form) {
  v1::ResolveFeedResponse answer;
  DescribeLayout(shape.layout, answer);
  *answer.mutable_tensors(1)->mutable_compact() = form;
  return answer;
}

// The form y = x / stddev - mean / stddev for three channels, as factors or as a table of the
// results.
v1::CompactForm FormOf(int channel_axis, bool as_table) {
  v1::CompactForm form;
  form.set_channel_axis(channel_axis);
  const float mean[3] = {1, 2, 3}, stddev[3] = {5, 6, 7};
  for (int c = 0; c < 3; ++c) {
    const auto scale = static_cast<float>(1.0 / stddev[c]);
    const auto bias = static_cast<float>(-1.0 * mean[c] / stddev[c]);
    if (!as_table) {
      form.add_scale(scale);
      form.add_bias(bias);
      continue;
    }
    for (int x = 0; x < 256; ++x) {
      const float product = static_cast<float>(x) * scale;
      form.add_table(product + bias);
    }
  }
  return form;
}

TEST(StepFinisherTest, TensorsWithACompactFormTravelAsUint8AndOthersUnchanged) {
  const auto finished = ShapeOf(DType::kFloat32, {4, 3, 2, 2});
  const auto finisher = StepFinisher::Create(AnswerOf(*finished, FormOf(1, false)), finished);
  ASSERT_THAT(finisher, IsOk());
  ASSERT_NE(*finisher, nullptr);
  const SliceLayout& layout = (*finisher)->shape()->layout;
  EXPECT_EQ(layout.tensors()[1].spec.DebugString(), "x uint8[4,3,2,2]");
  EXPECT_EQ(layout.tensors()[2].spec.DebugString(), "y int64[4]");
  EXPECT_EQ((*finisher)->shape()->core_begin, 3);
  EXPECT_EQ((*finisher)->shape()->core_end, 5);
}

TEST(StepFinisherTest, WithoutAFormThereIsNothingToFinish) {
  const auto finished = ShapeOf(DType::kFloat32, {4, 3});
  v1::ResolveFeedResponse answer;
  DescribeLayout(finished->layout, answer);
  EXPECT_THAT(StepFinisher::Create(answer, finished), IsOkAndHolds(testing::IsNull()));
}

// CheckFeedAnswer() already refuses answers with these forms. StepFinisher must refuse them, too.
TEST(StepFinisherTest, AnInvalidCompactFormIsRefused) {
  const auto finished = ShapeOf(DType::kFloat32, {4, 3});
  v1::CompactForm none;
  v1::CompactForm uneven;
  uneven.add_scale(1);
  v1::CompactForm short_table;
  short_table.add_table(1);
  for (const v1::CompactForm& form : {none, uneven, short_table}) {
    EXPECT_THAT(StepFinisher::Create(AnswerOf(*finished, form), finished),
                StatusIs(absl::StatusCode::kInternal, testing::HasSubstr("tensor 'x' is wrong")));
  }
}

// Cuts a compact step into chunks at arbitrary places, and finishes them. Expects the values that
// v1::CompactForm defines, and zeros for places that are not valid.
void ExpectFinished(DType dtype, std::vector<int64_t> shape, int batch_axis, int channel_axis,
                    bool as_table) {
  const auto finished = ShapeOf(dtype, shape, batch_axis);
  const auto created =
      StepFinisher::Create(AnswerOf(*finished, FormOf(channel_axis, as_table)), finished);
  ASSERT_THAT(created, IsOk());
  const std::shared_ptr<const StepFinisher>& finisher = *created;
  ASSERT_NE(finisher, nullptr);
  const SliceLayout& wire = finisher->shape()->layout;
  std::vector<uint8_t> step(static_cast<size_t>(finished->bytes()), 0xab);
  const int64_t batch = wire.per_core_batch();
  const auto byte_at = [](int core, int tensor, int64_t i) {
    return static_cast<uint8_t>(i * 37 + tensor * 11 + core * 5);
  };
  for (int core = 3; core < 5; ++core) {
    for (int tensor = 0; tensor < 3; ++tensor) {
      const int64_t bytes = wire.tensors()[static_cast<size_t>(tensor)].spec.num_bytes();
      for (int64_t offset = 0; offset < bytes; offset += 13) {
        std::vector<uint8_t> data;
        for (int64_t i = offset; i < std::min(bytes, offset + 13); ++i) {
          data.push_back(tensor == 0 ? static_cast<uint8_t>(i % 3 != 1)  // `valid`.
                                     : byte_at(core, tensor, i));
        }
        const ChunkHeader header = {.core = core,
                                    .tensor = tensor,
                                    .offset = offset,
                                    .crc32c = Crc32c(absl::string_view(
                                        reinterpret_cast<const char*>(data.data()), data.size()))};
        const auto chunk =
            ReceivedChunk::Parse(SlicedMessage(BytesOf(EncodeChunk(header, data, nullptr)), 5));
        ASSERT_THAT(chunk, IsOk());
        ASSERT_THAT(finisher->Place(*chunk, step.data()), IsOk());
      }
    }
  }
  finisher->Complete(step.data());

  const float stddev[3] = {5, 6, 7}, mean[3] = {1, 2, 3};
  for (int core = 3; core < 5; ++core) {
    const uint8_t* const slice = step.data() + (core - 3) * finished->layout.slice_bytes();
    const SliceTensor& x = finished->layout.tensors()[1];
    // `inner` adjacent values belong to one channel, and `outer` adjacent values to one example.
    int64_t inner = 1, outer = 1;
    for (size_t i = static_cast<size_t>(channel_axis) + 1; i < shape.size(); ++i) inner *= shape[i];
    for (size_t i = static_cast<size_t>(batch_axis) + 1; i < shape.size(); ++i) outer *= shape[i];
    for (int64_t i = 0; i < x.spec.num_bytes() / DTypeBytes(dtype); ++i) {
      const bool valid = i / outer % batch % 3 != 1;
      const auto c = static_cast<size_t>(i / inner % 3);
      const float product = byte_at(core, 1, i) * static_cast<float>(1.0 / stddev[c]);
      const float value = valid ? product + static_cast<float>(-1.0 * mean[c] / stddev[c]) : 0.0f;
      const uint8_t* const at = slice + x.offset + i * DTypeBytes(dtype);
      if (dtype == DType::kFloat32) {
        ASSERT_EQ(std::memcmp(at, &value, 4), 0) << i;
      } else {
        const uint16_t rounded =
            dtype == DType::kFloat16 ? RoundToFloat16(value) : RoundToBf16(value);
        ASSERT_EQ(std::memcmp(at, &rounded, 2), 0) << i;
      }
    }
    for (int64_t slot = 0; slot < batch; ++slot) {
      for (int64_t i = slot * 8; i < slot * 8 + 8; ++i) {
        ASSERT_EQ(slice[finished->layout.tensors()[2].offset + i],
                  slot % 3 == 1 ? 0 : byte_at(core, 2, i));
      }
    }
  }
}

TEST(StepFinisherTest, EveryLayoutAndTypeIsFinishedAsCompactFormDefines) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat16}) {
    for (const bool as_table : {false, true}) {
      ExpectFinished(dtype, {5, 4, 6, 3}, 0, 3, as_table);
      ExpectFinished(dtype, {5, 3, 4, 6}, 0, 1, as_table);
      // An example has more values than the longest pattern (core/numeric/normalise.cc), so its
      // channels are finished one by one.
      ExpectFinished(dtype, {2, 3, 32, 32}, 0, 1, as_table);
      ExpectFinished(dtype, {4, 6, 3, 5}, 3, 2, as_table);
    }
  }
}

TEST(StepFinisherTest, ADamagedChunkIsDataLoss) {
  const auto finished = ShapeOf(DType::kFloat32, {4, 3});
  const auto finisher = StepFinisher::Create(AnswerOf(*finished, FormOf(1, false)), finished);
  ASSERT_THAT(finisher, IsOk());
  std::vector<uint8_t> step(static_cast<size_t>(finished->bytes()));
  const std::vector<uint8_t> data = {1, 2, 3};
  const auto chunk = ReceivedChunk::Parse(
      EncodeChunk({.core = 4, .tensor = 1, .offset = 3, .crc32c = 99}, data, nullptr));
  ASSERT_THAT(chunk, IsOk());
  EXPECT_THAT((*finisher)->Place(*chunk, step.data()),
              StatusIs(absl::StatusCode::kDataLoss, testing::HasSubstr("core 4, tensor 1")));
}

}  // namespace
}  // namespace systole
