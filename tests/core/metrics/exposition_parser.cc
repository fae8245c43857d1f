#include "tests/core/metrics/exposition_parser.h"

#include <cmath>
#include <limits>
#include <regex>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

absl::Status Bad(absl::string_view line, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(why, ": ", line));
}

// What the last bucket that was read says, for one histogram with one set of labels.
struct Buckets {
  double last_bound = -std::numeric_limits<double>::infinity();
  double last_count = 0;
  bool has_infinity = false;
};

class Parser {
 public:
  absl::Status Line(const std::string& line) {
    if (absl::StartsWith(line, "# HELP ")) return Help(line);
    if (absl::StartsWith(line, "# TYPE ")) return Type(line);
    return Series(line);
  }

  absl::Status End() const {
    if (expects_type_) return Bad(family_, "no TYPE");
    for (const auto& [key, buckets] : buckets_) {
      if (!buckets.has_infinity) return Bad(key, "no bucket +Inf");
      const auto count = counts_.find(key);
      if (count == counts_.end() || count->second != buckets.last_count) {
        return Bad(key, "_count is not the last bucket");
      }
    }
    return absl::OkStatus();
  }

  Exposition result;

 private:
  absl::Status Help(const std::string& line) {
    static const std::regex kForm("# HELP ([a-z_][a-z0-9_]*) (\\S.*)");
    std::smatch match;
    if (expects_type_ || !std::regex_match(line, match, kForm)) return Bad(line, "bad HELP");
    family_ = match[1];
    if (!helped_.insert(family_).second) return Bad(line, "a family twice");
    expects_type_ = true;
    return absl::OkStatus();
  }

  absl::Status Type(const std::string& line) {
    static const std::regex kForm("# TYPE ([a-z_][a-z0-9_]*) (counter|gauge|histogram)");
    std::smatch match;
    if (!expects_type_ || !std::regex_match(line, match, kForm) || match[1] != family_) {
      return Bad(line, "bad TYPE");
    }
    expects_type_ = false;
    type_ = match[2];
    if ((type_ == "counter") != absl::EndsWith(family_, "_total")) {
      return Bad(line, "a counter's name must end in _total, and no other name may");
    }
    result.types[family_] = type_;
    return absl::OkStatus();
  }

  absl::Status Series(const std::string& line) {
    static const std::regex kForm(
        "([a-z_][a-z0-9_]*)(\\{([a-z_]+=\"[^\"\\\\]*\"(,[a-z_]+=\"[^\"\\\\]*\")*)\\})? (\\S+)");
    std::smatch match;
    if (!std::regex_match(line, match, kForm)) return Bad(line, "no series");
    for (const char c : line) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
        return Bad(line, "a control character");
    }
    double value = 0;
    if (!absl::SimpleAtod(match[5].str(), &value)) return Bad(line, "no number");
    if (type_ != "gauge" && (!std::isfinite(value) || value < 0)) return Bad(line, "a bad number");
    if (!result.series.emplace(match[1].str() + match[2].str(), value).second) {
      return Bad(line, "a series twice");
    }
    const std::string name = match[1];
    const std::string labels = match[3];
    if (expects_type_ || family_.empty()) return Bad(line, "a series before its TYPE");
    if (type_ != "histogram") {
      return name == family_ ? absl::OkStatus() : Bad(line, "a series of another family");
    }
    absl::string_view part = name;
    if (!absl::ConsumePrefix(&part, family_)) return Bad(line, "a series of another family");
    if (part == "_sum") return absl::OkStatus();
    if (part == "_count") {
      counts_[absl::StrCat(family_, "{", labels, "}")] = value;
      return absl::OkStatus();
    }
    return part == "_bucket" ? Bucket(line, labels, value) : Bad(line, "no part of a histogram");
  }

  absl::Status Bucket(const std::string& line, const std::string& labels, double value) {
    std::vector<std::string> rest;
    double bound = std::nan("");
    for (const absl::string_view label : absl::StrSplit(labels, ',')) {
      absl::string_view text = label;
      if (!absl::ConsumePrefix(&text, "le=\"")) {
        rest.emplace_back(label);
        continue;
      }
      text.remove_suffix(1);
      if (text == "+Inf") {
        bound = std::numeric_limits<double>::infinity();
      } else if (!absl::SimpleAtod(text, &bound)) {
        return Bad(line, "a bad bound");
      }
    }
    std::string joined;
    for (const std::string& label : rest) {
      absl::StrAppend(&joined, joined.empty() ? "" : ",", label);
    }
    Buckets& buckets = buckets_[absl::StrCat(family_, "{", joined, "}")];
    if (!(bound > buckets.last_bound) || value < buckets.last_count) {
      return Bad(line, "buckets do not ascend");
    }
    buckets = {.last_bound = bound, .last_count = value, .has_infinity = std::isinf(bound)};
    return absl::OkStatus();
  }

  std::string family_;
  std::string type_;
  bool expects_type_ = false;
  std::set<std::string> helped_;
  std::map<std::string, Buckets> buckets_;
  std::map<std::string, double> counts_;
};

}  // namespace

std::set<std::string> Exposition::names() const {
  std::set<std::string> names;
  for (const auto& [series, value] : this->series) names.insert(series);
  return names;
}

absl::StatusOr<Exposition> ParseExposition(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, "\n")) return Bad("", "the last line does not end");
  Parser parser;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    SYSTOLE_RETURN_IF_ERROR(parser.Line(std::string(line)));
  }
  SYSTOLE_RETURN_IF_ERROR(parser.End());
  return parser.result;
}

}  // namespace systole
