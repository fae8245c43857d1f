// A column: what one feature holds in each record of a shard. Conditions on records (condition.h)
// are answered from columns, without reading a record. Of a record whose list is exactly one int64
// or float, a column keeps this value. Of other lists it keeps only the length.
//
// Thread-compatible: values.
#ifndef SYSTOLE_CORE_COLUMN_COLUMN_H_
#define SYSTOLE_CORE_COLUMN_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/example/feature_view.h"

namespace systole {

// The most columns that are noted at a time, and the most bytes of a feature's name.
inline constexpr size_t kMaxColumns = 64;
inline constexpr size_t kMaxColumnNameBytes = 1024;

// What kinds of lists a feature has. Each field is the number, in the shard, of the first record
// with such a list. -1: no record has one.
struct ColumnFacts {
  int64_t first_bytes = -1;
  int64_t first_float = -1;
  int64_t first_int64 = -1;
  int64_t first_long = -1;  // A list of two values or more.

  // Whether values can be compared: no record has bytes or more than one value, and all numbers are
  // of one kind.
  bool has_values() const {
    return first_bytes < 0 && first_long < 0 && (first_float < 0 || first_int64 < 0);
  }
  friend bool operator==(const ColumnFacts&, const ColumnFacts&) = default;
};

// In place of a length: the record lacks the feature, or cannot be read.
inline constexpr uint32_t kAbsentFeature = 0xFFFFFFFF;
inline constexpr uint32_t kDamagedRecord = 0xFFFFFFFE;
// Longer lists count as this long.
inline constexpr uint32_t kMostColumnLength = 0xFFFFFFFD;

struct Column {
  std::string feature;
  int64_t num_records = 0;
  ColumnFacts facts;
  // The length of each record's list, or one of the two numbers above. Empty: all have `length`.
  std::vector<uint32_t> lengths;
  uint32_t length = kAbsentFeature;
  // The values, by record, in the vector of their kind, if facts.has_values(). 0 for a record
  // without exactly one value. Both vectors are empty if no record has a value.
  std::vector<int64_t> int64s;
  std::vector<float> floats;

  uint32_t LengthOf(int64_t record) const {
    return lengths.empty() ? length : lengths[static_cast<size_t>(record)];
  }
  int64_t CountOf(uint32_t length) const;
  // How many records have the feature.
  int64_t CountPresent() const {
    return num_records - CountOf(kAbsentFeature) - CountOf(kDamagedRecord);
  }
  friend bool operator==(const Column&, const Column&) = default;
};

// Makes a column, record by record. Takes 12 bytes a record if Reserve() was called. Build() of a
// column of floats takes 4 more bytes a record while it runs.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(std::string feature) { column_.feature = std::move(feature); }

  // Takes memory for this many records at once.
  void Reserve(int64_t num_records) {
    column_.lengths.reserve(static_cast<size_t>(num_records));
    column_.int64s.reserve(static_cast<size_t>(num_records));
  }
  void AddDamaged() { Add(kDamagedRecord); }
  // InvalidArgument or DataLoss if the bytes behind `feature` have changed.
  absl::Status Add(const FeatureView& feature);
  Column Build() &&;

 private:
  void Add(uint32_t length);

  Column column_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_COLUMN_COLUMN_H_
