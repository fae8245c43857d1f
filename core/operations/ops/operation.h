// An operation of a spec with its parameters: the types that it takes and gives, its reference
// implementation, and the facts that a fused path needs. Each operation has its own .cc.
// operation_rows.h lists the operations.
//
// Thread-compatible; immutable, so any number of threads may use the same operation.
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
#include "core/image/resize/resampler.h"
#include "core/image/window/crop.h"
#include "core/numeric/normalise.h"
#include "core/operations/ops/draws.h"
#include "core/operations/ops/row_change.h"
#include "core/operations/ops/value.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The parts that core/image and core/numeric can do. The parts of an operation, done one after the
// other, give the operation's result to the bit.
struct DecodeJpegPart {
  JpegDecoderOptions options;
  // Decodes at the scale that the later windows and the later resize allow: see scaled_decoding.h.
  bool scaled = false;
};
struct DecodeRawPart {};
// Keeps the rectangle `window` of an image of height x width pixels.
struct WindowPart {
  std::function<absl::StatusOr<CropRect>(int height, int width, const ExampleKey& example)> window;
};
// Resizes bilinearly, to float32.
struct ResizePart {
  int height = 0;
  int width = 0;
};
// Resizes by any method. The result is float32, or with NEAREST has the type of the input.
struct ResamplePart {
  ResampleOptions options;
  int height = 0;
  int width = 0;
  // Whether the result can be made row by row, mirrored or not (ResampleRows() in plain_image.h).
  bool gives_rows = false;
};
struct MirrorPart {
  std::function<bool(const ExampleKey& example)> mirrored;
};
struct RoundPart {};
struct NormalisePart {
  NormaliseFactors factors;
};
using OperationPart = std::variant<DecodeJpegPart, DecodeRawPart, WindowPart, ResizePart,
                                   ResamplePart, MirrorPart, RoundPart, NormalisePart>;

// Whether the part resizes its window.
inline bool IsResize(const OperationPart& part) {
  return std::holds_alternative<ResizePart>(part) || std::holds_alternative<ResamplePart>(part);
}

class Operation {
 public:
  virtual ~Operation() = default;

  // The type of the result for values of type `input`.
  //   InvalidArgument  the operation cannot take such values. The message is the end of a sentence
  //                    that begins with the operation's name.
  // If TypeOf() makes a type without a size from an image type without a size, it must be OK for
  // images of every size.
  virtual absl::StatusOr<ValueType> TypeOf(const ValueType& input) const = 0;

  // The reference. It is written the obvious way and defines the right result. REQUIRES:
  // TypeOf(input.type) is OK, and input.type.has_size() unless the input is bytes.
  //   DataLoss           the record's values are wrong for the operation.
  //   ResourceExhausted  the record has too many values.
  virtual absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const = 0;

  // Makes the result of Apply, to the bit. Feeds call Run. Operations with faster code override
  // Run.
  virtual absl::StatusOr<Value> Run(Value input, const ExampleKey& example) const {
    return Apply(std::move(input), example);
  }

  // by_row() says whether the operation can change a float32 image row by row. If so, feeds call
  // ChangeOf for such images instead of Run. The change gives the result of Apply, to the bit. With
  // kAfterReadingAll, all changes of earlier operations have been made in `image` before the call
  // of ChangeOf. With kYes, some of them may still be missing, so ChangeOf may read only the type
  // of `image`. REQUIRES (ChangeOf): by_row() is not kNo, and `image` has 1 or 3 channels.
  virtual ByRow by_row() const { return ByRow::kNo; }
  virtual RowChange ChangeOf(const Value& /*image*/, const ExampleKey& /*example*/) const {
    return nullptr;
  }

  // The number of bytes that the operation's input must have. Nullopt if the operation does not
  // take bytes, or takes any number of bytes.
  virtual std::optional<int64_t> InputBytes() const { return std::nullopt; }

  // About how many values Apply computes, as a measure of its time. REQUIRES: both types have a
  // size.
  virtual int64_t Work(const ValueType& /*input*/, const ValueType& output) const {
    return output.num_elements();
  }

  // Bytes of memory that Apply takes beside its input and its result, for an input of `elements`
  // elements.
  virtual int64_t ScratchBytes(int64_t /*elements*/) const { return 0; }

  // How many rules the operation has. It has rules if it draws nothing, and if each new value
  // depends only on the old value and on the channel.
  //   0     no rules
  //   1     one rule for all values
  //   more  one rule for each channel; channels are the last dimension
  // If the last steps of a program all have rules, a client can do these steps (compact_form.h).
  // REQUIRES: TypeOf() is OK for uint8 or float32.
  virtual int RulesByValue() const { return 0; }

  // The operation's parts. Empty if no fused path can do the operation.
  virtual std::vector<OperationPart> Parts() const { return {}; }
};

// The factors of an operation that only normalises; nullopt for any other operation.
inline std::optional<NormaliseFactors> FactorsOfNormalise(const Operation& operation) {
  const std::vector<OperationPart> parts = operation.Parts();
  if (parts.size() != 1 || !std::holds_alternative<NormalisePart>(parts[0])) return std::nullopt;
  return std::get<NormalisePart>(parts[0]).factors;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_H_
