// A feed spec that was checked against a dataset and translated: what stands where in a slice, and
// what is to be done for one example.
//
// Thread-compatible; immutable, so any number of threads may use it.
#ifndef SYSTOLE_CORE_PIPELINE_FEED_PLAN_H_
#define SYSTOLE_CORE_PIPELINE_FEED_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/batch/slice_layout.h"
#include "core/example/example_parser.h"
#include "core/image/crop.h"
#include "core/image/image_transformer.h"
#include "core/order/order.h"
#include "core/pipeline/dataset.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The virtual features.
inline constexpr char kRecordIdFeature[] = "record_id";
inline constexpr char kRecordFeature[] = "record";

// Raised by every release that changes a byte of any feed. With the version of the libjpeg that
// runs, because its releases may change pixels.
std::string ContentVersion();

// Where the values of one output come from and how they are made.
struct OutputPlan {
  enum class Source {
    kRecordId,   // The record's number.
    kInt64List,  // An int64 feature.
    kFloatList,  // A float feature.
    kRawBytes,   // A bytes feature or the record itself, taken as uint8 values.
    kRawPixels,  // The same as a [height, width, channels] image that is cropped, resized or
                 // flipped.
    kJpeg,       // The same as a JPEG file.
  };
  enum class Crop { kWhole, kRandomResized, kCentre };

  // Made by the image stages: cropped, resized or flipped.
  bool is_image() const { return source == Source::kRawPixels || source == Source::kJpeg; }

  Source source = Source::kRecordId;
  // Index into FeedPlan::parser().names(), or -1: the whole record.
  int feature = -1;
  std::vector<int64_t> stored_shape;  // Of one example before transforms; not for kJpeg.
  int64_t stored_elements = 1;

  // Images only.
  Crop crop = Crop::kWhole;
  RandomResizedCropOptions random_resized_crop;
  float centre_fraction = 1;
  bool flip = false;
  ImageTransformerOptions image;
  // The image is made as uint8 and normalised in a pass of its own.
  bool round_to_uint8 = false;

  // Sources that are no images, and rounded ones: y = x * scale + bias, by the last dimension when
  // there are several.
  bool normalize = false;
  std::vector<float> scale;
  std::vector<float> bias;

  v1::Layout layout = v1::NHWC;
  std::vector<int64_t> shape;  // Of one example, batch-major: before NCHW or HWCN is applied.
  DType dtype = DType::kUint8;
  int tensor = 0;  // Index into the layout's tensors.
};

class FeedPlan {
 public:
  // Checks `spec` and translates it. Nothing is decoded, but the features of a sample record are
  // compared with what the outputs want.
  //   InvalidArgument  names the field of the spec, what was seen and what was wanted.
  //   NotFound         the spec names another dataset.
  static absl::StatusOr<std::shared_ptr<const FeedPlan>> Create(
      const v1::FeedSpec& spec, std::shared_ptr<const Dataset> dataset);

  const v1::FeedSpec& spec() const { return spec_; }
  const Dataset& dataset() const { return *dataset_; }
  const Order& order() const { return order_; }
  const SliceLayout& layout() const { return layout_; }
  const ExampleParser& parser() const { return parser_; }
  const std::vector<OutputPlan>& outputs() const { return outputs_; }
  int num_cores() const { return spec_.num_cores(); }
  // Whether some output needs the record parsed as tf.train.Example.
  bool parses_examples() const { return !parser_.names().empty(); }
  // Whether some output is made by the image stages: these look at a record's bytes more than once,
  // so the bytes must stay as they are.
  bool decodes_images() const;
  // Whether some output is decoded from a JPEG: an example may then wait for another.
  bool decodes_jpegs() const;

  // Hash of the spec in canonical form: outputs sorted by name, defaults written out.
  uint64_t fingerprint() const { return fingerprint_; }
  // See Order::Fingerprint.
  uint64_t order_fingerprint() const { return order_.Fingerprint(dataset_->fingerprint()); }

 private:
  FeedPlan(v1::FeedSpec spec, std::shared_ptr<const Dataset> dataset, Order order,
           SliceLayout layout, ExampleParser parser, std::vector<OutputPlan> outputs);

  const v1::FeedSpec spec_;
  const std::shared_ptr<const Dataset> dataset_;
  const Order order_;
  const SliceLayout layout_;
  const ExampleParser parser_;
  const std::vector<OutputPlan> outputs_;
  const uint64_t fingerprint_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_FEED_PLAN_H_
