// The rules of the tree, as data: the rooms and the rooms that each may include, the foreign
// libraries and the files that may include them, reserved words, the length of files, and the top
// level. layer_check.h checks source files against these rules. To add a room or a library, add a
// row to layer_rules.cc.
//
// Thread-safe: constants and pure functions.
#ifndef SYSTOLE_TESTS_LAYERS_LAYER_RULES_H_
#define SYSTOLE_TESTS_LAYERS_LAYER_RULES_H_

#include <map>
#include <string>
#include <vector>

namespace systole::layers {

// A folder with sources. The files of a room may include one another, and what `may_include` lists.
struct Room {
  std::string folder;
  // A room's level is above the level of every room that it includes.
  int level = 0;
  // Each entry is the folder of a room, or a single header if no other header of its room may be
  // included.
  std::vector<std::string> may_include;
};

// A foreign library.
struct Library {
  std::string name;
  // A header belongs to the library if its path begins with one of these.
  std::vector<std::string> header_prefixes;
  // The library may be included by files whose paths begin with one of these, such as a folder with
  // '/' at its end. If empty, every file may include the library.
  std::vector<std::string> allowed;
  // Folders (with '/' at the end) whose files may not include the library, although `allowed`
  // covers them.
  std::vector<std::string> refused;
};

// Words of code (not of comments) that only some folders may use.
struct ReservedWord {
  // An ECMAScript regular expression.
  std::string pattern;
  std::string reason;
  // Files whose paths begin with one of these may not use the words.
  std::vector<std::string> checked;
  // Exceptions to `checked`, also as beginnings of paths.
  std::vector<std::string> allowed;
};

// A header that a build may compile once for all sources (systole_precompiled_headers in
// CMakeLists.txt), and the names in the header that sources use.
struct PrecompiledHeader {
  std::string path;
  std::vector<std::string> names;
};

struct LayerRules {
  std::vector<Room> rooms;
  // Rooms without a systole_room(): programs, and code that is generated from .proto files.
  std::vector<std::string> not_linked;
  // CMake targets of code that is generated from .proto files, and the room of each ("" for none).
  std::map<std::string, std::string> generated_targets;
  std::vector<Library> libraries;
  std::vector<ReservedWord> reserved_words;
  std::vector<PrecompiledHeader> precompiled;
  // Prefixes of the headers of the C library and the kernel that any file may include.
  std::vector<std::string> system_headers;
  // The most lines of one file, and of a header with the sources that implement it. Tests may have
  // more, because they are lists of cases.
  int max_lines = 0;
  int max_lines_of_header_and_sources = 0;
  // Names that no folder may have, because a folder for everything fits into no layer.
  std::vector<std::string> refused_folder_names;
  // Folders that may have one of these names, because another program prescribes the name.
  std::vector<std::string> folders_of_other_programs;
  // All entries of the top level, except dotfiles and `build`. No other entry may be there.
  std::vector<std::string> top_level;
};

// The rules of this repository.
LayerRules SystoleRules();

}  // namespace systole::layers

#endif  // SYSTOLE_TESTS_LAYERS_LAYER_RULES_H_
