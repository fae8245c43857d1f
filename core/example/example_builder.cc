#include "core/example/example_builder.h"

#include <bit>
#include <utility>

#include "core/example/wire_reader.h"

namespace systole {
namespace {

void AppendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

// A field of bytes or of an encoded message.
void AppendField(uint32_t field, absl::string_view bytes, std::string* out) {
  AppendVarint(WireTag(field, kWireBytes), out);
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

// The beginning of a field of `bytes` bytes.
void AppendFieldHead(uint32_t field, uint64_t bytes, std::string* out) {
  AppendVarint(WireTag(field, kWireBytes), out);
  AppendVarint(bytes, out);
}

// An entry of the map of features.
std::string MapEntry(absl::string_view name, absl::string_view feature) {
  std::string entry;
  AppendField(1, name, &entry);
  AppendField(2, feature, &entry);
  return entry;
}

// A Feature around a list. Like protobuf, leaves out a packed field without values.
std::string PackedFeature(uint32_t field, absl::string_view packed) {
  std::string list, feature;
  if (!packed.empty()) AppendField(1, packed, &list);
  AppendField(field, list, &feature);
  return feature;
}

}  // namespace

ExampleBuilder& ExampleBuilder::AddBytes(absl::string_view name, absl::string_view value) {
  return AddBytes(name, absl::MakeConstSpan(&value, 1));
}

ExampleBuilder& ExampleBuilder::AddBytes(absl::string_view name,
                                         absl::Span<const absl::string_view> values) {
  std::string list, feature;
  for (const absl::string_view value : values) AppendField(1, value, &list);
  AppendField(1, list, &feature);
  features_.insert_or_assign(std::string(name), std::move(feature));
  return *this;
}

ExampleBuilder& ExampleBuilder::AddInt64s(absl::string_view name,
                                          absl::Span<const int64_t> values) {
  std::string packed;
  for (const int64_t value : values) AppendVarint(static_cast<uint64_t>(value), &packed);
  features_.insert_or_assign(std::string(name), PackedFeature(3, packed));
  return *this;
}

ExampleBuilder& ExampleBuilder::AddFloats(absl::string_view name, absl::Span<const float> values) {
  std::string packed;
  for (const float value : values) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    for (int i = 0; i < 4; ++i) packed.push_back(static_cast<char>(bits >> (8 * i)));
  }
  features_.insert_or_assign(std::string(name), PackedFeature(2, packed));
  return *this;
}

std::string ExampleBuilder::Serialize() const {
  std::string features, example;
  for (const auto& [name, feature] : features_) {
    AppendField(1, MapEntry(name, feature), &features);
  }
  if (!features_.empty()) AppendField(1, features, &example);
  return example;
}

RecordAround ExampleBuilder::SerializeAround(absl::string_view name, uint64_t value_bytes,
                                             FeatureKind kind) const {
  // Each string gets only the bytes that precede the value. The lengths in these bytes include the
  // value. With kFloat, the packed floats are the value.
  std::string list, feature, entry;
  AppendFieldHead(1, value_bytes, &list);
  AppendFieldHead(kind == FeatureKind::kFloat ? 2 : 1, list.size() + value_bytes, &feature);
  feature += list;
  AppendField(1, name, &entry);
  AppendFieldHead(2, feature.size() + value_bytes, &entry);
  entry += feature;

  std::string before, after;
  for (const auto& [other, its_feature] : features_) {
    if (other == name) continue;
    AppendField(1, MapEntry(other, its_feature), other < name ? &before : &after);
  }
  AppendFieldHead(1, entry.size() + value_bytes, &before);
  before += entry;
  RecordAround around;
  AppendFieldHead(1, before.size() + value_bytes + after.size(), &around.before);
  around.before += before;
  around.after = std::move(after);
  return around;
}

}  // namespace systole
