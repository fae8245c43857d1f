#include "core/operations/kept_value.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/operations/lowered_program.h"
#include "core/operations/ops/operation_table.h"

namespace systole {
namespace {

// The work for each value that a decoder makes of a file (see kept_value.h).
constexpr double kDecodeWork = 4;
// The work for each byte that is copied, and for each byte that is read from disk.
constexpr double kCopyWork = 1.0 / 16;
constexpr double kDiskWork = 1.0 / 2;
// The chosen value is the smallest value whose time exceeds the least time by at most this part of
// the least time.
constexpr double kTimeForRoom = 0.1;

// A text that says what the first `count` transforms do, and how their result is written.
std::string TextOf(const v1::Output& output, size_t count) {
  std::string text = absl::StrCat("2 [", absl::StrJoin(output.shape(), ","), "]");
  for (size_t i = 0; i < count; ++i) {
    const v1::Transform& transform = output.transforms(static_cast<int>(i));
    const OperationRow& row = *FindOperation(transform.kind_case());
    absl::StrAppend(&text, "\n", WithDefaults(row, transform).ShortDebugString());
  }
  return text;
}

// The types of the values before each step and after the last step, all with a size. Where the
// record decides the size, the record's image is taken to have the size `image`.
std::vector<ValueType> SizedTypes(const Program& program, ImageSize image) {
  std::vector<ValueType> types = {program.input()};
  for (const Program::Step& step : program.steps()) {
    ValueType made = step.output;
    if (!made.has_size() && types.back().element == ElementType::kBytes) {
      made.shape = {std::min<int64_t>(image.height, kMaxImageEdge),
                    std::min<int64_t>(image.width, kMaxImageEdge), made.shape[2]};
    } else if (!made.has_size()) {
      // The operation takes images of every size, so value_or() never uses its argument.
      made = step.operation->TypeOf(types.back()).value_or(types.back());
    }
    types.push_back(std::move(made));
  }
  return types;
}

bool Resizes(const Operation& operation) {
  const std::vector<OperationPart> parts = operation.Parts();
  return std::any_of(parts.begin(), parts.end(), IsResize);
}

// The work of the steps from number `first` on, if the fused pass does the first `fused` of them.
double WorkFrom(const Program& program, absl::Span<const ValueType> types, size_t first,
                size_t fused) {
  double work = 0;
  for (size_t i = first; i < program.steps().size(); ++i) {
    const Operation& operation = *program.steps()[i].operation;
    if (types[i].element == ElementType::kBytes) {
      if (operation.InputBytes().has_value()) continue;  // The operation only copies.
      work += kDecodeWork * static_cast<double>(types[i + 1].num_elements());
    } else if (i >= first + fused || Resizes(operation)) {
      work += static_cast<double>(operation.Work(types[i], types[i + 1]));
    }
  }
  return work;
}

// How many steps the fused pass does if it begins with step number `first`.
size_t FusedFrom(const Program& program, size_t first, DType dtype) {
  return Lower(std::make_shared<const Program>(program.From(first)), dtype, /*read_soon=*/false)
      .rest;
}

// Leaves out a value if another value takes less room and leaves no more work.
void LeaveOutUseless(std::vector<KeptValue>& values) {
  std::sort(values.begin(), values.end(), [](const KeptValue& a, const KeptValue& b) {
    return std::tuple(a.cost.bytes, a.cost.work, b.steps) <
           std::tuple(b.cost.bytes, b.cost.work, a.steps);
  });
  std::vector<KeptValue> useful;
  for (KeptValue& value : values) {
    if (!useful.empty() && value.cost.work >= useful.back().cost.work) continue;
    useful.push_back(std::move(value));
  }
  values = std::move(useful);
}

absl::Status NothingToKeep(bool is_scaled) {
  if (is_scaled) {
    return absl::InvalidArgumentError(
        "has nothing to keep: decode_jpeg { scale: AUTO } and the transforms up to the resize are "
        "done as one step, and one of them is random; use scale: FULL, or leave cache out");
  }
  return absl::InvalidArgumentError(
      "has nothing to keep: the transforms before the first random one only copy stored bytes "
      "(decode_raw), or change each value by itself; leave cache out");
}

}  // namespace

absl::StatusOr<KeptValues> KeptValuesOf(const v1::Output& output, const Program& program,
                                        DType dtype, ImageSize image) {
  if (program.input().element != ElementType::kBytes) {
    return absl::InvalidArgumentError(
        "keeps decoded images, but the feature holds numbers; leave cache out");
  }
  const std::vector<Program::Step>& steps = program.steps();
  const std::vector<ValueType> types = SizedTypes(program, image);
  const bool is_raw = program.input_bytes().has_value();
  // How many of the first steps run as one operation. There are no values between these steps.
  const size_t one =
      program.scaled_decoding().has_value() ? program.scaled_decoding()->num_operations() : 1;
  const double read_work = output.cache() == v1::DISK ? kDiskWork : kCopyWork;
  const int64_t example_bytes = types.back().num_elements() * DTypeBytes(dtype);
  const double write_work = kCopyWork * static_cast<double>(example_bytes);

  KeptValues kept;
  kept.work = WorkFrom(program, types, 0, FusedFrom(program, 0, dtype)) + write_work;
  // Whether a step so far does more than copy values or change each value by itself.
  bool computes = false;
  for (size_t i = 0; i < steps.size() && !steps[i].random; ++i) {
    computes = computes || !is_raw || (i > 0 && steps[i].operation->RulesByValue() == 0);
    if (i + 1 < one) continue;
    const ValueType& made = steps[i].output;
    const bool is_uint8 = made.element == ElementType::kUint8;
    const bool is_end = i + 1 == steps.size();
    // Whether the value is the example, byte for byte.
    const bool is_example = is_end && is_uint8 && dtype == DType::kUint8;
    const bool is_image = WantImage(made).ok();
    const bool is_worth_it = computes || (is_image && is_uint8 && i > 0);
    if (is_image && is_worth_it && !is_example && (is_uint8 || !is_end)) {
      const int64_t bytes = types[i + 1].num_bytes();
      const size_t fused = is_uint8 ? FusedFrom(program, i + 1, dtype) : 0;
      kept.values.push_back({.steps = i + 1,
                             .type = made,
                             .cost = {.bytes = bytes,
                                      .work = WorkFrom(program, types, i + 1, fused) + write_work +
                                              read_work * static_cast<double>(bytes)},
                             .made_by = TextOf(output, i + 1)});
    }
    if (is_end && is_worth_it) {
      std::string made_by = TextOf(output, i + 1);
      // If the value is the example, byte for byte, the text does not say that it is finished. So
      // feeds with further steps find the value, too.
      if (!is_example) {
        absl::StrAppend(&made_by, "\nas ", v1::DataType_Name(static_cast<v1::DataType>(dtype)));
      }
      kept.values.push_back(
          {.steps = i + 1,
           .finished = true,
           .type = made,
           .cost = {.bytes = example_bytes,
                    .work = write_work + read_work * static_cast<double>(example_bytes)},
           .made_by = std::move(made_by)});
    }
  }
  if (kept.values.empty()) return NothingToKeep(one > 1);
  LeaveOutUseless(kept.values);
  return kept;
}

size_t BestKept(absl::Span<const KeptCost> values, double work,
                absl::FunctionRef<double(int64_t bytes)> share) {
  std::vector<double> times;
  for (const KeptCost& value : values) {
    const double kept = share(value.bytes);
    times.push_back(kept * value.work + (1 - kept) * work);
  }
  const double enough = (1 + kTimeForRoom) * *std::min_element(times.begin(), times.end());
  return static_cast<size_t>(
      std::find_if(times.begin(), times.end(), [enough](double time) { return time <= enough; }) -
      times.begin());
}

}  // namespace systole
