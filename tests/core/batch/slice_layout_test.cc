#include "core/batch/slice_layout.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/memory/aligned_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SliceTensor Tensor(std::string name, DType dtype, std::vector<int64_t> shape, int batch_axis = 0) {
  return {.spec = {.name = std::move(name), .dtype = dtype, .shape = std::move(shape)},
          .batch_axis = batch_axis};
}

SliceLayout MustCreate(std::vector<SliceTensor> tensors) {
  absl::StatusOr<SliceLayout> layout = SliceLayout::Create(std::move(tensors));
  EXPECT_THAT(layout, IsOk());
  return *layout;
}

TEST(SliceLayoutTest, TensorsAreSortedByNameAndAlignedToCacheLines) {
  const SliceLayout layout =
      MustCreate({Tensor("valid", DType::kUint8, {3}), Tensor("image", DType::kUint8, {3, 5, 5, 3}),
                  Tensor("label", DType::kInt64, {3})});
  ASSERT_EQ(layout.tensors().size(), 3u);
  EXPECT_EQ(layout.tensors()[0].spec.name, "image");
  EXPECT_EQ(layout.tensors()[1].spec.name, "label");
  EXPECT_EQ(layout.tensors()[2].spec.name, "valid");
  EXPECT_EQ(layout.tensors()[0].offset, 0);
  EXPECT_EQ(layout.tensors()[1].offset, 256);  // 225 bytes, rounded up.
  EXPECT_EQ(layout.tensors()[2].offset, 320);
  EXPECT_EQ(layout.slice_bytes(), 384);
  EXPECT_EQ(layout.payload_bytes(), 225 + 24 + 3);
  EXPECT_EQ(layout.per_core_batch(), 3);
  EXPECT_EQ(layout.IndexOf("label"), 1);
  EXPECT_EQ(layout.IndexOf("nobody"), -1);
  EXPECT_EQ(layout.valid_index(), 2);
}

TEST(SliceLayoutTest, AnExampleOfABatchInnermostTensorIsStrided) {
  const SliceLayout layout = MustCreate(
      {Tensor("x", DType::kUint8, {2, 3}, /*batch_axis=*/1), Tensor("valid", DType::kUint8, {3})});
  std::vector<uint8_t> slice(static_cast<size_t>(layout.slice_bytes()), 0);
  const uint8_t example[] = {7, 9};
  PlaceExample(layout.tensors()[1], /*slot=*/1, example, slice.data());
  EXPECT_THAT(layout.View(1, slice.data()).As<uint8_t>(), ElementsAre(0, 7, 0, 0, 9, 0));
}

TEST(SliceLayoutTest, ClearingAnExampleTouchesNoOther) {
  const SliceLayout layout = MustCreate({Tensor("a", DType::kUint8, {2, 2}),
                                         Tensor("b", DType::kUint8, {2, 2}, /*batch_axis=*/1),
                                         Tensor("valid", DType::kUint8, {2})});
  std::vector<uint8_t> slice(static_cast<size_t>(layout.slice_bytes()), 1);
  ClearExample(layout, /*slot=*/0, slice.data());
  EXPECT_THAT(layout.View(0, slice.data()).As<uint8_t>(), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(layout.View(1, slice.data()).As<uint8_t>(), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(layout.View(2, slice.data()).As<uint8_t>(), ElementsAre(0, 1));
}

TEST(SliceLayoutTest, DigestDependsOnNamesTypesShapesAndBytesButNotOnPadding) {
  const SliceLayout layout =
      MustCreate({Tensor("x", DType::kUint8, {2, 3}), Tensor("valid", DType::kUint8, {2})});
  std::vector<uint8_t> slice(static_cast<size_t>(layout.slice_bytes()), 5);
  const std::string digest = SliceDigest(layout, slice.data());
  EXPECT_EQ(digest.size(), 32u);

  std::vector<uint8_t> other_padding = slice;
  other_padding[static_cast<size_t>(layout.slice_bytes()) - 1] = 6;
  EXPECT_EQ(SliceDigest(layout, other_padding.data()), digest);

  std::vector<uint8_t> other_byte = slice;
  other_byte[0] = 6;
  EXPECT_NE(SliceDigest(layout, other_byte.data()), digest);

  const SliceLayout other_name =
      MustCreate({Tensor("y", DType::kUint8, {2, 3}), Tensor("valid", DType::kUint8, {2})});
  EXPECT_NE(SliceDigest(other_name, slice.data()), digest);
  const SliceLayout other_shape =
      MustCreate({Tensor("x", DType::kUint8, {2, 3, 1}), Tensor("valid", DType::kUint8, {2})});
  EXPECT_NE(SliceDigest(other_shape, slice.data()), digest);

  // Two types of the same width, so the bytes are the same.
  const SliceLayout int32s =
      MustCreate({Tensor("x", DType::kInt32, {2, 3}), Tensor("valid", DType::kUint8, {2})});
  const SliceLayout floats =
      MustCreate({Tensor("x", DType::kFloat32, {2, 3}), Tensor("valid", DType::kUint8, {2})});
  slice.resize(static_cast<size_t>(int32s.slice_bytes()), 5);
  EXPECT_NE(SliceDigest(floats, slice.data()), SliceDigest(int32s, slice.data()));
}

// proto/README.md publishes these numbers, which another program computed.
TEST(SliceLayoutTest, DigestsAreThePublishedOnes) {
  const SliceLayout layout =
      MustCreate({Tensor("x", DType::kInt32, {2, 3}), Tensor("valid", DType::kUint8, {2})});
  std::vector<uint8_t> slice(static_cast<size_t>(layout.slice_bytes()), 0xee);
  slice[0] = slice[1] = 1;
  const int32_t x[] = {1, -1, 2, -2, 3, -3};
  std::memcpy(slice.data() + layout.tensors()[1].offset, x, sizeof x);
  EXPECT_EQ(SliceDigest(layout, slice.data()), "8d1e28737756d1df18a782d4ae4c7725");
  EXPECT_EQ(ExampleDigest(layout, 1, slice.data()), "6219ec04737e3899061184f3dbcc4395");
}

// An example's digest does not depend on the example's place in the batch or on the batch size.
TEST(SliceLayoutTest, ExampleDigestIsTheSameInEveryPlaceAndBatch) {
  const SliceLayout two =
      MustCreate({Tensor("x", DType::kUint8, {2, 2}), Tensor("valid", DType::kUint8, {2})});
  const SliceLayout three =
      MustCreate({Tensor("x", DType::kUint8, {3, 2}), Tensor("valid", DType::kUint8, {3})});
  const uint8_t example[] = {7, 9};
  std::vector<uint8_t> a(static_cast<size_t>(two.slice_bytes()), 1);
  std::vector<uint8_t> b(static_cast<size_t>(three.slice_bytes()), 1);
  PlaceExample(two.tensors()[1], 0, example, a.data());
  PlaceExample(three.tensors()[1], 2, example, b.data());
  EXPECT_EQ(ExampleDigest(two, 0, a.data()), ExampleDigest(three, 2, b.data()));
  EXPECT_NE(ExampleDigest(two, 0, a.data()), ExampleDigest(two, 1, a.data()));
}

// Error paths: descriptions may come from a peer.

// A feed has at most 65 tensors: 64 outputs and `valid`.
TEST(SliceLayoutTest, ASliceHasAtMost65Tensors) {
  std::vector<SliceTensor> tensors = {Tensor("valid", DType::kUint8, {2})};
  while (tensors.size() < 65) {
    tensors.push_back(Tensor(absl::StrCat("t", tensors.size()), DType::kInt32, {2}));
  }
  EXPECT_THAT(SliceLayout::Create(tensors), IsOk());
  tensors.push_back(Tensor("one-more", DType::kInt32, {2}));
  EXPECT_THAT(SliceLayout::Create(tensors),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a slice of 66 tensors, want at most 65")));
}

TEST(SliceLayoutTest, BadDescriptionsAreRefusedByName) {
  const SliceTensor valid = Tensor("valid", DType::kUint8, {2});
  const auto refuses = [](std::vector<SliceTensor> tensors, const std::string& message) {
    EXPECT_THAT(SliceLayout::Create(std::move(tensors)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refuses({}, "at least one tensor");
  refuses({Tensor("x", DType::kUint8, {2})}, "'valid' is missing");
  refuses({Tensor("valid", DType::kInt64, {2})}, "'valid' must be uint8[per-core batch]");
  refuses({valid, valid}, "two outputs are named 'valid'");
  refuses({valid, Tensor("x", DType::kUint8, {})}, "'x' has 0 dimensions");
  refuses({valid, Tensor("", DType::kUint8, {2})}, "no name");
  refuses({valid, Tensor("x", DType::kUint8, {2, 0})}, "dimension of 0");
  refuses({valid, Tensor("x", DType::kUint8, {2, -1})}, "dimension of -1");
  refuses({valid, Tensor("x", DType::kUint8, {3})}, "want the same");
  refuses({valid, Tensor("x", DType::kUint8, {5, 2, 5}, /*batch_axis=*/1)}, "batch axis 1");
  refuses({valid, Tensor("x", DType::kInt64, {2, int64_t{1} << 62})}, "larger than");
  refuses({valid, Tensor("x", DType::kInt64, {2, int64_t{1} << 31, int64_t{1} << 31})},
          "larger than");
  refuses({valid, Tensor("x", DType::kUint8, {2, int64_t{1} << 34}),
           Tensor("y", DType::kUint8, {2, int64_t{1} << 34}),
           Tensor("z", DType::kUint8, {2, int64_t{1} << 34})},
          "larger than");
}

}  // namespace
}  // namespace systole
