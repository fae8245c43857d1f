// Finds which values of a program a cache could keep (v1::Cache), and chooses one of them.
//
//   decode_jpeg   resize   normalize   (cast)            decode_jpeg   resize   random_crop ..
//              |         |                   |                      |         |
//            an image   an image     a finished example           an image   an image
//
// A value can be kept if no step before it draws random numbers. Such a value is an image between
// two steps or, if no step draws at all, the finished example in the type in which it is fed. A
// finished example only has to be copied, but as float32 it takes four times the memory of its
// pixels.
//
// The best value is the one with which an epoch takes the least time. A record whose value is kept
// takes only the work that comes after the value. Any other record takes all of the work. So a
// large value that leaves little work is best if the cache has room for all records. Otherwise a
// small value may be best.
//
// For example, with decode_jpeg, resize 224, normalize to float32, and photographs of 256 x 256:
//   room for             kept value
//   all records          the finished example of 602 kB: it only has to be copied
//   a third of them      the decoded image of 197 kB: decoding takes most of the time
//
// Work is estimated: 1 for a value that an operation computes (Operation::Work), 4 for a value that
// a decoder makes of a file, 1/16 for a byte that is copied. In the fused pass (lowered_program.h)
// only resizing has a cost, because the rest is done while the values pass. So if only a scale and
// bias of uint8 pixels is left to do, the pixels are kept, and not the float32 result: reading four
// times the bytes would cost more.
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
  size_t steps = 0;       // How many steps from the first on make the value.
  bool finished = false;  // Whether the value is the finished example, in the type in which it is
                          // fed.
  ValueType type;         // The value's type: an image of uint8 or float32, unless `finished`.
  KeptCost cost;
  // The steps that make the value, as a text for cache keys. If two values have the same text,
  // equal stored bytes make them equal.
  std::string made_by;
};

struct KeptValues {
  // From the fewest bytes to the most. Each value leaves less work than all values before it. A
  // value is left out if another value takes less room and leaves no more work.
  std::vector<KeptValue> values;
  double work = 0;  // The work to make an example without a kept value.
};

// The values of `program` that could be kept. The examples are fed as `dtype`. Images whose size is
// only in the record are taken to have the size `image`. Two kinds of values are not worth keeping:
// bytes that decode_raw copies, and floats that are each made from one copied value. REQUIRES:
// `program` is made of the output's transforms, and its output has a size.
//   InvalidArgument  there is no such value. The caller puts the word `cache` before the message.
absl::StatusOr<KeptValues> KeptValuesOf(const v1::Output& output, const Program& program,
                                        DType dtype, ImageSize image);

// The index of the best of `values`, if an example without a kept value takes `work`. share(bytes)
// is the share of the records, from 0 to 1, whose value can be kept if each value has `bytes`
// bytes. Among the values whose time is at most a tenth above the least time, the value with the
// fewest bytes is best. REQUIRES: there are values, from the fewest bytes to the most.
size_t BestKept(absl::Span<const KeptCost> values, double work,
                absl::FunctionRef<double(int64_t bytes)> share);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_KEPT_VALUE_H_
