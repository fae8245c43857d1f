// Checks a source tree against LayerRules: includes and links, foreign libraries, reserved words,
// sizes, folder names and the top level. The checks work on text, so a test can give them a tree
// that breaks a rule and expect the violation.
//
// Thread-safe: pure functions; only ReadTree touches the disk.
#ifndef SYSTOLE_TESTS_LAYERS_LAYER_CHECK_H_
#define SYSTOLE_TESTS_LAYERS_LAYER_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/layers/layer_rules.h"

namespace systole::layers {

struct SourceFile {
  std::string path;  // From the top of the tree, with '/'.
  std::string text;
};

struct Tree {
  std::vector<std::string> top_level;  // Names, without dotfiles and `build`.
  std::vector<std::string> folders;    // From the top, without dotfolders and `build`.
  // Every .h and .cc below core, proto, server and client.
  std::vector<SourceFile> sources;
  // Every CMakeLists.txt below these four folders.
  std::vector<SourceFile> builds;
  // Every .h, .cc, .py and .sh of the whole tree except `tests`.
  std::vector<SourceFile> programs;
  // Every .cc below `tests`.
  std::vector<SourceFile> tests;
  // Every .md of the whole tree.
  std::vector<SourceFile> documents;
};

struct Include {
  int line = 0;
  bool angle = false;  // True for <path>, false for "path".
  std::string path;
};

// Replaces the comments in `text` by blanks. Lines and string literals stay.
std::string BlankComments(absl::string_view text);

// The includes of a file. Comments do not count.
std::vector<Include> ParseIncludes(absl::string_view text);

// Reads the tree below `root`. Returns NotFound if there is no such folder.
absl::StatusOr<Tree> ReadTree(const std::string& root);

// Each check returns one line per violation, "path:line: what is wrong". A good tree has none.
std::vector<std::string> CheckIncludes(const LayerRules& rules,
                                       const std::vector<SourceFile>& sources);
// In each systole_room() of CMake, the rooms in DEPS must be exactly the rooms whose headers the
// room includes. Each room of `rules` must have a systole_room(), except those in rules.not_linked.
std::vector<std::string> CheckLinks(const LayerRules& rules, const Tree& tree);
// Includes may form no circle. A source and its header count as one file.
std::vector<std::string> CheckCircles(const std::vector<SourceFile>& sources);
std::vector<std::string> CheckReservedWords(const LayerRules& rules,
                                            const std::vector<SourceFile>& sources);
// A header's guard must spell the header's path: if two headers had the same guard, the compiler
// would skip one of them without an error. Every header must say how threads may use its code
// ("Thread-safe", ..). A source must include its own header first, which shows that the header
// compiles alone.
std::vector<std::string> CheckHeaders(const std::vector<SourceFile>& sources);
// A file that uses a name of rules.precompiled must include the name's header, directly or through
// headers of the tree. A build that precompiles the header would not notice that this include is
// missing.
std::vector<std::string> CheckPrecompiledNames(const LayerRules& rules,
                                               const std::vector<SourceFile>& sources);
// No file may be longer than rules.max_lines. No header may be longer, together with the sources
// that implement it, than rules.max_lines_of_header_and_sources. x.h is implemented by x.cc and by
// each x_*.cc of its folder that has no header of its own. If a source fits two headers, it counts
// for the header with the longer name.
std::vector<std::string> CheckSizes(const LayerRules& rules,
                                    const std::vector<SourceFile>& programs);
std::vector<std::string> CheckFolders(const LayerRules& rules, const Tree& tree);
// Checks `rules` itself: a room may include only rooms that `rules` has, and only rooms of a lower
// level. So no circle of rooms is possible.
std::vector<std::string> CheckRules(const LayerRules& rules);

}  // namespace systole::layers

#endif  // SYSTOLE_TESTS_LAYERS_LAYER_CHECK_H_
