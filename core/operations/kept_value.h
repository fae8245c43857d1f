// Finds which values of a program a cache could keep (v1::Cache), and chooses one of them.
//
//   decode_jpeg   resize   normalize   (cast)            decode_jpeg   resize   random_crop ..
//              |         |                   |                      |         |
//            an image   an image     a finished example           an image   an image
//
// A value can be kept if no step before it draws random numbers. Such a value is an image between
// two steps or, if no step draws at all, the finished example in the output's dtype. A finished
// example only has to be copied, but as float32 it takes four times the memory of an image of
// uint8.
//
// The best value is the one with which an epoch takes the least time. For a record whose value is
// kept, only the steps after the value have to run. For any other record, all steps have to run. So
// if the cache has room for all records, a large value that leaves little work is best. Otherwise a
// small value may be best, because the cache has room for more small values.
//
// For example, with decode_jpeg, resize 224, normalize to float32, and photographs of 256 x 256:
//   room for             kept value
//   all records          the finished example of 602 kB: it only has to be copied
//   a third of them      the decoded image of 197 kB: decoding takes most of the time
//
// Work is estimated: 1 for a value that an operation computes (Operation::Work), 4 for a value that
// a decoder makes of a file, 1/16 for a byte that is copied, 1/2 for a byte that is read from disk.
// In the fused pass (lowered_program.h) only decoding and resizing count, because the other steps
// hardly take time there. For example, a scale and a bias of uint8 pixels do not count. So if only
// these are left to do, the pixels are kept, and not the float32 result, which has four times as
// many bytes to read.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_KEPT_VALUE_H_
#define SYSTOLE_CORE_OPERATIONS_KEPT_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/image/image_size.h"
#include "core/operations/program.h"
#include "core/tensor/dtype.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The estimated cost of keeping a value.
struct KeptCost {
  int64_t bytes = 0;
  double work = 0;  // The work to read the value and to make the example from it.
};

struct KeptValue {
  size_t steps = 0;       // The first `steps` steps of the program make the value.
  bool finished = false;  // Whether the value is the finished example, in the output's dtype.
  ValueType type;         // The value's type: an image of uint8 or float32, unless `finished`.
  KeptCost cost;
  // The steps that make the value, as a text for cache keys. If two values have the same text and
  // are made from the same stored bytes, the values are equal.
  std::string made_by;
};

struct KeptValues {
  // In the order of their bytes, the smallest value first. Each value leaves less work than all
  // values before it: a value is left out if a smaller value leaves no more work.
  std::vector<KeptValue> values;
  double work = 0;  // The work to make an example without a kept value.
};

// The values of `program` that could be kept. `dtype` is the output's dtype. Where the record
// decides the size of an image, the image is taken to have the size `image`. Two kinds of values
// are left out, because they are not worth keeping: values that decode_raw copies, and floats if
// each of them is made from one such value. REQUIRES: `program` is made of the output's transforms,
// and its output has a size.
//   InvalidArgument  there is no such value. The caller puts the word `cache` before the message.
absl::StatusOr<KeptValues> KeptValuesOf(const v1::Output& output, const Program& program,
                                        DType dtype, ImageSize image);

// The index of the best of `values`. `work` is the work to make an example without a kept value.
// share(bytes) is the share of the records, from 0 to 1, whose value can be kept if each value has
// `bytes` bytes. Among the values whose time is at most a tenth above the least time, the value
// with the fewest bytes is best. REQUIRES: `values` is not empty, and the smallest value is first.
size_t BestKept(absl::Span<const KeptCost> values, double work,
                absl::FunctionRef<double(int64_t bytes)> share);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_KEPT_VALUE_H_
