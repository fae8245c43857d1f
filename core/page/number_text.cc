#include "core/page/number_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace systole {
namespace {

struct Prefix {
  double factor;
  const char* name;
};
constexpr Prefix kPrefixes[] = {{1e-9, "n"}, {1e-6, "µ"}, {1e-3, "m"}, {1, ""},    {1e3, "k"},
                                {1e6, "M"},  {1e9, "G"},  {1e12, "T"}, {1e15, "P"}};

struct UnitRule {
  const char* name;    // Written after the prefix.
  double least, most;  // The smallest and largest prefix in use.
};

UnitRule RuleOf(NumberUnit unit) {
  switch (unit) {
    case NumberUnit::kNone:
    case NumberUnit::kCount:
      return {"", 1, 1};
    case NumberUnit::kSeconds:
      return {"s", 1e-9, 1};
    case NumberUnit::kFraction:
      return {"%", 1, 1};
    case NumberUnit::kBytes:
      return {"B", 1, 1e15};
    case NumberUnit::kBytesPerSecond:
      return {"B/s", 1, 1e15};
    case NumberUnit::kFlops:
      return {"FLOP", 1, 1e15};
    case NumberUnit::kFlopsPerSecond:
      return {"FLOP/s", 1, 1e15};
    case NumberUnit::kFlopsPerByte:
      return {"FLOP/B", 1, 1};
  }
  return {"", 1, 1};
}

// The largest prefix with which `value`, printed with three digits, is at least 1.
Prefix PrefixOf(double value, const UnitRule& rule) {
  Prefix chosen = {1, ""};
  bool found = false;
  for (const Prefix& prefix : kPrefixes) {
    if (prefix.factor < rule.least || prefix.factor > rule.most) continue;
    if (!found || std::abs(value) >= 0.9995 * prefix.factor) chosen = prefix;
    found = true;
  }
  return value == 0 ? Prefix{1, ""} : chosen;
}

// "-1234567.5" -> "-1,234,567.5"
std::string Grouped(std::string digits) {
  const size_t first = digits.find_first_of("0123456789");
  size_t place = std::min(digits.find('.'), digits.size());
  while (place > first + 3) {
    place -= 3;
    digits.insert(place, 1, ',');
  }
  return digits;
}

std::string WithUnit(const std::string& digits, const std::string& unit) {
  return unit.empty() ? digits : absl::StrCat(digits, " ", unit);
}

// Three significant digits, or all digits before the point if there are more than three.
std::string Digits(double value) {
  const double size = std::abs(value);
  if (size != 0 && size < 0.01) return absl::StrFormat("%.3g", value);
  const int decimals = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  return Grouped(absl::StrFormat("%.*f", decimals, value));
}

}  // namespace

std::string NumberText(double value, NumberUnit unit) {
  if (!std::isfinite(value)) return "n/a";
  if (unit == NumberUnit::kFraction) return Digits(100 * value) + " %";
  // An integer is shown whole.
  if (unit == NumberUnit::kCount && value == std::floor(value)) {
    return Grouped(absl::StrFormat("%.0f", value));
  }
  if (unit == NumberUnit::kNone) return absl::StrFormat("%.6g", value);
  const UnitRule rule = RuleOf(unit);
  const Prefix prefix = PrefixOf(value, rule);
  return WithUnit(Digits(value / prefix.factor), absl::StrCat(prefix.name, rule.name));
}

std::string TickText(double value, double step, double largest, NumberUnit unit) {
  const UnitRule rule = RuleOf(unit);
  Prefix prefix = PrefixOf(largest, rule);
  if (unit == NumberUnit::kFraction) prefix.factor = 0.01;
  int decimals = 0;
  for (double rest = step / prefix.factor; decimals < 9 && rest < 0.9999; rest *= 10) ++decimals;
  // A step of 2.5 needs a decimal; steps of 1, 2 and 5 do not.
  const double scaled_step = step / prefix.factor;
  if (decimals == 0 && scaled_step != std::floor(scaled_step) && scaled_step < 10) decimals = 1;
  return WithUnit(Grouped(absl::StrFormat("%.*f", decimals, value / prefix.factor)),
                  absl::StrCat(prefix.name, rule.name));
}

}  // namespace systole
