#include "client/cli/commands/step_printer.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"
#include "core/tensor/dtype.h"

namespace systole {
namespace {

template <typename T>
T Load(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

std::string FloatText(float value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

}  // namespace

std::string ElementText(DType dtype, const uint8_t* bytes) {
  switch (dtype) {
    case DType::kUint8:
      return absl::StrCat(static_cast<int>(*bytes));
    case DType::kInt32:
      return absl::StrCat(Load<int32_t>(bytes));
    case DType::kInt64:
      return absl::StrCat(Load<int64_t>(bytes));
    case DType::kFloat32:
      return FloatText(Load<float>(bytes));
    case DType::kBfloat16:
      return FloatText(Bf16ToFloat(Load<uint16_t>(bytes)));
    case DType::kFloat16:
      return FloatText(Float16ToFloat(Load<uint16_t>(bytes)));
  }
  return "?";
}

absl::StatusOr<StepPrinter> StepPrinter::Create(StepPrinting printing, absl::string_view output,
                                                const SliceLayout& layout) {
  int index = -1;
  if (printing == StepPrinting::kValues) {
    index = layout.IndexOf(output);
    if (index < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--print ", output, ": the spec has no such output; it has ",
          absl::StrJoin(layout.tensors(), ", ", [](std::string* out, const SliceTensor& tensor) {
            absl::StrAppend(out, tensor.spec.name);
          })));
    }
  }
  return StepPrinter(printing, index);
}

void StepPrinter::Print(const Step& step, std::ostream& out) const {
  if (printing_ == StepPrinting::kNothing) return;
  const SliceLayout& layout = step.layout();
  for (int core = step.core_begin(); core < step.core_end(); ++core) {
    const uint8_t* slice = step.slice(core);
    switch (printing_) {
      case StepPrinting::kNothing:
        break;
      case StepPrinting::kDigest:
        out << step.number() << ' ' << core << ' ' << SliceDigest(layout, slice) << '\n';
        break;
      case StepPrinting::kExampleDigests:
        for (int64_t slot = 0; slot < layout.per_core_batch(); ++slot) {
          out << step.number() << ' ' << core << ' ' << slot << ' '
              << ExampleDigest(layout, slot, slice) << '\n';
        }
        break;
      case StepPrinting::kValues:
        PrintValues(step, core, out);
        break;
    }
  }
}

void StepPrinter::PrintValues(const Step& step, int core, std::ostream& out) const {
  const SliceLayout& layout = step.layout();
  const SliceTensor& tensor = layout.tensors()[static_cast<size_t>(output_)];
  const int64_t element = DTypeBytes(tensor.spec.dtype);
  const uint8_t* values = step.Tensor(core, output_).data;
  const uint8_t* valid = step.Tensor(core, layout.valid_index()).data;
  out << step.number() << ' ' << core;
  for (int64_t slot = 0; slot < layout.per_core_batch(); ++slot) {
    if (valid[slot] == 0 && output_ != layout.valid_index()) {
      out << " -";
      continue;
    }
    tensor.ForEachPiece(slot, [&](int64_t offset, int64_t bytes) {
      for (int64_t byte = 0; byte < bytes; byte += element) {
        out << ' ' << ElementText(tensor.spec.dtype, values + offset + byte);
      }
    });
  }
  out << '\n';
}

}  // namespace systole
