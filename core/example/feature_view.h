// One feature of a record, read in place, without a copy or an allocation. An ExampleFormat checks
// the bytes of the record and then makes the view. Bytes of a mapped file may change after this
// check. Even then the returned views lie within the record, and nothing is written outside the
// caller's span. A function that notices the change returns DataLoss.
//
// Thread-compatible. Borrows the record and the feature's name. The name comes from the format or,
// if the feature is missing, from the caller. The record and the name must outlive this view and
// the views that it returns.
#ifndef SYSTOLE_CORE_EXAMPLE_FEATURE_VIEW_H_
#define SYSTOLE_CORE_EXAMPLE_FEATURE_VIEW_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace systole {

// kMissing: the record does not have the feature, or the feature has no list.
enum class FeatureKind : uint8_t { kMissing, kBytes, kFloat, kInt64 };

// "missing", "bytes", "float", "int64".
absl::string_view FeatureKindName(FeatureKind kind);

class FeatureView {
 public:
  FeatureView() = default;                                       // Missing, without a name.
  explicit FeatureView(absl::string_view name) : name_(name) {}  // Missing.

  // Features of one value, for formats other than tf.train.Example. A bytes value is borrowed.
  static FeatureView OfBytes(absl::string_view name, absl::string_view value);
  static FeatureView OfInt64(absl::string_view name, int64_t value);
  static FeatureView OfFloat(absl::string_view name, float value);
  // Features of any number of values. `values` has the bytes of all values, one value after the
  // other, in the processor's byte order. They are borrowed, and need not be aligned. Their number
  // must be a multiple of a value's size.
  static FeatureView OfInt64Array(absl::string_view name, absl::string_view values);
  static FeatureView OfFloatArray(absl::string_view name, absl::string_view values);

  // The same feature under another name, which is borrowed.
  FeatureView Renamed(absl::string_view name) const {
    FeatureView view = *this;
    view.name_ = name;
    return view;
  }

  absl::string_view name() const { return name_; }
  FeatureKind kind() const { return kind_; }

  // The number of values in the list. 0 if the feature is missing, or if its list is empty.
  int64_t count() const { return count_; }

  // OK if the feature has this kind and exactly `count` values. Otherwise InvalidArgument, which
  // names the feature, what was wanted and what was seen.
  absl::Status Expect(FeatureKind kind, int64_t count) const;
  // OK if the feature has this kind. Otherwise InvalidArgument, as above.
  absl::Status ExpectKind(FeatureKind kind) const;

  // The value at `index` of a bytes list, as a view into the record. InvalidArgument as above, if
  // the kind differs or `index` is not in [0, count()). O(1) for a single value, else O(index).
  absl::StatusOr<absl::string_view> BytesAt(int64_t index) const;

  // Sets `out` to all values of a bytes list, as views into the record. `out` must have exactly
  // count() elements. Errors as above. O(count()).
  absl::Status GetBytes(absl::Span<absl::string_view> out) const;

  // Copies the whole list; `out` must have exactly count() elements. If the number of elements or
  // the kind is wrong, returns InvalidArgument as above, and leaves `out` alone. Floats keep every
  // bit (NaN payloads too).
  absl::Status CopyInt64s(absl::Span<int64_t> out) const;
  absl::Status CopyFloats(absl::Span<float> out) const;
  // Copies the first out.size() values of a list that may have more. Errors as above.
  absl::Status CopyFirstInt64s(absl::Span<int64_t> out) const;
  absl::Status CopyFirstFloats(absl::Span<float> out) const;

  // All values, without a copy, if the feature is from OfFloatArray() and the values are aligned
  // for float. Otherwise a span whose data() is null.
  absl::Span<const float> FloatsInPlace() const;

 private:
  friend class FeatureDecoder;

  // What `list_` holds.
  enum class Form : uint8_t {
    kEncoded,   // The encoding of a list.
    kOneValue,  // The only value, if it is bytes. A number is in `number_` instead.
    kArray,     // The values, one after the other.
  };

  FeatureView(absl::string_view name, FeatureKind kind, Form form = Form::kOneValue,
              int64_t count = 1)
      : name_(name), count_(count), kind_(kind), form_(form) {}

  // Calls visit(list) with the encoding of each BytesList, FloatList or Int64List that counts (see
  // skipped_lists_). False if visit() returns false, or if the bytes have changed since the check.
  template <typename Visit>
  bool ForEachList(Visit visit) const;
  absl::Status Changed() const;
  // InvalidArgument that says what was wanted, and what the feature is.
  absl::Status Unexpected(absl::string_view wanted) const;
  // OK if the list is of `kind` and has at least `count` values. Otherwise InvalidArgument.
  absl::Status ExpectAtLeast(FeatureKind kind, size_t count) const;
  // How many values were copied, and whether the list has no further value.
  struct Copied {
    size_t values = 0;
    bool all = false;
  };
  // Each of these copies values until `out` is full. CopyArray() is for the form kArray.
  template <typename Number>
  Copied CopyArray(absl::Span<Number> out) const;
  Copied ReadInt64s(absl::Span<int64_t> out) const;
  Copied ReadFloats(absl::Span<float> out) const;

  absl::string_view name_;
  // `form_` says what this holds. Protobuf allows a list to be encoded in several pieces, which no
  // writer makes. For such a list `list_` is not used, and `entry_` is the map entry around the
  // pieces. The first `skipped_lists_` lists of the entry do not count, because a later list of
  // another kind replaced them. For all other lists `entry_` is empty.
  absl::string_view list_;
  absl::string_view entry_;
  int64_t skipped_lists_ = 0;
  int64_t count_ = 0;
  FeatureKind kind_ = FeatureKind::kMissing;
  Form form_ = Form::kEncoded;
  union {
    int64_t int64 = 0;
    float float32;
  } number_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_EXAMPLE_FEATURE_VIEW_H_
