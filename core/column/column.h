// A column has one feature of all records of a shard. With columns, conditions on records
// (condition.h) are tested without reading records. For each record, a column has the length of the
// feature's list. If no list of the shard has bytes or several values, and all numbers are int64s
// or all are floats, the column also has the values.
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

// What kinds of lists a feature has. Each field is the number of the shard's first record with a
// list of this kind. -1: no record has such a list.
struct ColumnFacts {
  int64_t first_bytes = -1;
  int64_t first_float = -1;
  int64_t first_int64 = -1;
  int64_t first_long = -1;  // A list of two values or more.

  // Whether the column has values that conditions can test: no record has bytes or more than one
  // value, and all numbers are of one kind.
  bool has_values() const {
    return first_bytes < 0 && first_long < 0 && (first_float < 0 || first_int64 < 0);
  }
  friend bool operator==(const ColumnFacts&, const ColumnFacts&) = default;
};

// These stand in place of a length: the record lacks the feature; the record cannot be read.
inline constexpr uint32_t kAbsentFeature = 0xFFFFFFFF;
inline constexpr uint32_t kDamagedRecord = 0xFFFFFFFE;
// The length that a column gives for longer lists.
inline constexpr uint32_t kMostColumnLength = 0xFFFFFFFD;

struct Column {
  std::string feature;
  int64_t num_records = 0;
  ColumnFacts facts;
  // For each record, the length of its list, kAbsentFeature or kDamagedRecord. Empty: this number
  // is `length` for all records.
  std::vector<uint32_t> lengths;
  uint32_t length = kAbsentFeature;
  // If facts.has_values(): the value of each record, in the vector of the values' kind. 0 for a
  // record without a value. The other vector is empty. Both are empty if no record has a list of
  // numbers, or if facts.has_values() is false.
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
  // Adds the next record. InvalidArgument or DataLoss if the bytes that `feature` refers to have
  // changed since they were parsed.
  absl::Status Add(const FeatureView& feature);
  Column Build() &&;

 private:
  void Add(uint32_t length);

  Column column_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_COLUMN_COLUMN_H_
