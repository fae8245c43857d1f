// Holds a source tree against LayerRules: every include and link against the table of rooms,
// foreign headers against their one fence, reserved words, sizes, folder names, the top level.
// Works on text, so a test can hand it a tree that breaks a rule and see it say so.
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
  std::vector<std::string> top_level;  // Names, dotfiles and `build` left out.
  std::vector<std::string> folders;    // From the top, dotfolders and `build` left out.
  std::vector<SourceFile> sources;     // Every .h and .cc below the four code folders.
  std::vector<SourceFile> builds;      // Every CMakeLists.txt there.
  // Every .h, .cc, .py and .sh of the whole tree but `tests`.
  std::vector<SourceFile> programs;
};

struct Include {
  int line = 0;
  bool angle = false;  // <path> rather than "path".
  std::string path;
};

// `text` with comments blanked out: same lines, string literals kept.
std::string BlankComments(absl::string_view text);

// The includes of a file, comments not counted.
std::vector<Include> ParseIncludes(absl::string_view text);

// Reads the tree below `root`. NotFound if there is none.
absl::StatusOr<Tree> ReadTree(const std::string& root);

// Each returns one line per violation, "path:line: what is wrong", and nothing for a good tree.
std::vector<std::string> CheckIncludes(const LayerRules& rules,
                                       const std::vector<SourceFile>& sources);
// The DEPS of each systole_room() are just the rooms whose headers it includes; and each room of
// the table has a systole_room(), except programs and what is made from .proto files.
std::vector<std::string> CheckLinks(const LayerRules& rules, const Tree& tree);
// No two files of the tree need each other, a source and its header counted as one.
std::vector<std::string> CheckCircles(const std::vector<SourceFile>& sources);
std::vector<std::string> CheckReservedWords(const LayerRules& rules,
                                            const std::vector<SourceFile>& sources);
// Header guards spell the path (two equal guards hide a header without a word), every header says
// its thread word, and a source includes its own header first, so that the header compiles alone.
std::vector<std::string> CheckHeaders(const std::vector<SourceFile>& sources);
// No file is longer than rules.max_lines, and no header with the sources that implement it than
// rules.max_lines_of_header_and_sources. x.h is implemented by x.cc and by each x_*.cc of its
// folder that has no header of its own (if it fits two headers, it counts for the longer name).
std::vector<std::string> CheckSizes(const LayerRules& rules,
                                    const std::vector<SourceFile>& programs);
std::vector<std::string> CheckFolders(const LayerRules& rules, const Tree& tree);
// The table itself: known names, every include from a higher to a lower level, so no cycle.
std::vector<std::string> CheckRules(const LayerRules& rules);

}  // namespace systole::layers

#endif  // SYSTOLE_TESTS_LAYERS_LAYER_CHECK_H_
