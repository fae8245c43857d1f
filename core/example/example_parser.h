// tf.train.Example (serialised protobuf) parsed in place:
//   Example  { Features features = 1; }
//   Features { map<string, Feature> feature = 1; }
//   Feature  { oneof { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list =
//   3; } } *List    { repeated value = 1; }   floats and int64s packed or not, even mixed
//
// Accepts exactly the byte strings that protobuf accepts and sees the values it sees: of entries
// with one key the last wins, of different kinds in one Feature the last wins, lists of one kind in
// a row are joined, unknown fields are skipped, a name may be any bytes. A differential fuzzer
// tests this. Everything is checked while parsing, even features that were not asked for, so a
// record is good or bad for every reader. No allocation, no recursion, O(bytes); the content of
// bytes values is stepped over.
//
// Errors are DataLoss and name the byte offset in the record.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_EXAMPLE_EXAMPLE_PARSER_H_
#define SYSTOLE_CORE_EXAMPLE_EXAMPLE_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/feature_view.h"

namespace systole {

// Picks a fixed set of features out of many records: made once per feed, shared by all its threads.
class ExampleParser {
 public:
  // InvalidArgument if a name occurs twice.
  static absl::StatusOr<ExampleParser> Create(std::vector<std::string> names);

  const std::vector<std::string>& names() const { return names_; }

  // Sets out[i] to the feature names()[i], of kind kMissing if the record lacks it; `out` has
  // names().size() elements (CHECK). The views borrow `record` and the parser. On error `out` holds
  // nothing of use. Looks at each length once: bytes that change meanwhile do no harm.
  absl::Status Parse(absl::string_view record ABSL_ATTRIBUTE_LIFETIME_BOUND,
                     absl::Span<FeatureView> out) const;

 private:
  explicit ExampleParser(std::vector<std::string> names);

  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, size_t> index_;
};

// Most features that FirstFeatures() returns, and most bytes of their names together. A record can
// have millions, and the description of a dataset is kept and sent.
inline constexpr size_t kMaxFirstFeatures = 10'000;
inline constexpr size_t kMaxFirstNameBytes = size_t{1} << 20;

// One record, for exploring: every lookup scans it. Borrows the record, which must not change.
class ExampleView {
 public:
  // Checks the whole record.
  static absl::StatusOr<ExampleView> Parse(absl::string_view record ABSL_ATTRIBUTE_LIFETIME_BOUND);

  // The feature, of kind kMissing if there is none. Borrows the record and, if missing, `name`.
  FeatureView Find(absl::string_view name ABSL_ATTRIBUTE_LIFETIME_BOUND) const;

  // All features, sorted by name, each name once, those of kind kMissing (present without a list)
  // included.
  std::vector<FeatureView> Features() const;
  // The same up to kMaxFirstFeatures features and kMaxFirstNameBytes of names. Of more, only those
  // that come first in the record.
  std::vector<FeatureView> FirstFeatures() const;

 private:
  explicit ExampleView(absl::string_view record) : record_(record) {}
  std::vector<FeatureView> Features(size_t at_most, size_t name_bytes) const;

  absl::string_view record_;
};

// What a record holds, without borrowing from it: for describing a dataset.
struct FeatureDescription {
  std::string name;
  FeatureKind kind = FeatureKind::kMissing;
  int64_t count = 0;

  bool operator==(const FeatureDescription&) const = default;
};

// Describes the features of ExampleView::FirstFeatures().
absl::StatusOr<std::vector<FeatureDescription>> DescribeFeatures(absl::string_view record);

}  // namespace systole

#endif  // SYSTOLE_CORE_EXAMPLE_EXAMPLE_PARSER_H_
