#include "bench/breadth_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "google/protobuf/text_format.h"

namespace systole::bench {
namespace {

constexpr char kCrop[] = "random_resized_crop { height: 224 width: 224 }";
constexpr char kResize[] = "resize { height: 224 width: 224 }";
constexpr char kFlip[] = "random_flip {}";
constexpr char kNormalize[] =
    "normalize { scale: 0.00392156862745098 mean: [0.485, 0.456, 0.406] "
    "stddev: [0.229, 0.224, 0.225] }";
constexpr char kToUnit[] = "normalize { stddev: 255 }";

// Text that ImageSpec() adds to the output `image`, to the output `label`, and to the feed itself.
struct ImageFields {
  absl::string_view image = "";
  absl::string_view label = "";
  absl::string_view feed = "";
};

v1::FeedSpec SpecOf(absl::string_view text) {
  v1::FeedSpec spec;
  SYSTOLE_CHECK(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("seed: 7 shuffle { mode: GLOBAL } num_cores: 1 ", text), &spec));
  return spec;
}

// A feed of float32 images and labels.
v1::FeedSpec ImageSpec(const std::vector<std::string>& transforms, const ImageFields& more = {}) {
  std::string steps;
  for (const std::string& transform : transforms) {
    absl::StrAppend(&steps, "transforms { ", transform, " } ");
  }
  return SpecOf(absl::StrCat(
      "global_batch: 128 outputs { name: 'image' feature: 'image' ", steps, "dtype: FLOAT32 ",
      more.image, " } outputs { name: 'label' feature: 'label' ", more.label, " } ", more.feed));
}

v1::FeedSpec JpegSpec(std::vector<std::string> transforms, const ImageFields& more = {}) {
  transforms.insert(transforms.begin(), "decode_jpeg {}");
  return ImageSpec(transforms, more);
}

// A feed whose examples have a list of numbers and a label. `output` describes the list.
v1::FeedSpec ListSpec(absl::string_view output) {
  return SpecOf(absl::StrCat("global_batch: 1024 outputs { ", output,
                             " } outputs { name: 'label' feature: 'label' }"));
}

std::vector<BreadthRow> PhotographRows() {
  return {
      {.name = "crop",
       .figure = "random_resized_crop, random_flip, normalize",
       .spec = JpegSpec({kCrop, kFlip, kNormalize})},
      {.name = "crop_antialias",
       .figure = "random_resized_crop with antialias, random_flip, normalize",
       .spec = JpegSpec(
           {"random_resized_crop { height: 224 width: 224 antialias: true }", kFlip, kNormalize})},
      {.name = "crop_tpu_resnet",
       .figure = "random_resized_crop of the TPU ResNet (BICUBIC, TF1), random_flip, normalize",
       .spec = JpegSpec({"random_resized_crop { height: 224 width: 224 rule: TPU_RESNET "
                         "method: BICUBIC sampling: TF1 }",
                         kFlip, kNormalize})},
      {.name = "center_crop",
       .figure = "center_crop of 0.875, normalize",
       .spec = JpegSpec({"center_crop { height: 224 width: 224 fraction: 0.875 }", kNormalize})},
      {.name = "center_crop_antialias",
       .figure = "center_crop of 0.875 with antialias, normalize",
       .spec = JpegSpec(
           {"center_crop { height: 224 width: 224 fraction: 0.875 antialias: true }", kNormalize})},
      {.name = "resize", .figure = "resize, / 255", .spec = JpegSpec({kResize, kToUnit})},
      {.name = "resize_cached",
       .figure = "resize, / 255 with cache: MEMORY, from the second epoch on",
       .spec = JpegSpec({kResize, kToUnit}, {.image = "cache: MEMORY"}),
       .ceiling = BreadthRow::Ceiling::kCopy,
       .epochs = 8,
       .wanted = 0.7},
      {.name = "resize_with_pad",
       .figure = "resize_with_pad, normalize",
       .spec = JpegSpec({"resize_with_pad { height: 224 width: 224 }", kNormalize})},
      {.name = "resize_lanczos3",
       .figure = "resize with LANCZOS3, random_flip, normalize",
       .spec = JpegSpec({"resize { height: 224 width: 224 method: LANCZOS3 }", kFlip, kNormalize})},
      {.name = "standardize",
       .figure = "random_resized_crop, per_image_standardization, random_flip",
       .spec = JpegSpec({kCrop, "per_image_standardization {}", kFlip}),
       .value_steps = 3},
      {.name = "colours",
       .figure = "random_resized_crop, / 255, random_flip, brightness, contrast, saturation, hue",
       .spec = JpegSpec({kCrop, kToUnit, kFlip, "brightness { delta_min: -0.125 delta_max: 0.125 }",
                         "contrast { factor_min: 0.5 factor_max: 1.5 }",
                         "saturation { factor_min: 0.5 factor_max: 1.5 }",
                         "hue { delta_min: -0.2 delta_max: 0.2 }"}),
       .value_steps = 6},
      {.name = "trivial_augment",
       .figure = "random_resized_crop, random_flip, round_to_uint8, trivial_augment, normalize",
       .spec = JpegSpec({kCrop, kFlip, "round_to_uint8 {}", "trivial_augment {}", kNormalize}),
       .value_steps = 2},
      {.name = "mix",
       .figure = "random_resized_crop, random_flip, normalize, then mixup or cutmix",
       .spec = JpegSpec({kCrop, kFlip, kNormalize},
                        {.label = "transforms { one_hot { depth: 1000 } }",
                         .feed = "mix { group: 8 images: 'image' labels: 'label' "
                                 "mixup {} cutmix {} }"}),
       .value_steps = 3},
  };
}

}  // namespace

std::vector<BreadthRow> BreadthRows() {
  std::vector<BreadthRow> rows = PhotographRows();
  for (BreadthRow& row : rows) row.corpus = "photographs";
  rows.push_back({.name = "large",
                  .figure = "12 megapixels: random_resized_crop, random_flip, normalize",
                  .corpus = "large-photographs",
                  .spec = JpegSpec({kCrop, kFlip, kNormalize})});
  rows.back().spec.set_global_batch(8);
  rows.push_back({.name = "png",
                  .figure = "decode_png of 320 x 240, resize, random_flip, normalize",
                  .corpus = "pngs",
                  .spec = ImageSpec({"decode_png {}", kResize, kFlip, kNormalize})});
  rows.push_back(
      {.name = "raw",
       .figure = "decode_raw of 32 x 32, random_flip, pad, random_crop, / 255",
       .corpus = "tiny-images",
       .spec = ImageSpec(
           {"decode_raw {}", kFlip, "pad { height: 40 width: 40 offset_height: 4 offset_width: 4 }",
            "random_crop { height: 32 width: 32 }", kToUnit},
           {.image = "shape: [32, 32, 3]"}),
       .ceiling = BreadthRow::Ceiling::kScan,
       .epochs = 2});
  rows.push_back({.name = "tokens",
                  .figure = "lists of 16 to 128 int64, padded to 128",
                  .corpus = "tokens",
                  .spec = ListSpec("name: 'tokens' feature: 'tokens' padded { length: 128 }"),
                  .ceiling = BreadthRow::Ceiling::kScan,
                  .epochs = 4,
                  .unit = "lists/s"});
  rows.push_back({.name = "tables",
                  .figure = "rows of 20 floats",
                  .corpus = "tables",
                  .spec = ListSpec("name: 'row' feature: 'row' shape: 20"),
                  .ceiling = BreadthRow::Ceiling::kScan,
                  .epochs = 4,
                  .unit = "rows/s"});
  for (BreadthRow& row : rows) row.spec.set_dataset(row.corpus);
  return rows;
}

}  // namespace systole::bench
