#include "core/operations/compact_form.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "core/numeric/canonical_nan.h"
#include "core/numeric/value_table.h"

namespace systole {
namespace {

// Returns CompactForm::table for the steps from `first` on: for each of `rules` rules, the steps'
// result for each uint8.
absl::StatusOr<std::vector<float>> TableOf(const Program& program, size_t first, int rules) {
  Value values = Value::Create(ElementType::kUint8, {kTableEntries, rules});
  for (size_t i = 0; i < values.uint8s.size(); ++i) {
    values.uint8s[i] = static_cast<uint8_t>(i / static_cast<size_t>(rules));
  }
  // Any example will do, because these steps draw nothing.
  absl::StatusOr<Value> made = program.Interpret(std::move(values), ExampleKey(), first);
  if (!made.ok()) return made.status();
  const size_t count = static_cast<size_t>(kTableEntries) * static_cast<size_t>(rules);
  std::vector<float> table(count);
  for (size_t rule = 0; rule < static_cast<size_t>(rules); ++rule) {
    for (size_t i = 0; i < kTableEntries; ++i) {
      const size_t at = i * static_cast<size_t>(rules) + rule;
      table[rule * kTableEntries + i] = made->type.element == ElementType::kUint8
                                            ? static_cast<float>(made->uint8s[at])
                                            : CanonicalNan(made->floats[at]);
    }
  }
  return table;
}

// Whether the table leaves every value as it is.
bool IsIdentity(const std::vector<float>& table) {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i] != static_cast<float>(i % kTableEntries)) return false;
  }
  return true;
}

// The compact form if the client does the steps from `first` on.
std::optional<CompactForm> FormFrom(const Program& program, size_t first) {
  const std::vector<Program::Step>& steps = program.steps();
  CompactForm form = {.first = first, .factors = {.scale = {1.0f}, .bias = {0.0f}}};
  if (first == steps.size()) return form;
  if (first + 1 == steps.size()) {
    if (auto factors = FactorsOfNormalise(*steps.back().operation); factors.has_value()) {
      form.rules = steps.back().operation->RulesByValue();
      form.factors = *std::move(factors);
      return form;
    }
  }
  for (size_t i = first; i < steps.size(); ++i) {
    form.rules = std::max(form.rules, steps[i].operation->RulesByValue());
  }
  if (form.rules > kMaxTableChannels) return std::nullopt;
  absl::StatusOr<std::vector<float>> table = TableOf(program, first, form.rules);
  if (!table.ok()) return std::nullopt;
  if (IsIdentity(*table)) {
    form.rules = 1;
    return form;
  }
  form.factors = {};
  form.table = *std::move(table);
  return form;
}

}  // namespace

std::optional<CompactForm> CompactFormOf(const Program& program, DType dtype, size_t kept_steps) {
  if (!IsFloat(dtype) || !program.output().has_size()) return std::nullopt;
  const std::vector<Program::Step>& steps = program.steps();
  size_t least = kept_steps;
  if (program.scaled_decoding().has_value()) {
    least = std::max(least, program.scaled_decoding()->num_operations());
  }
  size_t first = steps.size();
  while (first > least && steps[first - 1].operation->RulesByValue() > 0) --first;
  for (; first <= steps.size(); ++first) {
    if (program.type_before(first).element != ElementType::kUint8) continue;
    std::optional<CompactForm> form = FormFrom(program, first);
    if (form.has_value()) return form;
  }
  return std::nullopt;
}

}  // namespace systole
