#include "core/column/condition.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

using Bits = std::vector<uint64_t>;

constexpr int64_t kWordBits = 64;
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr double kTwoTo63 = 9223372036854775808.0;

// Clears the bits of the records for which `meets(record)` is false.
template <typename Meets>
void Keep(int64_t num_records, Meets meets, Bits& bits) {
  for (size_t w = 0; w < bits.size(); ++w) {
    const int64_t begin = static_cast<int64_t>(w) * kWordBits;
    const int64_t end = std::min(begin + kWordBits, num_records);
    uint64_t word = 0;
    for (int64_t record = begin; record < end; ++record) {
      word |= static_cast<uint64_t>(meets(record)) << (record - begin);
    }
    bits[w] &= word;
  }
}

// The largest whole number that is not above `number`. REQUIRES: -2^63 <= number < 2^63.
int64_t Floor(double number) {
  const auto whole = static_cast<int64_t>(number);
  return static_cast<double>(whole) > number ? whole - 1 : whole;
}
bool IsWhole(double number) {
  return number >= -kTwoTo63 && number < kTwoTo63 &&
         static_cast<double>(static_cast<int64_t>(number)) == number;
}

// The whole numbers from `least` to `most` that are among `in`, if it was given, and not among
// `not_in`.
struct Int64Tests {
  explicit Int64Tests(const Condition& condition) {
    if (condition.greater.has_value()) Raise(*condition.greater, /*by=*/1);
    if (condition.greater_equal.has_value()) {
      const double bound = *condition.greater_equal;
      Raise(bound, IsWhole(bound) ? 0 : 1);
    }
    if (condition.less_equal.has_value()) Lower(*condition.less_equal, /*by=*/0);
    if (condition.less.has_value()) {
      const double bound = *condition.less;
      Lower(bound, IsWhole(bound) ? 1 : 0);
    }
    has_in = !condition.in.empty();
    in = Wholes(condition.in);
    not_in = Wholes(condition.not_in);
  }

  bool Meets(int64_t value) const {
    return value >= least && value <= most && !none &&
           (!has_in || std::binary_search(in.begin(), in.end(), value)) &&
           (not_in.empty() || !std::binary_search(not_in.begin(), not_in.end(), value));
  }

  int64_t least = kLeast;
  int64_t most = kMost;
  bool none = false;
  bool has_in = false;
  std::vector<int64_t> in;
  std::vector<int64_t> not_in;

 private:
  // Allows no number below floor(bound) + by.
  void Raise(double bound, int64_t by) {
    if (bound < -kTwoTo63) return;
    if (bound >= kTwoTo63) {
      none = true;
    } else {
      // The sum does not overflow: a double below 2^63 is below 2^63 - 1023.
      least = std::max(least, Floor(bound) + by);
    }
  }
  // Allows no number above floor(bound) - by.
  void Lower(double bound, int64_t by) {
    if (bound >= kTwoTo63) return;
    if (bound < -kTwoTo63 || (by > 0 && Floor(bound) == kLeast)) {
      none = true;
    } else {
      most = std::min(most, Floor(bound) - by);
    }
  }
  static std::vector<int64_t> Wholes(const std::vector<double>& numbers) {
    std::vector<int64_t> wholes;
    for (const double number : numbers) {
      if (IsWhole(number)) wholes.push_back(static_cast<int64_t>(number));
    }
    std::sort(wholes.begin(), wholes.end());
    return wholes;
  }
};

float ToFloat(double number) {
  constexpr double kMostFloat = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (number > kMostFloat) return kInfinity;
  if (number < -kMostFloat) return -kInfinity;
  return static_cast<float>(number);
}

struct FloatTests {
  explicit FloatTests(const Condition& condition)
      : in(Floats(condition.in)), not_in(Floats(condition.not_in)) {
    const auto set = [](const std::optional<double>& from, std::optional<float>& to) {
      if (from.has_value()) to = ToFloat(*from);
    };
    set(condition.less, less);
    set(condition.less_equal, less_equal);
    set(condition.greater, greater);
    set(condition.greater_equal, greater_equal);
    has_in = !condition.in.empty();
  }

  bool Meets(float value) const {
    const bool is_number = value == value;
    return (!less.has_value() || value < *less) &&
           (!less_equal.has_value() || value <= *less_equal) &&
           (!greater.has_value() || value > *greater) &&
           (!greater_equal.has_value() || value >= *greater_equal) &&
           (!has_in || (is_number && std::binary_search(in.begin(), in.end(), value))) &&
           (not_in.empty() || !is_number ||
            !std::binary_search(not_in.begin(), not_in.end(), value));
  }

  std::optional<float> less;
  std::optional<float> less_equal;
  std::optional<float> greater;
  std::optional<float> greater_equal;
  bool has_in = false;
  std::vector<float> in;
  std::vector<float> not_in;

 private:
  static std::vector<float> Floats(const std::vector<double>& numbers) {
    std::vector<float> floats;
    for (const double number : numbers) floats.push_back(ToFloat(number));
    std::sort(floats.begin(), floats.end());
    return floats;
  }
};

bool IsPresent(uint32_t length) { return length <= kMostColumnLength; }

void TestFeature(const Condition& condition, const Column& column, Bits& bits) {
  const int64_t records = column.num_records;
  if (condition.present.has_value()) {
    const uint32_t absent = kAbsentFeature;
    const bool present = *condition.present;
    Keep(
        records,
        [&](int64_t i) {
          return present ? IsPresent(column.LengthOf(i)) : column.LengthOf(i) == absent;
        },
        bits);
  }
  if (condition.min_length.has_value() || condition.max_length.has_value()) {
    const int64_t least = condition.min_length.value_or(0);
    const int64_t most = condition.max_length.value_or(kMost);
    Keep(
        records,
        [&](int64_t i) {
          const uint32_t length = column.LengthOf(i);
          return IsPresent(length) && length >= least && length <= most;
        },
        bits);
  }
  if (!condition.tests_values()) return;
  // Lengths first, because a record without exactly one value has no value to test.
  Keep(
      records, [&](int64_t i) { return column.LengthOf(i) == 1; }, bits);
  if (!column.int64s.empty()) {
    const Int64Tests tests(condition);
    Keep(
        records, [&](int64_t i) { return tests.Meets(column.int64s[i]); }, bits);
  } else if (!column.floats.empty()) {
    const FloatTests tests(condition);
    Keep(
        records, [&](int64_t i) { return tests.Meets(column.floats[i]); }, bits);
  }
}

// A bit for each record.
Bits AllRecords(int64_t num_records) {
  Bits bits(static_cast<size_t>((num_records + kWordBits - 1) / kWordBits), ~uint64_t{0});
  if (num_records % kWordBits != 0) bits.back() = (uint64_t{1} << (num_records % kWordBits)) - 1;
  return bits;
}

using BitsOfTests = std::map<const Condition*, Bits>;

// Finds all tests of the column's feature within `condition`, and adds the bits of each test.
void AddTests(const Condition& condition, const Column& column, BitsOfTests& tests) {
  if (condition.feature == column.feature) {
    Bits& bits = tests.emplace(&condition, AllRecords(column.num_records)).first->second;
    TestFeature(condition, column, bits);
  }
  for (const Condition& part : condition.parts) AddTests(part, column, tests);
}

Bits Joined(const Condition& condition, BitsOfTests& tests) {
  if (!condition.feature.empty()) return std::move(tests.at(&condition));
  Bits joined;
  for (const Condition& part : condition.parts) {
    const Bits bits = Joined(part, tests);
    if (joined.empty()) {
      joined = bits;
      continue;
    }
    for (size_t w = 0; w < joined.size(); ++w) {
      joined[w] = condition.all ? joined[w] & bits[w] : joined[w] | bits[w];
    }
  }
  return joined;
}

void AddFeatures(const Condition& condition, std::set<std::string>& features) {
  if (!condition.feature.empty()) features.insert(condition.feature);
  for (const Condition& part : condition.parts) AddFeatures(part, features);
}

// Names a record for a message: its number is the field `first` of the first shard in which this
// field is set. "" if no shard has this field set.
std::string FirstOf(absl::Span<const ShardColumnFacts> shards, int64_t ColumnFacts::*first) {
  for (const ShardColumnFacts& shard : shards) {
    if (shard.facts.*first >= 0) {
      return absl::StrCat("record ", shard.facts.*first, " of ", shard.shard);
    }
  }
  return "";
}

}  // namespace

bool Condition::tests_values() const {
  return !in.empty() || !not_in.empty() || less.has_value() || less_equal.has_value() ||
         greater.has_value() || greater_equal.has_value();
}

std::vector<std::string> FeaturesOf(const Condition& condition) {
  std::set<std::string> features;
  AddFeatures(condition, features);
  return {features.begin(), features.end()};
}

absl::StatusOr<std::vector<uint64_t>> RecordsThatMeet(const Condition& condition, GetColumn get) {
  BitsOfTests tests;
  for (const std::string& feature : FeaturesOf(condition)) {
    if (InterruptRequested()) return InterruptedError();
    SYSTOLE_ASSIGN_OR_RETURN(const Column column, get(feature));
    AddTests(condition, column, tests);
  }
  return Joined(condition, tests);
}

absl::Status CheckComparable(const Condition& condition, absl::string_view feature,
                             absl::Span<const ShardColumnFacts> shards) {
  for (const Condition& part : condition.parts) {
    const absl::Status comparable = CheckComparable(part, feature, shards);
    if (!comparable.ok()) return comparable;
  }
  if (condition.feature != feature || !condition.tests_values()) return absl::OkStatus();
  const auto refuse = [&](auto... what) {
    return absl::InvalidArgumentError(absl::StrCat(condition.field, " compares values of feature '",
                                                   ForeignName(feature), "', which ", what...,
                                                   "; test `present`, min_length or max_length"));
  };
  const std::string bytes = FirstOf(shards, &ColumnFacts::first_bytes);
  if (!bytes.empty()) return refuse("holds bytes in ", bytes);
  const std::string many = FirstOf(shards, &ColumnFacts::first_long);
  if (!many.empty()) return refuse("has more than one value in ", many);
  const std::string floats = FirstOf(shards, &ColumnFacts::first_float);
  const std::string int64s = FirstOf(shards, &ColumnFacts::first_int64);
  if (floats.empty() || int64s.empty()) return absl::OkStatus();
  return refuse("holds a float in ", floats, " and an int64 in ", int64s);
}

}  // namespace systole
