// An operation of a spec, with its parameters: its rule of types, its reference implementation, and
// what a fused path needs to know of it. Each has its own .cc; operation_table.h has their list.
//
// Thread-compatible; immutable, so any number of threads may use one.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/window/crop.h"
#include "core/numeric/normalise.h"
#include "core/operations/ops/draws.h"
#include "core/operations/ops/value.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The parts of operations that core/image and core/numeric can do. An operation equals its parts,
// done one after the other, to the bit.
struct DecodeJpegPart {
  JpegDecoderOptions options;
  // At the scale that the windows and the resize behind it allow: see scaled_decoding.h.
  bool scaled = false;
};
struct DecodeRawPart {};
// The rectangle of an image of height x width pixels that is kept.
struct WindowPart {
  std::function<absl::StatusOr<CropRect>(int height, int width, const ExampleKey& example)> window;
};
// Bilinear, to float32.
struct ResizePart {
  int height = 0;
  int width = 0;
};
struct MirrorPart {
  std::function<bool(const ExampleKey& example)> mirrored;
};
struct RoundPart {};
struct NormalisePart {
  NormaliseFactors factors;
};
using OperationPart = std::variant<DecodeJpegPart, DecodeRawPart, WindowPart, ResizePart,
                                   MirrorPart, RoundPart, NormalisePart>;

class Operation {
 public:
  virtual ~Operation() = default;

  // The type of its result for values of type `input`.
  //   InvalidArgument  it cannot take them. The message ends a sentence that begins with its name.
  // An operation whose input and output are images of any size must take images of every size.
  virtual absl::StatusOr<ValueType> TypeOf(const ValueType& input) const = 0;

  // The reference: written the obvious way, it defines the right result. REQUIRES:
  // TypeOf(input.type) is OK, and input.type.has_size() unless it is bytes.
  //   DataLoss, ResourceExhausted  the record's values are not what they should be, or too many.
  virtual absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const = 0;

  // What feeds call. An operation with a faster way overrides it; the result is the same to the
  // bit.
  virtual absl::StatusOr<Value> Run(Value input, const ExampleKey& example) const {
    return Apply(std::move(input), example);
  }

  // How many bytes it takes, if it takes bytes and every example must have the same number.
  virtual std::optional<int64_t> InputBytes() const { return std::nullopt; }

  // How many values Apply computes, about: a measure of its time. REQUIRES: both types have a size.
  virtual int64_t Work(const ValueType& /*input*/, const ValueType& output) const {
    return output.num_elements();
  }

  // Memory that Apply takes beside its input and its result, in bytes, for an input of that many
  // elements.
  virtual int64_t ScratchBytes(int64_t /*elements*/) const { return 0; }

  // How many rules it has, if it draws nothing and changes each value by a rule that depends on the
  // value and its channel alone: 1 for all values, or one for each channel, which the last
  // dimension counts. 0: it is no such operation. The end of a program that consists of these can
  // be left to a client (compact_form.h). REQUIRES: TypeOf() is OK for uint8 or float32.
  virtual int RulesByValue() const { return 0; }

  // The operation as parts. Empty: no fused path knows it, so its reference does it.
  virtual std::vector<OperationPart> Parts() const { return {}; }
};

// The factors of an operation that normalises and does nothing else; nullopt for any other.
inline std::optional<NormaliseFactors> FactorsOfNormalise(const Operation& operation) {
  const std::vector<OperationPart> parts = operation.Parts();
  if (parts.size() != 1 || !std::holds_alternative<NormalisePart>(parts[0])) return std::nullopt;
  return std::get<NormalisePart>(parts[0]).factors;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_H_
