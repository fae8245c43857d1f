#include "tests/core/operations/random_program.h"

#include <limits>
#include <utility>
#include <vector>

#include "core/image/jpeg/jpeg_encoder.h"
#include "tests/core/image/png/png_builder.h"

namespace systole {
namespace {

// Draws numbers from bytes. Draws zeros when there are no more bytes.
class Bytes {
 public:
  explicit Bytes(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}

  int Below(int limit) {
    const int value = bytes_.empty() ? 0 : bytes_.front();
    if (!bytes_.empty()) bytes_.remove_prefix(1);
    return value % limit;
  }
  // Draws one of -2.0, -1.9, .. 2.0.
  float Number() { return static_cast<float>(Below(41) - 20) / 10; }

 private:
  absl::Span<const uint8_t> bytes_;
};

void DrawTransform(Bytes& bytes, int channels, v1::Transform& transform) {
  const int kind = bytes.Below(9);
  const int height = 1 + bytes.Below(24);
  const int width = 1 + bytes.Below(24);
  const bool keyed = bytes.Below(4) == 0;
  switch (kind) {
    case 0: {
      v1::RandomResizedCrop& crop = *transform.mutable_random_resized_crop();
      crop.set_height(height);
      crop.set_width(width);
      if (keyed) crop.set_area_min(0.5f);
      break;
    }
    case 1:
      transform.mutable_center_crop()->set_height(height);
      transform.mutable_center_crop()->set_width(width);
      transform.mutable_center_crop()->set_fraction(static_cast<float>(bytes.Below(10)) / 9);
      return;
    case 2:
      transform.mutable_resize()->set_height(height);
      transform.mutable_resize()->set_width(width);
      return;
    case 3:
    case 4:
      transform.mutable_random_flip();
      break;
    case 5:
      transform.mutable_round_to_uint8();
      return;
    case 6: {
      v1::Normalize& normalize = *transform.mutable_normalize();
      const int means = bytes.Below(2) == 0 ? 1 : channels;
      for (int i = 0; i < means; ++i) normalize.add_mean(100 * bytes.Number());
      if (bytes.Below(2) == 0) normalize.add_stddev(0.1 + bytes.Below(80));
      if (bytes.Below(2) == 0) normalize.set_scale(1.0 / 255);
      return;
    }
    case 7:
      transform.mutable_random_crop()->set_height(height);
      transform.mutable_random_crop()->set_width(width);
      break;
    default: {
      v1::Brightness& brightness = *transform.mutable_brightness();
      brightness.set_delta_min(-0.1f - static_cast<float>(bytes.Below(10)) / 20);
      brightness.set_delta_max(bytes.Number());
    }
  }
  if (keyed) transform.set_key("other");
}

template <typename Message>
void DrawResizeMethod(Bytes& bytes, Message& message) {
  message.set_method(static_cast<v1::Resize::Method>(bytes.Below(8)));
  // Some methods cannot be combined with antialias or TF1. A program that does so is refused.
  const int kind = bytes.Below(4);
  message.set_antialias(kind == 1);
  if (kind == 2) message.set_sampling(v1::Resize::TF1);
}

// Draws a geometric operation, or a random_resized_crop with a rule and a method.
void DrawGeometry(Bytes& bytes, v1::Transform& transform) {
  const int kind = bytes.Below(16);
  const int height = 1 + bytes.Below(24);
  const int width = 1 + bytes.Below(24);
  const auto size = [&](auto& message) {
    message.set_height(height);
    message.set_width(width);
  };
  switch (kind) {
    case 0:
    case 1:
      size(*transform.mutable_resize());
      DrawResizeMethod(bytes, *transform.mutable_resize());
      transform.mutable_resize()->set_preserve_aspect_ratio(bytes.Below(4) == 0);
      return;
    case 2:
      size(*transform.mutable_resize_with_pad());
      DrawResizeMethod(bytes, *transform.mutable_resize_with_pad());
      return;
    case 3:
    case 4:
      size(*transform.mutable_crop_or_pad());
      return;
    case 5:
    case 6:
      transform.mutable_central_crop()->set_fraction((1 + bytes.Below(20)) / 20.0);
      return;
    case 7:
      size(*transform.mutable_crop());
      transform.mutable_crop()->set_offset_height(bytes.Below(4));
      transform.mutable_crop()->set_offset_width(bytes.Below(4));
      return;
    case 8:
      transform.mutable_pad()->set_height(height + 24);
      transform.mutable_pad()->set_width(width + 24);
      transform.mutable_pad()->set_offset_height(bytes.Below(4));
      transform.mutable_pad()->set_offset_width(bytes.Below(4));
      return;
    case 9:
    case 10:
      transform.mutable_flip_left_right();
      return;
    case 11:
      transform.mutable_flip_up_down();
      return;
    case 12:
      transform.mutable_random_flip_up_down();
      return;
    case 13:
      transform.mutable_transpose();
      return;
    case 14:
      transform.mutable_rot90()->set_k(bytes.Below(4));
      return;
    default: {
      v1::RandomResizedCrop& crop = *transform.mutable_random_resized_crop();
      size(crop);
      crop.set_rule(static_cast<v1::RandomResizedCrop::Rule>(bytes.Below(3)));
      if (crop.rule() == v1::RandomResizedCrop::TPU_RESNET) crop.set_width(height);
      if (bytes.Below(2) == 0) DrawResizeMethod(bytes, crop);
    }
  }
}

// Inserts a drawn operation at a drawn place. The first operation stays first, because it may
// decode.
void InsertGeometry(Bytes& bytes, v1::Output& output) {
  const int end = output.transforms_size();
  DrawGeometry(bytes, *output.add_transforms());
  for (int at = end, place = 1 + bytes.Below(end + 1); at > place; --at) {
    output.mutable_transforms()->SwapElements(at, at - 1);
  }
}

// Newer operations are drawn from the bytes that are left, so that older files of the corpus still
// give the same programs.
void DrawColour(Bytes& bytes, int channels, v1::Transform& transform) {
  const int kind = bytes.Below(10);
  const float low = bytes.Number();
  const float high = low + static_cast<float>(bytes.Below(3));
  const bool seeded = bytes.Below(3) == 0;
  switch (kind) {
    case 0:
      transform.mutable_contrast()->set_factor_min(low);
      transform.mutable_contrast()->set_factor_max(high);
      break;
    case 1:
      transform.mutable_saturation()->set_factor_min(low + 2);
      transform.mutable_saturation()->set_factor_max(high + 2);
      break;
    case 2:
      transform.mutable_hue()->set_delta_min(low / 2);
      transform.mutable_hue()->set_delta_max(1);
      break;
    case 3:
      transform.mutable_gamma()->set_gamma_min(low + 2);
      transform.mutable_gamma()->set_gamma_max(high + 2);
      return;
    case 4:
      transform.mutable_grayscale()->set_channels(channels);
      return;
    case 5:
      transform.mutable_per_image_standardization();
      return;
    case 6:
      transform.mutable_cast()->set_dtype(high > low ? v1::UINT8 : v1::FLOAT32);
      transform.mutable_cast()->set_scale(seeded);
      return;
    case 7:
      transform.mutable_clip_by_value()->set_min(seeded ? 20 : low);
      transform.mutable_clip_by_value()->set_max(seeded ? 200 : high + 1);
      return;
    case 8:
      transform.mutable_trivial_augment();
      return;
    default:
      transform.mutable_random_erasing()->set_probability(0.9f);
      if (seeded) transform.mutable_random_erasing()->add_value(9);
      return;
  }
  if (!seeded) return;
  transform.add_tf_seed(bytes.Below(256));
  transform.add_tf_seed(-1);
}

// Replaces `drawn` by a program over int64 values.
void DrawLabels(Bytes& bytes, RandomProgram& drawn) {
  drawn.stored.clear();
  drawn.floats.clear();
  v1::Output& output = drawn.output;
  output.clear_transforms();
  output.clear_shape();
  output.set_dtype(v1::INT64);
  const int count = 1 + bytes.Below(5);
  output.add_shape(count);
  const int64_t odd[] = {-1, std::numeric_limits<int64_t>::min(), int64_t{1} << 53};
  for (int i = 0; i < count; ++i) {
    const int value = bytes.Below(12);
    drawn.int64s.push_back(value < 3 ? odd[value] : value);
  }
  if (bytes.Below(2) == 0) {
    v1::LabelMap& map = *output.add_transforms()->mutable_label_map();
    for (const int64_t key : {3, 4, 5, 6}) {
      map.add_keys(key);
      map.add_values(bytes.Below(256));
    }
    if (bytes.Below(3) > 0) map.set_default_value(int64_t{1} << 40);
  }
  const v1::DataType dtypes[] = {v1::UINT8, v1::FLOAT32, v1::BFLOAT16};
  const int end = bytes.Below(4);
  if (end == 0) {
    if (bytes.Below(2) == 0) output.set_dtype(v1::INT32);
    return;
  }
  if (end == 1) {
    output.add_transforms()->mutable_cast()->set_dtype(v1::FLOAT32);
  } else {
    output.add_transforms()->mutable_one_hot()->set_depth(1 + bytes.Below(8));
  }
  output.set_dtype(dtypes[bytes.Below(3)]);
  if (bytes.Below(2) == 0) output.add_transforms()->mutable_normalize()->set_scale(0.5);
  if (bytes.Below(2) == 0) output.add_transforms()->mutable_gamma()->set_gamma_max(2);
}

// Replaces the first decode operation by another decode of the same pixels or bytes.
void ReplaceDecode(Bytes& bytes, absl::string_view pixels, int height, int width, int channels,
                   RandomProgram& drawn) {
  v1::Transform& first = *drawn.output.mutable_transforms(0);
  const int way = bytes.Below(4);
  if (first.has_decode_raw()) {
    if (way < 2) return;
    const bool floats = way == 2;
    first.mutable_decode_raw()->set_stored(floats ? v1::DecodeRaw::FLOAT32 : v1::DecodeRaw::UINT16);
    drawn.stored += drawn.stored;
    if (floats) {
      drawn.stored += drawn.stored;
      return;
    }
    // decode_raw of uint16 gives int64. Most operations want uint8 or float32, so a cast follows.
    drawn.output.add_transforms()->mutable_cast()->set_dtype(v1::FLOAT32);
    for (int i = drawn.output.transforms_size() - 1; i > 1; --i) {
      drawn.output.mutable_transforms()->SwapElements(i, i - 1);
    }
    return;
  }
  if (!first.has_decode_jpeg()) return;
  const v1::DecodeJpeg jpeg = first.decode_jpeg();
  switch (way) {
    case 0:
    case 1:
      first.mutable_decode_jpeg()->set_plain_upscaling(way == 1);
      if (bytes.Below(2) == 1) first.mutable_decode_jpeg()->set_scale(v1::DecodeJpeg::AUTO);
      return;
    case 2:
      first.mutable_decode_png()->set_channels(jpeg.channels());
      break;
    default:
      first.mutable_decode_image()->set_channels(jpeg.channels());
      first.mutable_decode_image()->set_dct(jpeg.dct());
      if (bytes.Below(2) == 0) return;
  }
  drawn.stored = PngOf(pixels, width, height, channels);
}

}  // namespace

RandomProgram DrawProgram(absl::Span<const uint8_t> data) {
  Bytes bytes(data);
  RandomProgram drawn;
  const int height = 1 + bytes.Below(40);
  const int width = 1 + bytes.Below(40);
  const int channels = bytes.Below(3) == 0 ? 1 : 3;
  const int kind = bytes.Below(5);
  const bool is_jpeg = kind > 1;
  drawn.example = {.seed = static_cast<uint64_t>(bytes.Below(256)),
                   .epoch = bytes.Below(4),
                   .record = bytes.Below(256)};
  // The pixels change slowly, so that their JPEG is small. The bytes decide how much noise is
  // added.
  const int noise = bytes.Below(64);
  std::string pixels;
  for (int i = 0; i < height * width * channels; ++i) {
    pixels.push_back(static_cast<char>((i / width * 5 + i % width * 3 + i * noise) & 255));
  }
  v1::Output& output = drawn.output;
  output.set_name("x");
  output.set_feature("x");
  if (is_jpeg) {
    const JpegSampling samplings[] = {JpegSampling::k444, JpegSampling::k422, JpegSampling::k420,
                                      JpegSampling::k440};
    drawn.stored = *EncodeJpeg(
        absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(pixels.data()), pixels.size()), width,
        height, channels,
        {.quality = 40 + bytes.Below(60),
         .sampling = samplings[bytes.Below(4)],
         .progressive = bytes.Below(8) == 0});
    v1::DecodeJpeg& decode = *output.add_transforms()->mutable_decode_jpeg();
    decode.set_dct(bytes.Below(2) == 0 ? v1::DecodeJpeg::ISLOW : v1::DecodeJpeg::IFAST);
    decode.set_channels(bytes.Below(8) == 0 ? 4 - channels : channels);
  } else if (kind == 0) {
    for (const char pixel : pixels) {
      const float odd[] = {-0.0f, std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(), 1e-40f};
      const auto value = static_cast<uint8_t>(pixel);
      drawn.floats.push_back(value < 4 ? odd[value] : static_cast<float>(value) - 100.25f);
    }
    for (const int size : {height, width, channels}) output.add_shape(size);
  } else {
    drawn.stored = pixels;
    output.add_transforms()->mutable_decode_raw();
    for (const int size : {height, width, channels}) output.add_shape(size);
  }
  const v1::DataType dtypes[] = {v1::UINT8, v1::FLOAT32, v1::BFLOAT16};
  output.set_dtype(dtypes[bytes.Below(3)]);
  const int count = bytes.Below(9);
  for (int i = 0; i < count; ++i) DrawTransform(bytes, channels, *output.add_transforms());
  // The following draws were added later. They come last, so that older files of the corpus still
  // give the same programs.
  const int more = bytes.Below(4);
  for (int i = 0; i < more; ++i) InsertGeometry(bytes, output);
  const int later = bytes.Below(5);
  if (later == 4) {
    DrawLabels(bytes, drawn);
    return drawn;
  }
  for (int i = 0; i < later; ++i) {
    DrawColour(bytes, channels, *output.add_transforms());
    // The place is anywhere after the decode.
    const int first = kind == 0 ? 0 : 1;
    const int last = output.transforms_size() - 1;
    const int place = first + bytes.Below(last - first + 1);
    for (int j = last; j > place; --j) output.mutable_transforms()->SwapElements(j, j - 1);
  }
  if (kind > 0) ReplaceDecode(bytes, pixels, height, width, channels, drawn);
  if (output.dtype() == v1::BFLOAT16 && bytes.Below(2) == 1) output.set_dtype(v1::FLOAT16);
  return drawn;
}

std::shared_ptr<const Program> CompileDrawn(const RandomProgram& drawn) {
  const std::vector<int64_t> shape(drawn.output.shape().begin(), drawn.output.shape().end());
  ValueType input = {.element = ElementType::kBytes};
  if (!drawn.floats.empty()) input = {.element = ElementType::kFloat32, .shape = shape};
  if (!drawn.int64s.empty()) input = {.element = ElementType::kInt64, .shape = shape};
  absl::StatusOr<Program> program = Program::Create(drawn.output.transforms(), input, shape);
  if (!program.ok() || !program->output().has_size()) return nullptr;
  return std::make_shared<const Program>(*std::move(program));
}

}  // namespace systole
