// Reads features of records, whatever their format: some features of many records (ExampleParser),
// or all features of one record (ExampleView). Errors are those of ExampleFormat::Decode.
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
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/example_format.h"
#include "core/example/feature_view.h"
#include "core/example/tensorflow_example.h"

namespace systole {

// Picks a fixed set of features out of many records. All threads of a feed share one ExampleParser.
class ExampleParser {
 public:
  // InvalidArgument if a name occurs twice.
  static absl::StatusOr<ExampleParser> Create(std::vector<std::string> names);

  const std::vector<std::string>& names() const { return names_; }

  // Sets out[i] to the feature with the name names()[i]. If the record lacks this feature, out[i]
  // has the kind kMissing. `out` must have names().size() elements (CHECK). The views borrow
  // `record`, `made` and the parser. On error `out` is undefined.
  absl::Status Parse(const ExampleFormat& format,
                     absl::string_view record ABSL_ATTRIBUTE_LIFETIME_BOUND,
                     MadeText& made ABSL_ATTRIBUTE_LIFETIME_BOUND,
                     absl::Span<FeatureView> out) const;

 private:
  explicit ExampleParser(std::vector<std::string> names);

  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, size_t> index_;
};

// The most features that FirstFeatures() returns, and the most bytes of all their names together. A
// record can have millions of features. These bounds keep the description of a dataset small, which
// is stored and sent.
inline constexpr size_t kMaxFirstFeatures = 10'000;
inline constexpr size_t kMaxFirstNameBytes = size_t{1} << 20;

// One record, for code that explores its features. Each call of a function scans the whole record.
// Borrows the record, which must not change. The features borrow the record and the ExampleView. An
// ExampleView is for one thread at a time.
class ExampleView {
 public:
  // Checks the whole record.
  static absl::StatusOr<ExampleView> Parse(absl::string_view record ABSL_ATTRIBUTE_LIFETIME_BOUND,
                                           const ExampleFormat& format = TensorFlowExample());

  // The feature `name`. If the record lacks this feature, the result has the kind kMissing, and
  // borrows `name`.
  FeatureView Find(absl::string_view name ABSL_ATTRIBUTE_LIFETIME_BOUND) const;

  // All features, sorted by name, each name once. A feature that is in the record without a list is
  // included, with the kind kMissing.
  std::vector<FeatureView> Features() const;
  // Like Features(), but at most kMaxFirstFeatures features and kMaxFirstNameBytes of names. Takes
  // the features in the record's order, and leaves out each that no longer fits.
  std::vector<FeatureView> FirstFeatures() const;

 private:
  ExampleView(absl::string_view record, const ExampleFormat& format)
      : record_(record), format_(&format) {}
  std::vector<FeatureView> Features(size_t at_most, size_t name_bytes) const;
  // Visits the features of the record, which Parse() accepted.
  void Decode(absl::FunctionRef<void(const FeatureView&)> visit) const;

  absl::string_view record_;
  const ExampleFormat* format_;
  mutable MadeText made_;  // Owns text of the features that were returned.
};

// A feature that a record holds, for the description of a dataset. Does not borrow from the record.
struct FeatureDescription {
  std::string name;
  FeatureKind kind = FeatureKind::kMissing;
  int64_t count = 0;

  bool operator==(const FeatureDescription&) const = default;
};

// Describes the features of ExampleView::FirstFeatures().
absl::StatusOr<std::vector<FeatureDescription>> DescribeFeatures(
    absl::string_view record, const ExampleFormat& format = TensorFlowExample());

}  // namespace systole

#endif  // SYSTOLE_CORE_EXAMPLE_EXAMPLE_PARSER_H_
