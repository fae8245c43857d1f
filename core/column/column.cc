#include "core/column/column.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "absl/types/span.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Whether all lengths are equal, so that one of them is enough.
bool IsUniform(const std::vector<uint32_t>& lengths) {
  return std::adjacent_find(lengths.begin(), lengths.end(), std::not_equal_to<>()) == lengths.end();
}

}  // namespace

int64_t Column::CountOf(uint32_t wanted) const {
  if (lengths.empty()) return length == wanted ? num_records : 0;
  return std::count(lengths.begin(), lengths.end(), wanted);
}

void ColumnBuilder::Add(uint32_t length) {
  column_.lengths.push_back(length);
  column_.int64s.push_back(0);
  ++column_.num_records;
}

absl::Status ColumnBuilder::Add(const FeatureView& feature) {
  const int64_t record = column_.num_records;
  ColumnFacts& facts = column_.facts;
  const auto first = [record](int64_t& seen) {
    if (seen < 0) seen = record;
  };
  if (feature.kind() == FeatureKind::kMissing) {
    Add(kAbsentFeature);
    return absl::OkStatus();
  }
  // Floats are kept as their bits among the int64s until the kind of all records is known.
  int64_t value = 0;
  switch (feature.kind()) {
    case FeatureKind::kInt64:
      if (feature.count() == 1) {
        SYSTOLE_RETURN_IF_ERROR(feature.CopyInt64s(absl::MakeSpan(&value, 1)));
      }
      first(facts.first_int64);
      break;
    case FeatureKind::kFloat:
      if (feature.count() == 1) {
        float number = 0;
        SYSTOLE_RETURN_IF_ERROR(feature.CopyFloats(absl::MakeSpan(&number, 1)));
        value = std::bit_cast<int32_t>(number);
      }
      first(facts.first_float);
      break;
    default:
      first(facts.first_bytes);
  }
  if (feature.count() > 1) first(facts.first_long);
  Add(static_cast<uint32_t>(std::min<int64_t>(feature.count(), kMostColumnLength)));
  column_.int64s.back() = value;
  return absl::OkStatus();
}

Column ColumnBuilder::Build() && {
  Column column = std::move(column_);
  if (!column.lengths.empty() && IsUniform(column.lengths)) {
    column.length = column.lengths.front();
    column.lengths = {};
  }
  if (column.facts.has_values() && column.facts.first_float >= 0) {
    column.floats.reserve(column.int64s.size());
    for (const int64_t bits : column.int64s) {
      column.floats.push_back(std::bit_cast<float>(static_cast<int32_t>(bits)));
    }
  }
  if (!column.facts.has_values() || column.facts.first_int64 < 0) column.int64s = {};
  return column;
}

}  // namespace systole
