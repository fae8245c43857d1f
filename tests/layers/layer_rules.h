// What the tree may look like, as data: the rooms and the rooms each may include, the libraries
// from outside and the files that may name them, the words that belong to one room alone, how long
// a file may be, and the top level. layer_check.h holds source files against it. Adding a room or a
// library starts here.
//
// Thread-safe: constants and pure functions.
#ifndef SYSTOLE_TESTS_LAYERS_LAYER_RULES_H_
#define SYSTOLE_TESTS_LAYERS_LAYER_RULES_H_

#include <map>
#include <string>
#include <vector>

namespace systole::layers {

// A folder with sources and what its files may include besides one another.
struct Room {
  std::string folder;
  // A room's level is above the level of every room that it includes.
  int level = 0;
  // Folders of rooms, or single headers where only a part of a room is meant.
  std::vector<std::string> may_include;
};

// A library that is not ours, known by how its headers' paths begin.
struct Library {
  std::string name;
  // A header belongs to the library if its path begins with one of these.
  std::vector<std::string> header_prefixes;
  // Files or folders (ending in '/') that may include it. Empty: every file may.
  std::vector<std::string> allowed;
  // Folders (ending in '/') taken out of `allowed` again.
  std::vector<std::string> refused;
};

// Words of code (not of comments) that only some folders may use.
struct ReservedWord {
  // ECMAScript regular expression.
  std::string pattern;
  std::string reason;
  // The rule looks at files below these folders ...
  std::vector<std::string> checked;
  // ... unless they are below one of these.
  std::vector<std::string> allowed;
};

struct LayerRules {
  std::vector<Room> rooms;
  // Rooms without a systole_room(): programs, and what is made from .proto files.
  std::vector<std::string> not_linked;
  // CMake targets of what is made from .proto files, and the room that each stands for.
  std::map<std::string, std::string> generated_targets;
  std::vector<Library> libraries;
  std::vector<ReservedWord> reserved_words;
  // Headers of the C library and the kernel that any file may include, by prefix.
  std::vector<std::string> system_headers;
  // Lines of one file at most, and of a header with the sources that implement it. Tests may have
  // more: they are lists of cases.
  int max_lines = 0;
  int max_lines_of_header_and_sources = 0;
  // Names that no folder may have: a drawer for everything is on no layer.
  std::vector<std::string> refused_folder_names;
  // The entries of the top level, all of them and no other; dotfiles and `build` aside.
  std::vector<std::string> top_level;
};

// The rules of this repository.
LayerRules SystoleRules();

}  // namespace systole::layers

#endif  // SYSTOLE_TESTS_LAYERS_LAYER_RULES_H_
