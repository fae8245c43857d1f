#include "core/operations/compact_form.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/operations/data_type.h"
#include "core/operations/program.h"

namespace systole {
namespace {

bool Has(const google::protobuf::RepeatedPtrField<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<CompactForm> CompactFormOf(const v1::Output& output, const v1::Mix& mix) {
  // uint8 is packed otherwise, so chunks of it would say nothing of where their values stand.
  if (output.layout() == v1::HWCN_TILED) return std::nullopt;
  // Mixed, values are no whole numbers, and the client has no partner to mix with.
  if (Has(mix.images(), output.name()) || Has(mix.labels(), output.name())) return std::nullopt;
  const std::vector<int64_t> shape(output.shape().begin(), output.shape().end());
  // What is wrong with a spec is for the server to say.
  const absl::StatusOr<Program> program =
      Program::Create(output.transforms(), {.element = ElementType::kBytes}, shape);
  if (!program.ok() || program->output().element == ElementType::kBytes) return std::nullopt;
  const v1::DataType dtype = output.dtype() == v1::DATA_TYPE_UNSPECIFIED
                                 ? DataTypeOf(program->output().element)
                                 : output.dtype();
  if (!IsFloat(dtype)) return std::nullopt;
  CompactForm form = {
      .travels = output, .factors = {.scale = {1.0f}, .bias = {0.0f}}, .dtype = dtype};
  form.travels.set_dtype(v1::UINT8);
  ValueType end = program->output();
  const std::vector<Program::Step>& steps = program->steps();
  if (!steps.empty()) {
    if (const auto factors = FactorsOfNormalise(*steps.back().operation); factors.has_value()) {
      form.factors = *factors;
      form.travels.mutable_transforms()->RemoveLast();
      end = steps.size() == 1 ? program->input() : steps[steps.size() - 2].output;
    }
  }
  if (end.element != ElementType::kUint8) return std::nullopt;
  return form;
}

}  // namespace systole
