#include "core/picture/image_output.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/operations/ops/operation.h"
#include "core/operations/program.h"
#include "core/picture/elements.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The offset of an example's first element from the tensor's start, in bytes.
int64_t FirstOffset(const SliceTensor& tensor, int64_t slot) {
  return tensor.is_tiled() ? TiledPiecesOf(tensor, slot).offset : PiecesOf(tensor, slot).offset;
}

}  // namespace

absl::StatusOr<std::optional<ImageOutput>> ImageOutput::Create(const v1::Output& output,
                                                               const SliceTensor& tensor,
                                                               int64_t max_edge) {
  const std::vector<int64_t>& shape = tensor.spec.shape;
  const DType dtype = tensor.spec.dtype;
  const int batch_axis = output.layout() == v1::HWCN ? 3 : 0;
  const bool is_tiled = output.layout() == v1::HWCN_TILED;
  if (tensor.is_tiled() != is_tiled || tensor.batch_axis != batch_axis) return std::nullopt;
  if (!is_tiled && shape.size() != 4) return std::nullopt;
  if (dtype == DType::kInt32 || dtype == DType::kInt64) return std::nullopt;
  ImageOutput image;
  image.dtype_ = dtype;
  image.tensor_ = tensor;
  int64_t channel_step = 1;
  switch (output.layout()) {
    case v1::NCHW:
      image.channels_ = shape[1], image.height_ = shape[2], image.width_ = shape[3];
      image.x_step_ = 1, image.y_step_ = shape[3], channel_step = shape[2] * shape[3];
      break;
    case v1::HWCN:
      image.height_ = shape[0], image.width_ = shape[1], image.channels_ = shape[2];
      channel_step = shape[3];
      image.x_step_ = shape[2] * shape[3], image.y_step_ = shape[1] * shape[2] * shape[3];
      break;
    case v1::HWCN_TILED: {
      const std::vector<int64_t>& untiled = tensor.untiled_shape;
      image.height_ = untiled[0], image.width_ = untiled[1], image.channels_ = untiled[2];
      // Pictures have so few channels that all channels of a pixel are in one tile.
      image.x_step_ = shape[3] * shape[4] * shape[5] * shape[6];
      image.y_step_ = shape[1] * shape[2] * image.x_step_;
      break;
    }
    default:
      image.height_ = shape[1], image.width_ = shape[2], image.channels_ = shape[3];
      image.x_step_ = shape[3], image.y_step_ = shape[2] * shape[3];
  }
  if (image.channels_ != 1 && image.channels_ != 3) return std::nullopt;
  for (int64_t c = 0; c < image.channels_; ++c) {
    image.channel_at_[static_cast<size_t>(c)] =
        is_tiled ? c / kTilePack * kTileExamples * kTilePack + c % kTilePack : c * channel_step;
  }
  image.every_ = (std::max(image.height_, image.width_) + max_edge - 1) / max_edge;
  SYSTOLE_RETURN_IF_ERROR(image.UndoNormalizes(output));
  return image;
}

absl::Status ImageOutput::UndoNormalizes(const v1::Output& output) {
  if (output.transforms().empty()) return absl::OkStatus();
  const std::vector<int64_t> shape(output.shape().begin(), output.shape().end());
  absl::StatusOr<Program> program =
      Program::Create(output.transforms(), {.element = ElementType::kBytes}, shape);
  if (program.ok()) {
    // decode_raw may also decode numbers that are not 0 to 255.
    from_uint8_ = program->steps().front().output.element == ElementType::kUint8;
  } else {
    program = Program::Create(output.transforms(),
                              {.element = ElementType::kFloat32, .shape = shape}, shape);
  }
  if (!program.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("output '", output.name(), "': ", program.status().message()));
  }
  for (const Program::Step& step : program->steps()) {
    const std::optional<NormaliseFactors> factors = FactorsOfNormalise(*step.operation);
    if (!factors.has_value()) continue;
    is_normalized_ = true;
    const size_t count = factors->scale.size();
    if (count != 1 && count != static_cast<size_t>(channels_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("output '", output.name(), "' has ", channels_,
                       " channels in the steps, but its normalize has factors for ", count));
    }
    // Transforms that move or mix pixels do not matter here, because the factors belong to a
    // channel.
    for (size_t channel = 0; channel < static_cast<size_t>(channels_); ++channel) {
      const double scale = static_cast<double>(factors->scale[count == 1 ? 0 : channel]);
      const double bias = static_cast<double>(factors->bias[count == 1 ? 0 : channel]);
      scale_[channel] *= scale;
      bias_[channel] = bias_[channel] * scale + bias;
    }
  }
  return absl::OkStatus();
}

double ImageOutput::PutBack(const uint8_t* example, int64_t y, int64_t x, int64_t channel) const {
  const int64_t element = y * y_step_ + x * x_step_ + channel_at_[static_cast<size_t>(channel)];
  const double value = NumberAt(dtype_, example + element * DTypeBytes(dtype_));
  const size_t c = static_cast<size_t>(channel);
  return (value - bias_[c]) / scale_[c];
}

void ImageOutput::Widen(const uint8_t* values, int64_t slot) {
  if (from_uint8_ && is_normalized_) return;  // IsStretched() does not need the range.
  const uint8_t* const example = values + FirstOffset(tensor_, slot);
  for (int64_t y = 0; y < height_; ++y) {
    for (int64_t x = 0; x < width_; ++x) {
      for (int64_t channel = 0; channel < channels_; ++channel) {
        const double value = PutBack(example, y, x, channel);
        if (!std::isfinite(value)) continue;
        min_ = std::min(min_, value);
        max_ = std::max(max_, value);
      }
    }
  }
}

bool ImageOutput::IsStretched() const {
  if (min_ > max_) return false;  // No values at all.
  if (from_uint8_ && is_normalized_) return false;
  // Values of bfloat16 are a little off when normalize is undone.
  if (min_ < -2 || max_ > 257) return true;
  // Floats that are stored as 0 to 1 would all be black.
  return !from_uint8_ && dtype_ != DType::kUint8 && max_ <= 1;
}

ImageOutput::Scale ImageOutput::PixelScale() const {
  return IsStretched() ? Scale{.black = min_, .white = max_} : Scale();
}

std::string ImageOutput::HowText() const {
  std::string text = is_normalized_ ? "normalize undone" : "";
  if (IsStretched()) {
    absl::StrAppendFormat(&text, "%sstretched over their range: %.4g is black, %.4g is white",
                          is_normalized_ ? " and " : "", min_, max_);
  } else {
    absl::StrAppend(&text, is_normalized_ ? "" : "taken as they are", ": 0 is black, 255 is white");
  }
  if (every_ > 1) {
    absl::StrAppend(&text, "; of ", width_, " x ", height_, " pixels every ", every_,
                    every_ == 2   ? "nd"
                    : every_ == 3 ? "rd"
                                  : "th",
                    " is shown, across and down");
  }
  return text;
}

absl::StatusOr<ShownPicture> ImageOutput::Picture(const uint8_t* values, int64_t slot) const {
  ShownPicture picture = {.width = width(), .height = height()};
  const Scale scale = PixelScale();
  // An image with only one value is drawn grey.
  const double factor = scale.white > scale.black ? 255 / (scale.white - scale.black) : 0;
  const double offset = factor == 0 ? 128 : 0;
  std::vector<uint8_t> pixels;
  pixels.reserve(static_cast<size_t>(picture.width * picture.height * channels_));
  const uint8_t* const example = values + FirstOffset(tensor_, slot);
  for (int64_t y = 0; y < height_; y += every_) {
    for (int64_t x = 0; x < width_; x += every_) {
      for (int64_t channel = 0; channel < channels_; ++channel) {
        const double value = (PutBack(example, y, x, channel) - scale.black) * factor + offset;
        // Not clamp(), which returns NaN for NaN.
        pixels.push_back(value > 0 ? static_cast<uint8_t>(std::lround(std::min(value, 255.0))) : 0);
      }
    }
  }
  // Colour has full resolution, because pictures are small and a single wrong pixel must show.
  SYSTOLE_ASSIGN_OR_RETURN(
      picture.jpeg, EncodeJpeg(pixels, picture.width, picture.height, static_cast<int>(channels_),
                               {.quality = 90, .sampling = JpegSampling::k444}));
  return picture;
}

}  // namespace systole
