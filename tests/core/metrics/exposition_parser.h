// Reads Prometheus' text format, strictly: what a scraper may forgive is an error here.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_METRICS_EXPOSITION_PARSER_H_
#define SYSTOLE_TESTS_CORE_METRICS_EXPOSITION_PARSER_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole {

struct Exposition {
  // The key is the name with the labels, as they are written: "a_total{x=\"1\"}".
  std::map<std::string, double> series;
  std::map<std::string, std::string> types;  // The key is the family's name.

  std::set<std::string> names() const;
};

// Returns InvalidArgument with the line if the text breaks one of these rules:
//   * Each family comes once: # HELP, then # TYPE, then its series.
//   * A name matches [a-z_][a-z0-9_]*. The names of counters end in _total, and no other names do.
//     Units are seconds and bytes.
//   * Each series comes once. Values of labels have no control characters.
//   * Values of counters and of histograms are finite and not negative. From bucket to bucket the
//     bound rises, and the count does not fall. The last bucket has the bound +Inf and the count
//     of the series _count.
//   * The text ends with a line end.
absl::StatusOr<Exposition> ParseExposition(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_METRICS_EXPOSITION_PARSER_H_
