// Checks that a tensor in tiles has the shape that feed.proto states, and has each element where
// feed.proto states.
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SliceTensor Tiled(std::vector<int64_t> untiled) {
  SliceTensor tensor = {.spec = {.name = "x", .dtype = DType::kBfloat16}};
  tensor.spec.shape = TiledShape(untiled);
  tensor.untiled_shape = std::move(untiled);
  return tensor;
}

SliceTensor Valid(int64_t batch) {
  return {.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {batch}}};
}

SliceLayout MustCreate(std::vector<SliceTensor> tensors) {
  absl::StatusOr<SliceLayout> layout = SliceLayout::Create(std::move(tensors));
  EXPECT_THAT(layout, IsOk());
  return *layout;
}

// Values that differ from place to place, and are never 0.
uint16_t ValueOf(int64_t n, int64_t y, int64_t x, int64_t c) {
  return static_cast<uint16_t>(1 + (n * 4099 + y * 257 + x * 31 + c) % 65535);
}

std::vector<uint8_t> ExampleOf(int64_t n, int64_t height, int64_t width, int64_t channels) {
  std::vector<uint16_t> values;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) values.push_back(ValueOf(n, y, x, c));
    }
  }
  std::vector<uint8_t> bytes(values.size() * sizeof(uint16_t));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(TilesTest, TheShapePadsChannelsToEightAndExamplesTo128) {
  EXPECT_THAT(TiledShape({5, 7, 3, 16}), ElementsAre(5, 7, 1, 1, 4, 128, 2));
  EXPECT_THAT(TiledShape({5, 7, 8, 128}), ElementsAre(5, 7, 1, 1, 4, 128, 2));
  EXPECT_THAT(TiledShape({1, 1, 9, 129}), ElementsAre(1, 1, 2, 2, 4, 128, 2));
}

// The buffer is filled first, so that a byte that nobody writes is not zero. Then most places get
// an example, and the others are cleared.
TEST(TilesTest, TilesHaveEveryElementAtItsPlaceAndZerosElsewhere) {
  for (const int64_t channels : {1, 2, 3, 7, 8, 9, 16, 19}) {
    for (const int64_t batch : {1, 3, 127, 128, 129, 257}) {
      SCOPED_TRACE(absl::StrCat(channels, " channels, ", batch, " examples"));
      constexpr int64_t kHeight = 2;
      constexpr int64_t kWidth = 3;
      const SliceLayout layout =
          MustCreate({Tiled({kHeight, kWidth, channels, batch}), Valid(batch)});
      const SliceTensor& tensor = layout.tensors()[1];
      std::vector<uint8_t> slice(static_cast<size_t>(layout.slice_bytes()), 0xa5);
      ClearTilePadding(layout, slice.data());
      for (int64_t n = batch - 1; n >= 0; --n) {
        if (n % 5 == 2) {
          ClearExample(layout, n, slice.data());
        } else {
          PlaceExample(tensor, n, ExampleOf(n, kHeight, kWidth, channels).data(), slice.data());
        }
      }
      const int64_t tiles_c = (channels + 7) / 8;
      const int64_t tiles_n = (batch + 127) / 128;
      const absl::Span<const uint16_t> got = layout.View(1, slice.data()).As<uint16_t>();
      ASSERT_EQ(got.size(), static_cast<size_t>(kHeight * kWidth * tiles_c * tiles_n * 1024));
      size_t at = 0;
      for (int64_t y = 0; y < kHeight; ++y) {
        for (int64_t x = 0; x < kWidth; ++x) {
          for (int64_t tile_c = 0; tile_c < tiles_c; ++tile_c) {
            for (int64_t tile_n = 0; tile_n < tiles_n; ++tile_n) {
              for (int64_t pair = 0; pair < 4; ++pair) {
                for (int64_t lane = 0; lane < 128; ++lane) {
                  for (int64_t half = 0; half < 2; ++half, ++at) {
                    const int64_t c = tile_c * 8 + pair * 2 + half;
                    const int64_t n = tile_n * 128 + lane;
                    const bool is_value = c < channels && n < batch && n % 5 != 2;
                    ASSERT_EQ(got[at], is_value ? ValueOf(n, y, x, c) : 0)
                        << "y " << y << ", x " << x << ", c " << c << ", n " << n;
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(TilesTest, AnExampleHasTheSameDigestInTilesAsInHwcn) {
  const SliceLayout tiles = MustCreate({Tiled({4, 3, 5, 130}), Valid(130)});
  const SliceLayout plain = MustCreate(
      {{.spec = {.name = "x", .dtype = DType::kBfloat16, .shape = {4, 3, 5, 130}}, .batch_axis = 3},
       Valid(130)});
  std::vector<uint8_t> a(static_cast<size_t>(tiles.slice_bytes()), 1);
  std::vector<uint8_t> b(static_cast<size_t>(plain.slice_bytes()), 1);
  for (const int64_t n : {0, 77, 129}) {
    const std::vector<uint8_t> example = ExampleOf(n, 4, 3, 5);
    PlaceExample(tiles.tensors()[1], n, example.data(), a.data());
    PlaceExample(plain.tensors()[1], n, example.data(), b.data());
    EXPECT_EQ(ExampleDigest(tiles, n, a.data()), ExampleDigest(plain, n, b.data()));
  }
}

TEST(TilesTest, UsefulBytesAreThoseOfTheExamples) {
  const SliceLayout layout = MustCreate({Tiled({4, 3, 5, 130}), Valid(130)});
  EXPECT_EQ(layout.per_core_batch(), 130);
  EXPECT_EQ(layout.tensors()[1].example_bytes(), 4 * 3 * 5 * 2);
  EXPECT_THAT(layout.tensors()[1].example_shape(), ElementsAre(4, 3, 5));
  EXPECT_EQ(layout.payload_bytes(), 4 * 3 * 2 * 1024 * 2 + 130);
  EXPECT_EQ(layout.useful_bytes(), 4 * 3 * 5 * 130 * 2 + 130);
}

// Descriptions may come from a peer.
TEST(TilesTest, DescriptionsThatContradictThemselvesAreRefused) {
  const auto refuses = [](const SliceTensor& tensor, const std::string& message) {
    EXPECT_THAT(SliceLayout::Create({tensor, Valid(130)}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  const SliceTensor good = Tiled({4, 3, 5, 130});
  EXPECT_THAT(SliceLayout::Create({good, Valid(130)}), IsOk());
  SliceTensor tensor = good;
  tensor.spec.dtype = DType::kFloat32;
  refuses(tensor, "tensor 'x' in tiles of [4,3,5,130] is float32, want bfloat16");
  for (size_t i = 0; i < 7; ++i) {
    tensor = good;
    ++tensor.spec.shape[i];
    refuses(tensor, "want [4,3,1,2,4,128,2] and 0");
  }
  tensor = good;
  tensor.spec.shape = {3};
  refuses(tensor, "has the shape [3] and batch axis 0");
  tensor = good;
  tensor.batch_axis = 6;
  refuses(tensor, "batch axis 6");
  for (const std::vector<int64_t>& untiled :
       {std::vector<int64_t>{4, 3, 5}, {4, 3, 5, 130, 1}, {4, 3, 0, 130}, {4, 3, -8, 130}}) {
    tensor = good;
    tensor.untiled_shape = untiled;
    refuses(tensor, "needs [height, width, channels, per-core batch], each 1 or more");
  }
  tensor = good;
  tensor.untiled_shape[3] = 131;
  refuses(tensor, "holds 131 examples");
  // The largest sizes are refused, too, without an overflow.
  tensor.untiled_shape = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
  refuses(tensor, "has the shape [4,3,1,2,4,128,2]");
}

}  // namespace
}  // namespace systole
