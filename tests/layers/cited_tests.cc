#include "tests/layers/cited_tests.h"

#include <cstddef>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace systole::layers {
namespace {

// All tests, as "Suite.Name".
std::set<std::string> DefinedTests(const std::vector<SourceFile>& sources) {
  static const std::regex definition(R"(TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\))");
  std::set<std::string> tests;
  for (const SourceFile& file : sources) {
    const std::sregex_iterator end;
    for (std::sregex_iterator at(file.text.begin(), file.text.end(), definition); at != end; ++at) {
      tests.insert(absl::StrCat(at->str(1), ".", at->str(2)));
    }
  }
  return tests;
}

}  // namespace

std::vector<std::string> CheckCitedTests(const Tree& tree) {
  static const std::regex citation(R"(`(\w+Test)?\.([A-Z]\w+)`)");
  const std::set<std::string> tests = DefinedTests(tree.tests);
  std::vector<std::string> violations;
  for (const SourceFile& file : tree.documents) {
    const std::vector<std::string> lines = absl::StrSplit(file.text, '\n');
    for (size_t i = 0; i < lines.size(); ++i) {
      std::string suite;
      const std::sregex_iterator end;
      for (std::sregex_iterator at(lines[i].begin(), lines[i].end(), citation); at != end; ++at) {
        if ((*at)[1].matched) suite = at->str(1);
        const std::string name = absl::StrCat(suite, ".", at->str(2));
        if (suite.empty() || tests.contains(name)) continue;
        violations.push_back(
            absl::StrCat(file.path, ":", i + 1, ": cites ", name, ", but there is no such test"));
      }
    }
  }
  return violations;
}

}  // namespace systole::layers
