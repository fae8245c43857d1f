// One feature of a record, read in place, without a copy or an allocation. An ExampleFormat makes
// the view, after it has checked the bytes. Bytes of a mapped file may change after this check.
// Even then the returned views lie within the record, and nothing is written outside the caller's
// span. If a read notices the change, it returns DataLoss.
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
  // Features of any number of values. The values lie one after the other in memory, in the
  // processor's byte order and at any address. Borrows the values. The number of bytes is a
  // multiple of a value's size.
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

  // OK if the kind and the count fit exactly. Otherwise InvalidArgument, which names the feature,
  // what was wanted and what was seen.
  absl::Status Expect(FeatureKind kind, int64_t count) const;
  // OK if the kind fits. Otherwise InvalidArgument, as above.
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

  // All values, if the feature is from OfFloatArray() and its values are aligned for float. Then a
  // caller need not copy the values. Otherwise a span without data.
  absl::Span<const float> FloatsInPlace() const;

 private:
  friend class FeatureDecoder;

  // What `list_` holds.
  enum class Form : uint8_t {
    kEncoded,   // The encoding of a list.
    kOneValue,  // The only bytes value. Empty if the only value is in `number_`.
    kArray,     // The values, one after the other.
  };

  FeatureView(absl::string_view name, FeatureKind kind, Form form = Form::kOneValue,
              int64_t count = 1)
      : name_(name), count_(count), kind_(kind), form_(form) {}

  // Calls visit(list) with the encoding of each BytesList, FloatList or Int64List that counts.
  // False if visit() returns false, or if the bytes are no longer those that were checked.
  template <typename Visit>
  bool ForEachList(Visit visit) const;
  absl::Status Changed() const;
  // InvalidArgument that says what was wanted, and what the feature is.
  absl::Status Unexpected(absl::string_view wanted) const;
  // OK if the list is of `kind` and has at least `count` values. Otherwise InvalidArgument.
  absl::Status ExpectAtLeast(FeatureKind kind, size_t count) const;
  // Copies values until `out` is full. Returns how many values were copied, and whether the list
  // has no further value.
  struct Copied {
    size_t values = 0;
    bool all = false;
  };
  // For the form kArray.
  template <typename Number>
  Copied CopyArray(absl::Span<Number> out) const;
  Copied ReadInt64s(absl::Span<int64_t> out) const;
  Copied ReadFloats(absl::Span<float> out) const;

  absl::string_view name_;
  // The list's encoding, if it is in one piece, as every writer makes it. Protobuf allows several
  // pieces. If there are several, `entry_` is the map entry around the pieces. The first
  // `skipped_lists_` lists of the entry do not count, because a later list of another kind replaced
  // them.
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
