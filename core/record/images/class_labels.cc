#include "core/record/images/class_labels.h"

#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status/status_macros.h"
#include "core/storage/stores/list_shards.h"
#include "core/text/foreign_text.h"

namespace systole {

absl::StatusOr<std::string> LabelsText(absl::Span<const std::string> classes) {
  std::string text;
  for (const std::string& name : classes) {
    if (absl::StrContains(name, '\n') || absl::EndsWith(name, "\r")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the class folder ", ForeignName(name), " has a line break in its name, but ",
          kLabelsFileName, " has a line for each class; rename it"));
    }
    absl::StrAppend(&text, name, "\n");
  }
  if (text.size() > kMaxLabelsBytes) {
    return absl::InvalidArgumentError(absl::StrCat(kLabelsFileName, " would have ", text.size(),
                                                   " bytes, the most is ", kMaxLabelsBytes,
                                                   "; shorten the names of the class folders"));
  }
  SYSTOLE_RETURN_IF_ERROR(ParseLabels(text).status());
  return text;
}

absl::StatusOr<std::vector<std::string>> ParseLabels(absl::string_view text) {
  std::vector<std::string> classes;
  std::set<absl::string_view> seen;
  while (!text.empty()) {
    absl::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size());
    absl::ConsumePrefix(&text, "\n");
    absl::ConsumeSuffix(&line, "\r");
    const std::string where = absl::StrCat(kLabelsFileName, ", line ", classes.size() + 1);
    if (line.empty() || line.size() > kMaxClassBytes) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": want the name of a class, 1 to ",
                                                     kMaxClassBytes, " bytes, it has ",
                                                     line.size()));
    }
    if (classes.size() == kMaxClasses) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": it has more than ", kMaxClasses, " classes, the limit"));
    }
    if (!seen.insert(line).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": the class \"", ForeignName(line), "\" has a line above already"));
    }
    classes.emplace_back(line);
  }
  return classes;
}

}  // namespace systole
