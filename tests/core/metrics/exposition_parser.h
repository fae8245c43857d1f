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
  // By name and labels as they are written: "a_total{x=\"1\"}".
  std::map<std::string, double> series;
  std::map<std::string, std::string> types;  // By the family's name.

  std::set<std::string> names() const;
};

// The rules:
//   * # HELP, # TYPE and then the series of one family, and no family twice.
//   * names [a-z_][a-z0-9_]*; a counter ends in _total, and nothing else does; units are seconds
//     and bytes.
//   * no series twice; labels have values without control characters.
//   * values of counters and of histograms are finite and not negative. Buckets ascend, in their
//     bounds and in their numbers; the last one is +Inf, and equals _count.
//   * the text ends with a line end.
// InvalidArgument with the line otherwise.
absl::StatusOr<Exposition> ParseExposition(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_METRICS_EXPOSITION_PARSER_H_
