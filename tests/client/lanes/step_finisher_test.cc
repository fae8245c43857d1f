#include "client/lanes/step_finisher.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/batch/slice_layout.h"
#include "core/checksum/crc32c.h"
#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/proto/framing/sliced_message.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

v1::FeedSpec SpecFromText(const std::string& text) {
  v1::FeedSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  return spec;
}

// What a server describes for a spec of one output `x` of this type and shape.
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

// The transforms of a resized picture.
constexpr char kResized[] =
    "transforms { decode_jpeg {} } transforms { resize { height: 2 width: "
    "2 } } ";
constexpr char kRounded[] = "transforms { round_to_uint8 {} } ";

v1::FeedSpec SpecOfX(const std::string& x) {
  return SpecFromText("wire: COMPACT outputs { name: 'y' dtype: INT64 } outputs { name: 'x' " + x +
                      " }");
}

TEST(StepFinisherTest, AsksForUint8WithoutNormalizeAndLeavesTheRest) {
  const auto finisher = StepFinisher::Create(
      SpecOfX(std::string(kResized) + kRounded +
              "transforms { normalize { mean: 2 } } dtype: FLOAT32 layout: NCHW"),
      ShapeOf(DType::kFloat32, {4, 3, 2, 2}));
  ASSERT_NE(finisher, nullptr);
  EXPECT_EQ(finisher->spec().ShortDebugString(),
            SpecFromText("outputs { name: 'y' dtype: INT64 } outputs { name: 'x' " +
                         std::string(kResized) + kRounded + "dtype: UINT8 layout: NCHW }")
                .ShortDebugString());
  const SliceLayout& layout = finisher->shape()->layout;
  EXPECT_EQ(layout.tensors()[1].spec.DebugString(), "x uint8[4,3,2,2]");
  EXPECT_EQ(layout.tensors()[2].spec.DebugString(), "y int64[4]");
  EXPECT_EQ(finisher->shape()->core_begin, 3);
  EXPECT_EQ(finisher->shape()->core_end, 5);
  // 4 * (12 * 4 + 8 + 1) bytes for 4 * (12 + 8 + 1).
  EXPECT_DOUBLE_EQ(finisher->ratio(), 57.0 / 21);
}

TEST(StepFinisherTest, OnlyWholeNumbersOfUint8CanTravelCompactly) {
  const std::string raw = "shape: [2, 2, 3] transforms { decode_raw {} } ";
  const std::string flip = "transforms { random_flip {} } ";
  const std::string normalize = "transforms { normalize { mean: 2 } } ";
  const auto floats = ShapeOf(DType::kFloat32, {4, 2, 2, 3});
  const auto compact = [&](const std::string& x) {
    return StepFinisher::Create(SpecOfX(x), floats) != nullptr;
  };
  EXPECT_TRUE(compact(raw + "dtype: FLOAT32"));
  EXPECT_TRUE(compact(raw + flip + normalize + "dtype: FLOAT32"));
  EXPECT_TRUE(compact(raw + flip + normalize));  // FLOAT32 by default.
  EXPECT_TRUE(compact(kResized + flip + kRounded + normalize + "dtype: FLOAT32"));
  EXPECT_FALSE(compact(kResized + flip + normalize + "dtype: FLOAT32"));  // Interpolated.
  EXPECT_FALSE(compact(raw + "transforms { center_crop { height: 2 width: 2 } } dtype: FLOAT32"));
  EXPECT_FALSE(compact(normalize + "dtype: FLOAT32"));  // A float feature.
  EXPECT_FALSE(compact(raw + "dtype: UINT8"));
  EXPECT_FALSE(compact(raw + "transforms {} dtype: FLOAT32"));  // Of a newer version.
  EXPECT_FALSE(compact(raw + "transforms { normalize { stddev: 0 } } dtype: FLOAT32"));
  EXPECT_FALSE(compact(raw + "transforms { normalize { mean: [1, 2] } } dtype: FLOAT32"));
  EXPECT_FALSE(compact("dtype: FLOAT32"));
}

TEST(StepFinisherTest, WhatIsMixedTravelsAsItIsAndTheRestCompactly) {
  v1::FeedSpec spec = SpecOfX("shape: 3 transforms { decode_raw {} } dtype: FLOAT32");
  const auto shape = ShapeOf(DType::kFloat32, {4, 3});
  EXPECT_NE(StepFinisher::Create(spec, shape), nullptr);
  spec.mutable_mix()->add_labels("x");
  EXPECT_EQ(StepFinisher::Create(spec, shape), nullptr);
  spec.mutable_mix()->set_labels(0, "z");
  const auto finisher = StepFinisher::Create(spec, shape);
  ASSERT_NE(finisher, nullptr);
  EXPECT_EQ(finisher->spec().mix().labels(0), "z");  // The server still mixes.
}

TEST(StepFinisherTest, AShapeThatIsNotTheSpecsTravelsAsItIs) {
  const std::string x =
      "shape: 3 transforms { decode_raw {} } transforms { normalize { mean: [1, 2, 3] } } "
      "dtype: FLOAT32 ";
  EXPECT_NE(StepFinisher::Create(SpecOfX(x), ShapeOf(DType::kFloat32, {4, 3})), nullptr);
  EXPECT_EQ(StepFinisher::Create(SpecOfX(x), ShapeOf(DType::kFloat32, {4, 2})), nullptr);
  EXPECT_EQ(StepFinisher::Create(SpecOfX(x), ShapeOf(DType::kInt64, {4, 3})), nullptr);
  EXPECT_EQ(StepFinisher::Create(SpecOfX(x + "layout: NCHW"), ShapeOf(DType::kFloat32, {4, 3})),
            nullptr);
  EXPECT_EQ(
      StepFinisher::Create(SpecOfX(x + "layout: NCHW"), ShapeOf(DType::kFloat32, {4, 2, 2, 3})),
      nullptr);
}

// Chunks of a compact step, cut anywhere, become what the definition says; places that are not
// valid are zeros.
void ExpectFinished(v1::Layout layout, DType dtype, std::vector<int64_t> shape, int batch_axis,
                    int channel_axis) {
  const std::string spec =
      std::string(kResized) + kRounded +
      "transforms { normalize { mean: [1, 2, 3] stddev: [5, 6, 7] } } dtype: " +
      v1::DataType_Name(static_cast<v1::DataType>(dtype)) + " layout: " + v1::Layout_Name(layout);
  const auto finished = ShapeOf(dtype, shape, batch_axis);
  const auto finisher = StepFinisher::Create(SpecOfX(spec), finished);
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
    int64_t inner = 1, outer = 1;  // Values of one channel, of one example, that stand together.
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

TEST(StepFinisherTest, EveryLayoutAndTypeIsWhatTheDefinitionSays) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat16}) {
    ExpectFinished(v1::NHWC, dtype, {5, 4, 6, 3}, 0, 3);
    ExpectFinished(v1::NCHW, dtype, {5, 3, 4, 6}, 0, 1);
    ExpectFinished(v1::NCHW, dtype, {2, 3, 32, 32}, 0, 1);  // Runs beyond the longest pattern.
    ExpectFinished(v1::HWCN, dtype, {4, 6, 3, 5}, 3, 2);
  }
}

TEST(StepFinisherTest, ADamagedChunkIsDataLoss) {
  const auto finished = ShapeOf(DType::kFloat32, {4, 3});
  const auto finisher = StepFinisher::Create(
      SpecOfX("shape: 3 transforms { decode_raw {} } dtype: FLOAT32"), finished);
  ASSERT_NE(finisher, nullptr);
  std::vector<uint8_t> step(static_cast<size_t>(finished->bytes()));
  const std::vector<uint8_t> data = {1, 2, 3};
  const auto chunk = ReceivedChunk::Parse(
      EncodeChunk({.core = 4, .tensor = 1, .offset = 3, .crc32c = 99}, data, nullptr));
  ASSERT_THAT(chunk, IsOk());
  EXPECT_THAT(finisher->Place(*chunk, step.data()),
              StatusIs(absl::StatusCode::kDataLoss, testing::HasSubstr("core 4, tensor 1")));
}

}  // namespace
}  // namespace systole
