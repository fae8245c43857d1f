// The checked transforms of one output, and the interpreter, which runs the reference
// implementation of each transform in turn. All faster paths must make the same bytes as the
// interpreter.
//
// Thread-compatible; immutable, so any number of threads may use the same program.
#ifndef SYSTOLE_CORE_OPERATIONS_PROGRAM_H_
#define SYSTOLE_CORE_OPERATIONS_PROGRAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/operations/ops/operation.h"
#include "core/operations/ops/scaled_decoding.h"
#include "core/operations/row_changes.h"
#include "google/protobuf/repeated_field.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The most transforms of one output. A spec with more must be a mistake, and each transform costs
// time for every example.
inline constexpr int kMaxTransforms = 32;

class Program {
 public:
  struct Step {
    std::string name;  // The transform's name.
    std::shared_ptr<const Operation> operation;
    bool random = false;  // Whether the step draws random numbers.
    ValueType output;
  };

  // `input` is the type of the feature as it is stored. `stored_shape` is Output.shape.
  //   InvalidArgument  "transforms[2] resize has ..": the first transform that is wrong, or that
  //                    cannot take the result of the transform before it.
  static absl::StatusOr<Program> Create(
      const google::protobuf::RepeatedPtrField<v1::Transform>& transforms, ValueType input,
      absl::Span<const int64_t> stored_shape);

  const std::vector<Step>& steps() const { return steps_; }
  const ValueType& input() const { return input_; }
  const ValueType& output() const { return type_before(steps_.size()); }
  // The type that step `i` reads: the result of the steps before. REQUIRES: i <= steps().size().
  const ValueType& type_before(size_t i) const { return i == 0 ? input_ : steps_[i - 1].output; }
  // The index of step `i` among the spec's transforms. It is `i`, except in a program that From()
  // has made.
  int number_of(size_t i) const { return static_cast<int>(skipped_ + i); }
  // The program of the steps from `first` on. Its input is the result of the steps before `first`.
  Program From(size_t first) const;
  // One operation that does the work of the first steps together. Set if the program begins with
  // decode_jpeg { scale: AUTO }, any number of crops, and a resize.
  const std::optional<ScaledDecoding>& scaled_decoding() const { return scaled_decoding_; }
  // The number of bytes that a kBytes input must have. Nullopt if the input may have any number of
  // bytes, such as a JPEG file, or is not kBytes.
  std::optional<int64_t> input_bytes() const;

  // Runs steps [first, end), by default all from `first` on. `value` is the result of the steps
  // before `first`, or the stored value if `first` is 0. 0 is added to each stored float, so -0
  // becomes 0, unless the first step is a normalize. REQUIRES: neither bound lies inside the steps
  // of scaled_decoding(). Errors: those of Operation::Apply. Like Run(), calls NoteLap() after each
  // step, with the step's number_of(). The steps of scaled_decoding() count as step 0 for this.
  absl::StatusOr<Value> Interpret(Value value, const ExampleKey& example, size_t first = 0,
                                  size_t end = kMaxTransforms) const {
    return Steps(std::move(value), example, first, std::min(end, steps_.size()), nullptr);
  }
  // Makes the same values as Interpret(), bit for bit, with Operation::Run and RowChanges.
  absl::StatusOr<Value> Run(Value value, const ExampleKey& example, size_t first, size_t end) const;
  // Does what the other Run() does, but only stores the row changes of the last steps in `left`.
  // The caller makes these changes, together with row changes of its own. REQUIRES: `left` is
  // empty.
  absl::StatusOr<Value> Run(Value value, const ExampleKey& example, size_t first, size_t end,
                            RowChanges& left) const {
    return Steps(std::move(value), example, first, end, &left);
  }

 private:
  // Works like Interpret() if `left` is null, otherwise like Run().
  absl::StatusOr<Value> Steps(Value value, const ExampleKey& example, size_t first, size_t end,
                              RowChanges* left) const;

  Program() = default;

  ValueType input_;
  std::vector<Step> steps_;
  std::optional<ScaledDecoding> scaled_decoding_;
  size_t skipped_ = 0;  // How many of the spec's transforms come before the first step.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_PROGRAM_H_
