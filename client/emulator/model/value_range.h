// Refuses numbers and names in a model's text that are out of range. Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_MODEL_VALUE_RANGE_H_
#define SYSTOLE_CLIENT_EMULATOR_MODEL_VALUE_RANGE_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace systole::emulator {

// Limits of the sizes in a model's file. No real model comes near these limits.
inline constexpr int64_t kLargestEdge = 1 << 14;
inline constexpr int64_t kMostElements = int64_t{1} << 28;

// OK if smallest <= value <= largest. Otherwise InvalidArgument; the message begins with `what`.
inline absl::Status CheckRange(absl::string_view what, int64_t value, int64_t smallest,
                               int64_t largest) {
  if (value >= smallest && value <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", value, ", want ", smallest, " to ", largest));
}

// OK if smallest <= value < below. Otherwise, and for a NaN, InvalidArgument; the message begins
// with `what`.
inline absl::Status CheckRange(absl::string_view what, float value, float smallest, float below) {
  if (value >= smallest && value < below) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", value, ", want at least ", smallest, " and less than ", below));
}

// OK if `name` can be put into a report, a table or a message without escaping. Otherwise
// InvalidArgument; the message begins with `what`.
inline absl::Status CheckName(absl::string_view what, absl::string_view name) {
  const bool known = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
  if (known && !name.empty() && name.size() <= 100) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " is '",
                                                 absl::CHexEscape(name.substr(0, 100)),
                                                 "', want 1 to 100 letters, digits, _, - or ."));
}

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_MODEL_VALUE_RANGE_H_
