// An operation of a spec, with its parameters: its rule of types, its reference, and what a fused
// path needs to know of it. One .cc each; operation_table.h has their list.
//
// Thread-compatible; immutable, so any number of threads may use one.
#ifndef SYSTOLE_CORE_OPERATIONS_OPERATION_H_
#define SYSTOLE_CORE_OPERATIONS_OPERATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/image/crop.h"
#include "core/image/jpeg_decoder.h"
#include "core/numeric/normalise.h"
#include "core/operations/draws.h"
#include "core/operations/value.h"

namespace systole {

// What an operation does, in words that core/image and core/numeric know. An operation is the parts
// one after the other, to the bit.
struct DecodeJpegPart {
  JpegDecoderOptions options;
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

  // What it makes of values of type `input`.
  //   InvalidArgument  it cannot take them; the end of a sentence that begins with its name.
  virtual absl::StatusOr<ValueType> TypeOf(const ValueType& input) const = 0;

  // The reference: written the obvious way, it says what is right. REQUIRES: TypeOf(input.type) is
  // OK, and input.type.has_size() unless it is bytes.
  //   DataLoss, ResourceExhausted  the record's bytes are not what they should be, or too many.
  virtual absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const = 0;

  // Empty: no fused path knows it, and it is done by its reference.
  virtual std::vector<OperationPart> Parts() const { return {}; }
};

// The factors of an operation that normalises and does nothing else; none of any other.
inline std::optional<NormaliseFactors> FactorsOfNormalise(const Operation& operation) {
  const std::vector<OperationPart> parts = operation.Parts();
  if (parts.size() != 1 || !std::holds_alternative<NormalisePart>(parts[0])) return std::nullopt;
  return std::get<NormalisePart>(parts[0]).factors;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPERATION_H_
