// Writes a tf.train.Example, for `systole pack`, Python's systole.write and tests. Features are
// sorted by name and numbers packed, so equal content gives equal bytes. The bytes are those of
// protobuf's deterministic serialisation.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_EXAMPLE_EXAMPLE_BUILDER_H_
#define SYSTOLE_CORE_EXAMPLE_EXAMPLE_BUILDER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/feature_view.h"

namespace systole {

// A record without one of its values. The whole record is `before`, then the value, then `after`.
struct RecordAround {
  std::string before;
  std::string after;

  uint64_t size() const { return before.size() + after.size(); }
};

class ExampleBuilder {
 public:
  // Adds one feature; replaces an earlier one of that name. `name` should be UTF-8, because
  // protobuf's own parsers refuse other names. Values are copied. Empty lists are allowed.
  ExampleBuilder& AddBytes(absl::string_view name, absl::string_view value);
  ExampleBuilder& AddBytes(absl::string_view name, absl::Span<const absl::string_view> values);
  ExampleBuilder& AddInt64s(absl::string_view name, absl::Span<const int64_t> values);
  ExampleBuilder& AddFloats(absl::string_view name, absl::Span<const float> values);

  // The record. More features may be added after this call, and Serialize() called again.
  std::string Serialize() const;

  // A caller uses this to read a large value straight to its place in the record. Returns the
  // record that Serialize() would return after AddBytes(name, value), but without the
  // `value_bytes` bytes of the value. With kFloat, the same for AddFloats(name, values).
  // REQUIRES: `kind` is kBytes, or `kind` is kFloat and value_bytes > 0.
  RecordAround SerializeAround(absl::string_view name, uint64_t value_bytes,
                               FeatureKind kind = FeatureKind::kBytes) const;

 private:
  std::map<std::string, std::string, std::less<>> features_;  // Name -> encoded Feature.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_EXAMPLE_EXAMPLE_BUILDER_H_
