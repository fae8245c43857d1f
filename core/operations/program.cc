#include "core/operations/program.h"

#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/interrupt/lap_times.h"
#include "core/operations/ops/operation_table.h"
#include "core/operations/ops/whole_image.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {

static_assert(kMaxTransforms <= LapTimes::kParts, "each transform is a part");

namespace {

// The step that does `transform` with values of type `input`. `before` is how many transforms of
// the same kind precede `transform`.
absl::StatusOr<Program::Step> StepOf(const v1::Transform& transform, int before,
                                     const ValueType& input,
                                     absl::Span<const int64_t> stored_shape) {
  const OperationRow* const row = FindOperation(transform.kind_case());
  if (row == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("names no transform that this server knows; it has ", OperationNames()));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const Draws draws,
                           Draws::Create(transform, row->draws, before, row->tensorflow_draws));
  const v1::Transform complete = WithDefaults(*row, transform);
  SYSTOLE_ASSIGN_OR_RETURN(
      std::shared_ptr<const Operation> operation,
      row->create({.transform = complete, .draws = draws, .stored_shape = stored_shape}));
  SYSTOLE_ASSIGN_OR_RETURN(ValueType output, operation->TypeOf(input));
  return Program::Step{.name = OperationName(row->kind),
                       .operation = std::move(operation),
                       .random = row->draws != 0,
                       .output = std::move(output)};
}

}  // namespace

absl::StatusOr<Program> Program::Create(
    const google::protobuf::RepeatedPtrField<v1::Transform>& transforms, ValueType input,
    absl::Span<const int64_t> stored_shape) {
  if (transforms.size() > kMaxTransforms) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", transforms.size(), " transforms, want at most ", kMaxTransforms));
  }
  Program program;
  program.input_ = std::move(input);
  std::map<v1::Transform::KindCase, int> seen;
  std::vector<const Operation*> operations;
  for (int i = 0; i < transforms.size(); ++i) {
    const v1::Transform::KindCase kind = transforms[i].kind_case();
    absl::StatusOr<Step> step = StepOf(transforms[i], seen[kind]++, program.output(), stored_shape);
    if (!step.ok()) {
      const std::string name = FindOperation(kind) == nullptr ? "(empty)" : OperationName(kind);
      return absl::Status(step.status().code(),
                          absl::StrCat("transforms[", i, "] ", name, " ", step.status().message()));
    }
    program.steps_.push_back(*std::move(step));
    operations.push_back(program.steps_.back().operation.get());
  }
  program.scaled_decoding_ = ScaledDecoding::Create(operations);
  return program;
}

Program Program::From(size_t first) const {
  Program program;
  program.input_ = type_before(first);
  program.skipped_ = skipped_ + first;
  program.steps_.assign(steps_.begin() + static_cast<std::ptrdiff_t>(first), steps_.end());
  return program;
}

std::optional<int64_t> Program::input_bytes() const {
  if (input_.element != ElementType::kBytes || steps_.empty()) return std::nullopt;
  return steps_.front().operation->InputBytes();
}

absl::StatusOr<Value> Program::Run(Value value, const ExampleKey& example, size_t first,
                                   size_t end) const {
  RowChanges left;
  SYSTOLE_ASSIGN_OR_RETURN(value, Run(std::move(value), example, first, end, left));
  left.Make(value);
  if (InterruptRequested()) return InterruptedError();
  return value;
}

absl::StatusOr<Value> Program::Steps(Value value, const ExampleKey& example, size_t first,
                                     size_t end, RowChanges* left) const {
  if (first == 0 && !value.floats.empty() &&
      (steps_.empty() || !FactorsOfNormalise(*steps_.front().operation).has_value())) {
    for (float& x : value.floats) x += 0.0f;
  }
  if (first == 0 && scaled_decoding_.has_value()) {
    first = scaled_decoding_->num_operations();
    SYSTOLE_CHECK(first <= end);
    SYSTOLE_ASSIGN_OR_RETURN(value, scaled_decoding_->Apply(value.bytes, example));
    NoteLap(number_of(0));  // Decoding takes most of this time.
    if (InterruptRequested()) return InterruptedError();
  }
  for (size_t i = first; i < end; ++i) {
    const Step& step = steps_[i];
    if (!step.output.has_size() && value.type.element != ElementType::kBytes) {
      SYSTOLE_ASSIGN_OR_RETURN(const ValueType made, step.operation->TypeOf(value.type));
      SYSTOLE_RETURN_IF_ERROR(
          CheckValueBytes(made.element, made.shape[0], made.shape[1], made.shape[2]));
      SYSTOLE_RETURN_IF_ERROR(
          NeedValues(made.num_bytes() >= value.type.num_bytes() ? made : value.type,
                     step.operation->ScratchBytes(value.type.num_elements())));
    }
    const Operation& operation = *step.operation;
    if (left == nullptr) {
      SYSTOLE_ASSIGN_OR_RETURN(value, operation.Apply(std::move(value), example));
    } else if (operation.by_row() != ByRow::kNo && IsFloatImage(value.type)) {
      if (operation.by_row() == ByRow::kAfterReadingAll) left->Make(value);
      left->Add(operation.ChangeOf(value, example), number_of(i));
    } else {
      left->Make(value);
      SYSTOLE_ASSIGN_OR_RETURN(value, operation.Run(std::move(value), example));
    }
    NoteLap(number_of(i));
    // An operation that was interrupted may leave wrong values.
    if (InterruptRequested()) return InterruptedError();
  }
  return value;
}

}  // namespace systole
