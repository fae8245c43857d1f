// Steps made by hand for tests of the contact sheet. They hold labels, and images of six coloured
// blocks in any tensor layout and type.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CLIENT_LOOK_SHEET_STEPS_H_
#define SYSTOLE_TESTS_CLIENT_LOOK_SHEET_STEPS_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/step/step.h"
#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"
#include "core/numeric/normalise.h"
#include "core/status/check.h"
#include "google/protobuf/text_format.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The images are [16, 24, channels]. Each of their blocks is one block of a JPEG, 8 x 8 pixels of
// one colour. So the JPEG hardly changes the colours.
inline constexpr int kBlock = 8, kImageHeight = 16, kImageWidth = 24;

// The colour of the block at (y, x). It depends on the example, the block and the channel.
inline uint8_t PixelAt(int64_t example, int64_t y, int64_t x, int64_t channel) {
  const int64_t block = y / kBlock * 3 + x / kBlock;
  return static_cast<uint8_t>(20 + (example * 37 + block * 61 + channel * 83) % 216);
}

inline v1::FeedSpec ParseSpec(const std::string& text) {
  v1::FeedSpec spec;
  SYSTOLE_CHECK(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

// Writes `value` as a number of type `dtype`. REQUIRES: `value` is in the range of `dtype`.
// kInt32 and kInt64 drop the fraction. The other types round.
inline void PutValue(DType dtype, double value, uint8_t* at) {
  const auto put = [at](auto number) { std::memcpy(at, &number, sizeof(number)); };
  switch (dtype) {
    case DType::kUint8:
      return put(RoundToUint8(static_cast<float>(value)));
    case DType::kInt32:
      return put(static_cast<int32_t>(value));
    case DType::kInt64:
      return put(static_cast<int64_t>(value));
    case DType::kFloat32:
      return put(static_cast<float>(value));
    case DType::kBfloat16:
      return put(RoundToBf16(static_cast<float>(value)));
    case DType::kFloat16:
      return put(RoundToFloat16(static_cast<float>(value)));
  }
}

// One tensor of a test's steps. Whatever the layout is, `element` counts an image's values in the
// order [height, width, channels], and a list's values one after the other.
struct SheetTensor {
  std::string name;
  DType dtype = DType::kUint8;
  std::vector<int64_t> shape;  // The shape of one example.
  v1::Layout layout = v1::NHWC;
  std::function<double(int64_t step, int64_t example, int64_t element)> value;
};

struct SheetFeed {
  int num_cores = 2;
  int64_t per_core = 4;
  std::vector<SheetTensor> tensors;
  // Whether a step has an example at place `example`. Places are numbered through all cores:
  // core * per_core + slot. Null: a step has an example at every place.
  std::function<bool(int64_t step, int64_t example)> valid;
  StepPlacement placement = StepPlacement::kCoreMajor;
};

inline SliceTensor SliceTensorOf(const SheetTensor& tensor, int64_t per_core) {
  SliceTensor slice = {.spec = {.name = tensor.name, .dtype = tensor.dtype}};
  std::vector<int64_t>& shape = slice.spec.shape;
  shape = tensor.shape;
  if (tensor.layout == v1::NCHW) shape = {tensor.shape[2], tensor.shape[0], tensor.shape[1]};
  if (tensor.layout == v1::HWCN_TILED) {
    shape.push_back(per_core);
    slice.untiled_shape = shape;
    shape = TiledShape(shape);
  } else if (tensor.layout == v1::HWCN) {
    slice.batch_axis = static_cast<int>(shape.size());
    shape.push_back(per_core);
  } else {
    shape.insert(shape.begin(), per_core);
  }
  return slice;
}

// The index, in a core's tensor, of the value `element` of example `slot`.
inline int64_t PlaceOfElement(const SheetTensor& tensor, int64_t per_core, int64_t slot,
                              int64_t element) {
  int64_t count = 1;
  for (const int64_t size : tensor.shape) count *= size;
  if (tensor.layout == v1::HWCN) return element * per_core + slot;
  if (tensor.layout == v1::HWCN_TILED) {
    // Tests have at most 8 channels, and at most 128 examples on a core. So one tile of 8 x 128
    // values holds all channels and examples of a pixel.
    const int64_t pixel = element / tensor.shape[2];
    const int64_t channel = element % tensor.shape[2];
    return ((pixel * 4 + channel / 2) * 128 + slot) * 2 + channel % 2;
  }
  if (tensor.layout != v1::NCHW) return slot * count + element;
  const int64_t pixels = tensor.shape[0] * tensor.shape[1];
  return slot * count + element % tensor.shape[2] * pixels + element / tensor.shape[2];
}

inline Step MakeStep(const SheetFeed& feed, int64_t number) {
  std::vector<SliceTensor> slices = {
      {.spec = {.name = kValidTensor, .dtype = DType::kUint8, .shape = {feed.per_core}}}};
  for (const SheetTensor& tensor : feed.tensors) {
    slices.push_back(SliceTensorOf(tensor, feed.per_core));
  }
  absl::StatusOr<SliceLayout> layout = SliceLayout::Create(std::move(slices));
  SYSTOLE_CHECK(layout.ok());
  const auto shape = std::make_shared<const StepShape>(
      StepShape{.layout = *layout, .core_end = feed.num_cores, .placement = feed.placement});
  const auto bytes = static_cast<size_t>(shape->bytes());
  StepBuffer buffer(static_cast<uint8_t*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)),
                    [](uint8_t* memory) { std::free(memory); });
  std::memset(buffer.get(), 0, bytes);
  for (int core = 0; core < feed.num_cores; ++core) {
    for (int64_t slot = 0; slot < feed.per_core; ++slot) {
      const int64_t example = core * feed.per_core + slot;
      if (feed.valid && !feed.valid(number, example)) continue;
      buffer.get()[shape->OffsetOf(core, layout->valid_index()) + slot] = 1;
      for (const SheetTensor& tensor : feed.tensors) {
        uint8_t* const at = buffer.get() + shape->OffsetOf(core, layout->IndexOf(tensor.name));
        int64_t count = 1;
        for (const int64_t size : tensor.shape) count *= size;
        for (int64_t i = 0; i < count; ++i) {
          PutValue(tensor.dtype, tensor.value(number, example, i),
                   at + PlaceOfElement(tensor, feed.per_core, slot, i) * DTypeBytes(tensor.dtype));
        }
      }
    }
  }
  return Step(number, shape, std::move(buffer));
}

inline std::vector<Step> MakeSteps(const SheetFeed& feed, int64_t first, int64_t count) {
  std::vector<Step> steps;
  for (int64_t number = first; number < first + count; ++number) {
    steps.push_back(MakeStep(feed, number));
  }
  return steps;
}

// A tensor of images of the coloured blocks. `put` turns a pixel into a value.
inline SheetTensor BlocksTensor(const std::string& name, DType dtype, v1::Layout layout,
                                int64_t channels,
                                std::function<double(uint8_t pixel, int64_t channel)> put) {
  return {.name = name,
          .dtype = dtype,
          .shape = {kImageHeight, kImageWidth, channels},
          .layout = layout,
          .value = [put = std::move(put), channels](int64_t, int64_t example, int64_t element) {
            const int64_t pixel = element / channels;
            const int64_t channel = element % channels;
            return put(PixelAt(example, pixel / kImageWidth, pixel % kImageWidth, channel),
                       channel);
          }};
}

inline SheetTensor LabelTensor() {
  return {
      .name = "label", .dtype = DType::kInt64, .value = [](int64_t step, int64_t example, int64_t) {
        return static_cast<double>(step * 100 + example);
      }};
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_LOOK_SHEET_STEPS_H_
