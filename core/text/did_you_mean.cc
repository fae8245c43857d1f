#include "core/text/did_you_mean.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr size_t kMaxWordBytes = 64;
constexpr size_t kMaxKnown = 1000;

std::string Folded(absl::string_view word) {
  std::string folded = absl::AsciiStrToLower(word);
  std::replace(folded.begin(), folded.end(), '-', '_');
  return folded;
}

// How many letters have to be changed, added, removed or swapped with a neighbour to get from one
// word to the other (optimal string alignment).
size_t EditDistance(absl::string_view a, absl::string_view b) {
  // Rows i - 2, i - 1 and i of the table.
  std::vector<size_t> two_before(b.size() + 1);
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) before[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_before[j - 2] + 1);
      }
    }
    std::swap(two_before, before);
    std::swap(before, row);
  }
  return before[b.size()];
}

}  // namespace

std::string DidYouMean(absl::string_view word, absl::Span<const std::string> known) {
  if (word.empty() || word.size() > kMaxWordBytes) return "";
  const std::string meant = Folded(word);
  size_t least = std::max<size_t>(1, meant.size() / 3) + 1;
  const std::string* nearest = nullptr;
  for (const std::string& each : known.subspan(0, kMaxKnown)) {
    if (each.empty() || each.size() > kMaxWordBytes) continue;
    // If the distance is as large as the longer word's length, the words have nothing in common.
    const size_t limit = std::min(least, std::max(each.size(), meant.size()));
    const size_t longer = std::max(each.size(), meant.size());
    if (longer - std::min(each.size(), meant.size()) >= limit) continue;
    const size_t distance = EditDistance(meant, Folded(each));
    if (distance >= limit) continue;
    least = distance;
    nearest = &each;
  }
  if (nearest == nullptr) return "";
  return absl::StrCat("; did you mean '", ForeignName(*nearest), "'?");
}

}  // namespace systole
