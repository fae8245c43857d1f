// An output's transforms as a checked program, and the interpreter that runs their references one
// after the other. All faster paths must give the same bytes as the interpreter.
//
// Thread-compatible; immutable, so any number of threads may use one.
#ifndef SYSTOLE_CORE_OPERATIONS_PROGRAM_H_
#define SYSTOLE_CORE_OPERATIONS_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/operations/ops/operation.h"
#include "core/operations/ops/scaled_decoding.h"
#include "core/tensor/dtype.h"
#include "google/protobuf/repeated_field.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// More transforms are a mistake, and each costs time on every example.
inline constexpr int kMaxTransforms = 32;
inline constexpr int kMaxTransformKeyBytes = 64;

class Program {
 public:
  struct Step {
    std::string name;  // The transform's.
    std::shared_ptr<const Operation> operation;
    bool random = false;  // Whether its kind draws.
    ValueType output;
  };

  // `input` is what the feature holds, `stored_shape` is Output.shape.
  //   InvalidArgument  "transforms[2] resize has ..": the first one that is wrong or cannot take
  //                    what the one before it makes.
  static absl::StatusOr<Program> Create(
      const google::protobuf::RepeatedPtrField<v1::Transform>& transforms, ValueType input,
      absl::Span<const int64_t> stored_shape);

  const std::vector<Step>& steps() const { return steps_; }
  const ValueType& input() const { return input_; }
  const ValueType& output() const { return steps_.empty() ? input_ : steps_.back().output; }
  // The program of the steps from number `first` on, which takes what the ones before make.
  Program From(size_t first) const;
  // The one operation that stands for the first steps, if the program begins with decode_jpeg {
  // scale: AUTO } and shrinks the decoded image.
  const std::optional<ScaledDecoding>& scaled_decoding() const { return scaled_decoding_; }
  // How many bytes it reads; nullopt if it reads a file of any size, or no bytes at all.
  std::optional<int64_t> input_bytes() const;

  // Runs the steps from number `first` on. `value` is the result of the steps before, or the stored
  // value if there are none. Stored floats enter as x + 0, so -0 becomes 0, unless a normalize
  // comes first.
  // Errors: Operation::Apply.
  absl::StatusOr<Value> Interpret(Value value, const ExampleKey& example, size_t first = 0) const {
    return Interpret(std::move(value), example, first, steps_.size());
  }
  // The same, but ends before step `end`. REQUIRES: `end` does not split the steps of
  // scaled_decoding().
  absl::StatusOr<Value> Interpret(Value value, const ExampleKey& example, size_t first,
                                  size_t end) const;
  // The same to the bit, by Operation::Run in place of the references.
  absl::StatusOr<Value> Run(Value value, const ExampleKey& example, size_t first, size_t end) const;

 private:
  using Way = absl::StatusOr<Value> (Operation::*)(Value, const ExampleKey&) const;
  absl::StatusOr<Value> Steps(Way way, Value value, const ExampleKey& example, size_t first,
                              size_t end) const;

  Program() = default;

  ValueType input_;
  std::vector<Step> steps_;
  std::optional<ScaledDecoding> scaled_decoding_;
};

// The type of an output that names none: the one that its values have. REQUIRES: not kBytes.
v1::DataType DataTypeOf(ElementType made);

// Writes `value`, uint8 or float32, to `out` as kUint8 (half to even, saturated) or a type of
// floats, with CanonicalNan(). REQUIRES: `out` has the size that this takes.
void CastPlainly(const Value& value, DType dtype, absl::Span<uint8_t> out);

// Writes int64 values to `out` as kInt64 or kInt32. REQUIRES: `out` has the size that this takes.
//   InvalidArgument  a value does not fit kInt32.
absl::Status CastInt64s(absl::Span<const int64_t> values, DType dtype, absl::Span<uint8_t> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_PROGRAM_H_
