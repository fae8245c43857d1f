// Where the values of one output come from and how they are made.
//
// Thread-compatible; a value, immutable once made.
#ifndef SYSTOLE_CORE_PLAN_OUTPUT_PLAN_H_
#define SYSTOLE_CORE_PLAN_OUTPUT_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cache/value_cache.h"
#include "core/operations/kept_value.h"
#include "core/operations/lowered_program.h"
#include "core/tensor/dtype.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// Features that no record stores: the record's number, and the whole record.
inline constexpr char kRecordIdFeature[] = "record_id";
inline constexpr char kRecordFeature[] = "record";

// The content of v1::Padded, checked.
struct PaddedPlan {
  int64_t length = 0;         // Items.
  int64_t item_elements = 1;  // Elements of an item.
  double value = 0;
  bool truncate = false;
  int length_tensor = 0;  // Index into the layout's tensors.
};

// The values for records that lack the feature, as the spec gives them. There is one value for all
// elements, or a value for each element. Only the field of the feature's kind is used.
struct DefaultValues {
  std::vector<int64_t> int64s;
  std::vector<float> floats;
  std::string bytes;
};

// A kind of value that a cache can keep for each record.
struct KeptForm {
  KeptValue value;
  // Hash of everything that decides how the value is made from a record: the feature, the
  // transforms up to the value, the type of a finished example, and the content version.
  uint64_t made_by = 0;
  // The `user` for ValueCache. All feeds of this dataset that keep this value have the same number.
  uint64_t user = 0;
  // If the value is an unfinished image of uint8: the steps after the value, lowered. Otherwise
  // `rest` is not set. After an image of floats, the steps run one after the other
  // (ProgramRunner::RunFrom). The fused pass would treat these floats like those of a float
  // feature, and turn -0 into 0.
  std::optional<LoweredProgram> rest;
  // LoweredProgram::known_rest_bytes of the steps after the value.
  int64_t known_rest_bytes = 0;
};

// The meaning of Output.cache, checked.
struct CachePlan {
  CacheStore store = CacheStore::kMemory;
  // At least one form, in the order of KeptValues::values. Only one of them is kept. The size of
  // the cache decides which one.
  std::vector<KeptForm> forms;
  double work = 0;  // KeptValues::work.
};

struct OutputPlan {
  enum class Source {
    kRecordId,   // The record's number.
    kInt64List,  // An int64 feature.
    kFloatList,  // A float feature.
    kBytes,      // A bytes feature, or the record itself.
  };

  // Whether the output is made by stages that look at the record's bytes more than once.
  bool is_image() const {
    return source == Source::kBytes && !padded.has_value() &&
           program.way != LoweredProgram::Way::kValues;
  }

  Source source = Source::kRecordId;
  // Index into FeedPlan::parser().names(). -1: the whole record.
  int feature = -1;
  std::vector<int64_t> stored_shape;  // Output.shape.
  int64_t stored_elements = 1;        // Values in a record; if padded, the most that may be there.
  // Never set if `padded` is set. Otherwise set if the source is kFloatList or kBytes, or if the
  // output has transforms.
  LoweredProgram program;
  std::optional<DefaultValues> default_values;
  std::optional<PaddedPlan> padded;
  std::optional<CachePlan> cache;

  v1::Layout layout = v1::NHWC;
  std::vector<int64_t> shape;  // The shape of one example, before NCHW or HWCN is applied.
  DType dtype = DType::kUint8;
  int tensor = 0;  // Index into the layout's tensors.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_OUTPUT_PLAN_H_
