#include "tests/layers/layer_check.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace systole::layers {
namespace {

namespace fs = std::filesystem;

bool BeginsWithOneOf(absl::string_view path, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [path](const std::string& prefix) { return absl::StartsWith(path, prefix); });
}

bool Contains(const std::vector<std::string>& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string FolderOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? "" : std::string(path.substr(0, slash));
}

// "systole/v1/feed.pb.h" is generated from proto/systole/v1/feed.proto.
std::string SourcePathOf(absl::string_view include) {
  return absl::StartsWith(include, "systole/") ? absl::StrCat("proto/", include)
                                               : std::string(include);
}

const Room* FindRoom(const LayerRules& rules, absl::string_view folder) {
  for (const Room& room : rules.rooms) {
    if (room.folder == folder) return &room;
  }
  return nullptr;
}

const Library* FindLibrary(const LayerRules& rules, absl::string_view header) {
  for (const Library& library : rules.libraries) {
    if (BeginsWithOneOf(header, library.header_prefixes)) return &library;
  }
  return nullptr;
}

const Library* FindLibraryByName(const LayerRules& rules, absl::string_view name) {
  for (const Library& library : rules.libraries) {
    if (library.name == name) return &library;
  }
  return nullptr;
}

bool MayInclude(const Library& library, absl::string_view file) {
  return (library.allowed.empty() || BeginsWithOneOf(file, library.allowed)) &&
         !BeginsWithOneOf(file, library.refused);
}

// Why `file` in `room` may not include `include`, or "" if it may.
std::string ObjectionTo(const LayerRules& rules, const Room& room, const SourceFile& file,
                        const Include& include) {
  const auto refuse = [&](const Library& library) {
    return absl::StrCat("includes ", include.path, ", but ", library.name,
                        " may be included only where tests/layers/layer_rules.cc says");
  };
  // Generated service headers need gRPC, so gRPC's rules hold for them, too.
  if (absl::EndsWith(include.path, ".grpc.pb.h")) {
    const Library* grpc = FindLibraryByName(rules, "gRPC");
    if (grpc != nullptr && !MayInclude(*grpc, file.path)) return refuse(*grpc);
  }
  const std::string target_path = SourcePathOf(include.path);
  if (const Room* target = FindRoom(rules, FolderOf(target_path)); target != nullptr) {
    if (include.angle) return absl::StrCat("includes <", include.path, ">, want quotes");
    if (target == &room || Contains(room.may_include, target->folder) ||
        Contains(room.may_include, target_path)) {
      return "";
    }
    return absl::StrCat("includes ", include.path, ", but ", room.folder, " may not use ",
                        target->folder);
  }
  if (const Library* library = FindLibrary(rules, include.path); library != nullptr) {
    return MayInclude(*library, file.path) ? "" : refuse(*library);
  }
  const bool standard = include.path.find_first_of("./") == std::string::npos;
  if (include.angle && (standard || BeginsWithOneOf(include.path, rules.system_headers))) return "";
  return absl::StrCat(
      "includes ", include.path,
      ", which is neither a room (paths start at the top of the tree), nor a system "
      "header, nor a library that tests/layers/layer_rules.cc knows");
}

// The offset in `code` at which `name` stands as a whole name, or npos if there is none.
size_t FindName(absl::string_view code, absl::string_view name) {
  const auto in_name = [&](size_t at) {
    return at < code.size() &&
           (absl::ascii_isalnum(code[at]) || code[at] == '_' || code[at] == ':');
  };
  size_t at = code.find(name);
  while (at != absl::string_view::npos &&
         ((at > 0 && in_name(at - 1)) || in_name(at + name.size()))) {
    at = code.find(name, at + 1);
  }
  return at;
}

int LineOf(absl::string_view text, size_t offset) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + offset, '\n'));
}

// The end of the literal that opens at `begin` (a quote, or the R of a raw string).
size_t EndOfLiteral(absl::string_view text, size_t begin) {
  if (text[begin] == 'R') {
    const size_t open = text.find('(', begin);
    if (open == absl::string_view::npos) return text.size();
    const std::string close = absl::StrCat(")", text.substr(begin + 2, open - begin - 2), "\"");
    const size_t end = text.find(close, open);
    return end == absl::string_view::npos ? text.size() : end + close.size();
  }
  size_t at = begin + 1;
  while (at < text.size() && text[at] != text[begin] && text[at] != '\n') {
    at += text[at] == '\\' ? 2 : 1;
  }
  return std::min(at + 1, text.size());
}

bool OpensLiteral(absl::string_view text, size_t at) {
  const bool after_word = at > 0 && (absl::ascii_isalnum(text[at - 1]) || text[at - 1] == '_');
  if (text[at] == '"') return true;
  if (text[at] == '\'') return !after_word;  // In a number: a separator, as in 1'000.
  return text[at] == 'R' && !after_word && absl::StartsWith(text.substr(at), "R\"");
}

// A systole_room() in a CMakeLists.txt.
struct LinkedRoom {
  std::string folder;
  std::set<std::string> files;   // Names, without the folder.
  std::set<std::string> linked;  // Our CMake targets.
};

std::vector<LinkedRoom> ParseRooms(absl::string_view text) {
  static const std::regex* const kComment = new std::regex("#[^\n]*");
  static const std::regex* const kRoom = new std::regex(R"re(\bsystole_room\(([^)]*)\))re");
  const std::string code = std::regex_replace(std::string(text), *kComment, "");
  std::vector<LinkedRoom> rooms;
  for (std::sregex_iterator hit(code.begin(), code.end(), *kRoom), end; hit != end; ++hit) {
    LinkedRoom room;
    absl::string_view part;
    for (absl::string_view word :
         absl::StrSplit((*hit)[1].str(), absl::ByAnyChar(" \n\t"), absl::SkipEmpty())) {
      if (room.folder.empty()) {
        room.folder = std::string(word);
      } else if (word == "SOURCES" || word == "HEADERS" || word == "DEPS") {
        part = word == "DEPS" ? "linked" : "files";
      } else if (part == "files") {
        room.files.emplace(word);
      } else if (absl::StartsWith(word, "systole_")) {
        room.linked.emplace(word);
      }
    }
    rooms.push_back(std::move(room));
  }
  return rooms;
}

// A path without its ending. A source and its header have the same stem.
std::string StemOf(absl::string_view path) { return std::string(path.substr(0, path.rfind('.'))); }

int NumLines(absl::string_view text) {
  const auto ended = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  return text.empty() || text.back() == '\n' ? ended : ended + 1;
}

// The advice for a file that is too long.
constexpr char kSplit[] =
    "split it where one job ends and another begins, and give each part a test of its own";

std::string TargetOf(absl::string_view folder) {
  return absl::StrCat("systole_", absl::StrReplaceAll(folder, {{"/", "_"}}));
}

}  // namespace

std::string BlankComments(absl::string_view text) {
  std::string code(text);
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at + 1;
    if (absl::StartsWith(text.substr(at), "//")) {
      end = std::min(text.find('\n', at), text.size());
      std::fill(code.begin() + at, code.begin() + end, ' ');
    } else if (absl::StartsWith(text.substr(at), "/*")) {
      const size_t close = text.find("*/", at + 2);
      end = close == absl::string_view::npos ? text.size() : close + 2;
      std::replace_if(
          code.begin() + at, code.begin() + end, [](char c) { return c != '\n'; }, ' ');
    } else if (OpensLiteral(text, at)) {
      end = EndOfLiteral(text, at);
    }
    at = end;
  }
  return code;
}

std::vector<Include> ParseIncludes(absl::string_view text) {
  static const std::regex* const kInclude =
      new std::regex(R"re(^\s*#\s*include\s*(?:<([^>]*)>|"([^"]*)"|(\S+)))re");
  std::vector<Include> includes;
  int line = 0;
  for (absl::string_view code : absl::StrSplit(BlankComments(text), '\n')) {
    ++line;
    std::match_results<absl::string_view::const_iterator> match;
    if (!std::regex_search(code.begin(), code.end(), match, *kInclude)) continue;
    // If a macro is included (the third alternative of kInclude), the path is the macro's name,
    // which no rule allows.
    const int kind = match[1].matched ? 1 : match[2].matched ? 2 : 3;
    includes.push_back({.line = line, .angle = kind == 1, .path = match[kind].str()});
  }
  return includes;
}

absl::StatusOr<Tree> ReadTree(const std::string& root) {
  if (!fs::is_directory(root)) return absl::NotFoundError(absl::StrCat("no folder ", root));
  Tree tree;
  const auto skipped = [](const std::string& name) { return name[0] == '.' || name == "build"; };
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename();
    if (!skipped(name)) tree.top_level.push_back(name);
  }
  std::sort(tree.top_level.begin(), tree.top_level.end());
  auto walk = fs::recursive_directory_iterator(root);
  for (auto it = fs::begin(walk); it != fs::end(walk); ++it) {
    const std::string path = it->path().lexically_relative(root).generic_string();
    if (it->is_directory()) {
      if (skipped(it->path().filename())) {
        it.disable_recursion_pending();
      } else {
        tree.folders.push_back(path);
      }
    } else {
      const bool in_tests = absl::StartsWith(path, "tests/");
      const bool in_room = BeginsWithOneOf(path, {"core/", "proto/", "server/", "client/"});
      const bool source = absl::EndsWith(path, ".h") || absl::EndsWith(path, ".cc");
      const bool program =
          !in_tests && (source || absl::EndsWith(path, ".py") || absl::EndsWith(path, ".sh"));
      const bool build = in_room && absl::EndsWith(path, "/CMakeLists.txt");
      const bool test = in_tests && absl::EndsWith(path, ".cc");
      const bool document = absl::EndsWith(path, ".md");
      if (!program && !build && !test && !document) continue;
      std::ifstream in(it->path(), std::ios::binary);
      const SourceFile file = {
          path, std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>())};
      if (build) tree.builds.push_back(file);
      if (program) tree.programs.push_back(file);
      if (source && in_room) tree.sources.push_back(file);
      if (test) tree.tests.push_back(file);
      if (document) tree.documents.push_back(file);
    }
  }
  std::sort(tree.folders.begin(), tree.folders.end());
  for (std::vector<SourceFile>* const files : {&tree.sources, &tree.programs, &tree.documents}) {
    std::sort(files->begin(), files->end(),
              [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  }
  return tree;
}

std::vector<std::string> CheckIncludes(const LayerRules& rules,
                                       const std::vector<SourceFile>& sources) {
  std::vector<std::string> violations;
  for (const SourceFile& file : sources) {
    const Room* room = FindRoom(rules, FolderOf(file.path));
    if (room == nullptr) {
      violations.push_back(
          absl::StrCat(file.path, ":1: its folder is no room in tests/layers/layer_rules.cc"));
      continue;
    }
    for (const Include& include : ParseIncludes(file.text)) {
      const std::string objection = ObjectionTo(rules, *room, file, include);
      if (!objection.empty()) {
        violations.push_back(absl::StrCat(file.path, ":", include.line, ": ", objection));
      }
    }
  }
  return violations;
}

std::vector<std::string> CheckLinks(const LayerRules& rules, const Tree& tree) {
  std::map<std::string, std::string> room_of = rules.generated_targets;
  std::set<std::string> unbuilt;
  for (const Room& room : rules.rooms) {
    room_of.emplace(TargetOf(room.folder), room.folder);
    if (!Contains(rules.not_linked, room.folder)) unbuilt.insert(room.folder);
  }
  std::map<std::string, const SourceFile*> sources;
  for (const SourceFile& file : tree.sources) sources.emplace(file.path, &file);

  std::vector<std::string> violations;
  for (const SourceFile& build : tree.builds) {
    for (const LinkedRoom& room : ParseRooms(build.text)) {
      const auto violate = [&](absl::string_view what) {
        violations.push_back(absl::StrCat(build.path, ":1: ", room.folder, " ", what));
      };
      unbuilt.erase(room.folder);
      std::set<std::string> included;
      for (const std::string& name : room.files) {
        const auto file = sources.find(absl::StrCat(room.folder, "/", name));
        if (file == sources.end()) continue;  // A generated file.
        for (const Include& include : ParseIncludes(file->second->text)) {
          const std::string folder = FolderOf(SourcePathOf(include.path));
          if (folder != room.folder && FindRoom(rules, folder) != nullptr) included.insert(folder);
        }
      }
      std::set<std::string> linked;
      for (const std::string& target : room.linked) {
        const auto found = room_of.find(target);
        if (found == room_of.end()) {
          violate(
              absl::StrCat("links ", target, ", which is no room in tests/layers/layer_rules.cc"));
        } else if (!found->second.empty()) {
          linked.insert(found->second);
        }
      }
      for (const std::string& folder : included) {
        if (!linked.contains(folder))
          violate(absl::StrCat("includes ", folder, " without linking it"));
      }
      for (const std::string& folder : linked) {
        if (!included.contains(folder))
          violate(absl::StrCat("links ", folder, " without including it"));
      }
    }
  }
  for (const std::string& folder : unbuilt) {
    violations.push_back(
        absl::StrCat(folder, "/CMakeLists.txt:1: has no systole_room(", folder, ")"));
  }
  return violations;
}

std::vector<std::string> CheckCircles(const std::vector<SourceFile>& sources) {
  std::map<std::string, std::set<std::string>> needs;
  for (const SourceFile& file : sources) needs[StemOf(file.path)];
  for (const SourceFile& file : sources) {
    const std::string stem = StemOf(file.path);
    for (const Include& include : ParseIncludes(file.text)) {
      const std::string needed = StemOf(include.path);
      if (needed != stem && needs.contains(needed)) needs[stem].insert(needed);
    }
  }
  // Removes each file that includes none of the remaining files, until no more can be removed. The
  // files that then remain are those in circles, and those whose includes lead to a circle.
  for (bool taken = true; taken;) {
    taken = false;
    for (auto it = needs.begin(); it != needs.end();) {
      const bool free = std::none_of(it->second.begin(), it->second.end(),
                                     [&](const std::string& stem) { return needs.contains(stem); });
      taken |= free;
      it = free ? needs.erase(it) : std::next(it);
    }
  }
  std::vector<std::string> violations;
  for (const auto& [stem, needed] : needs) {
    for (const std::string& other : needed) {
      if (needs.contains(other)) {
        violations.push_back(
            absl::StrCat(stem, ":1: includes ", other, " and is in a circle, or leads to one"));
      }
    }
  }
  return violations;
}

std::vector<std::string> CheckReservedWords(const LayerRules& rules,
                                            const std::vector<SourceFile>& sources) {
  std::vector<std::string> violations;
  for (const ReservedWord& word : rules.reserved_words) {
    const std::regex pattern(word.pattern);
    for (const SourceFile& file : sources) {
      if (!BeginsWithOneOf(file.path, word.checked) || BeginsWithOneOf(file.path, word.allowed)) {
        continue;
      }
      const std::string code = BlankComments(file.text);
      for (std::sregex_iterator hit(code.begin(), code.end(), pattern), end; hit != end; ++hit) {
        violations.push_back(absl::StrCat(file.path, ":", LineOf(code, hit->position()), ": \"",
                                          hit->str(), "\": ", word.reason));
      }
    }
  }
  return violations;
}

std::vector<std::string> CheckHeaders(const std::vector<SourceFile>& sources) {
  std::vector<std::string> violations;
  std::set<absl::string_view> paths;
  for (const SourceFile& file : sources) paths.insert(file.path);
  for (const SourceFile& file : sources) {
    if (absl::EndsWith(file.path, ".cc")) {
      const std::string own = absl::StrCat(absl::StripSuffix(file.path, "cc"), "h");
      const std::vector<Include> includes = ParseIncludes(file.text);
      if (paths.contains(own) && (includes.empty() || includes.front().path != own)) {
        violations.push_back(absl::StrCat(file.path, ":1: does not include ", own,
                                          " first, to show that the header compiles alone"));
      }
      continue;
    }
    if (!absl::EndsWith(file.path, ".h")) continue;
    const std::string guard = absl::StrCat(
        "SYSTOLE_",
        absl::AsciiStrToUpper(absl::StrReplaceAll(file.path, {{"/", "_"}, {".", "_"}, {"-", "_"}})),
        "_");
    // The compiler reads a header of SIMD kernels once per instruction set, so the header's guard
    // must toggle with HWY_TARGET_TOGGLE.
    const std::string opening =
        absl::EndsWith(file.path, "-inl.h")
            ? absl::StrCat("#if defined(", guard, ") == defined(HWY_TARGET_TOGGLE)\n")
            : absl::StrCat("#ifndef ", guard, "\n#define ", guard, "\n");
    if (!absl::StrContains(file.text, opening)) {
      violations.push_back(absl::StrCat(file.path, ":1: want the header guard ", guard));
    }
    if (!absl::StrContains(file.text, "Thread-safe") &&
        !absl::StrContains(file.text, "Thread-compatible") &&
        !absl::StrContains(file.text, "Single-thread")) {
      violations.push_back(absl::StrCat(
          file.path, ":1: says none of Thread-safe, Thread-compatible, Single-thread"));
    }
  }
  return violations;
}

std::vector<std::string> CheckPrecompiledNames(const LayerRules& rules,
                                               const std::vector<SourceFile>& sources) {
  std::map<std::string, std::vector<Include>> includes;
  for (const SourceFile& file : sources) includes[file.path] = ParseIncludes(file.text);
  std::vector<std::string> violations;
  for (const SourceFile& file : sources) {
    std::set<std::string> included;
    std::vector<std::string> open = {file.path};
    while (!open.empty()) {
      const auto found = includes.find(open.back());
      open.pop_back();
      if (found == includes.end()) continue;  // A header of another library.
      for (const Include& include : found->second) {
        if (included.insert(include.path).second) open.push_back(include.path);
      }
    }
    const std::string code = BlankComments(file.text);
    for (const PrecompiledHeader& header : rules.precompiled) {
      if (included.count(header.path) > 0) continue;
      for (const std::string& name : header.names) {
        const size_t at = FindName(code, name);
        if (at == std::string::npos) continue;
        violations.push_back(absl::StrCat(file.path, ":", LineOf(code, at), ": uses ", name,
                                          ", but no include leads to ", header.path));
        break;
      }
    }
  }
  return violations;
}

std::vector<std::string> CheckSizes(const LayerRules& rules,
                                    const std::vector<SourceFile>& programs) {
  std::vector<std::string> violations;
  std::map<std::string, std::vector<const SourceFile*>> sources_of;  // By the header's stem.
  for (const SourceFile& file : programs) {
    if (absl::EndsWith(file.path, ".h")) sources_of[StemOf(file.path)].push_back(&file);
  }
  for (const SourceFile& file : programs) {
    const int lines = NumLines(file.text);
    if (lines > rules.max_lines) {
      violations.push_back(absl::StrCat(file.path, ":1: has ", lines, " lines, want ",
                                        rules.max_lines, " at most: ", kSplit));
    }
    if (!absl::EndsWith(file.path, ".cc")) continue;
    std::string header = StemOf(file.path);
    while (!sources_of.contains(header)) {
      const size_t last = header.find_last_of("_/");
      if (last == std::string::npos || header[last] == '/') break;
      header.resize(last);
    }
    if (const auto found = sources_of.find(header); found != sources_of.end()) {
      found->second.push_back(&file);
    }
  }
  for (const auto& [stem, files] : sources_of) {
    int lines = 0;
    std::vector<absl::string_view> names;
    for (const SourceFile* const file : files) {
      lines += NumLines(file->text);
      if (file != files.front()) names.push_back(file->path);
    }
    if (lines <= rules.max_lines_of_header_and_sources) continue;
    violations.push_back(absl::StrCat(files.front()->path, ":1: has ", lines, " lines with ",
                                      absl::StrJoin(names, ", "), ", want ",
                                      rules.max_lines_of_header_and_sources, " at most: ", kSplit));
  }
  return violations;
}

std::vector<std::string> CheckFolders(const LayerRules& rules, const Tree& tree) {
  std::vector<std::string> violations;
  for (const std::string& name : tree.top_level) {
    if (!Contains(rules.top_level, name)) {
      violations.push_back(absl::StrCat(name, ": the top level is fixed and has no such entry"));
    }
  }
  for (const std::string& name : rules.top_level) {
    if (!Contains(tree.top_level, name)) {
      violations.push_back(absl::StrCat(name, ": missing at the top level"));
    }
  }
  for (const std::string& folder : tree.folders) {
    if (Contains(rules.refused_folder_names, fs::path(folder).filename().string()) &&
        !Contains(rules.folders_of_other_programs, folder)) {
      violations.push_back(absl::StrCat(
          folder, ": a folder of this name could hold anything; name it after what it holds"));
    }
  }
  return violations;
}

std::vector<std::string> CheckRules(const LayerRules& rules) {
  std::vector<std::string> violations;
  for (const Room& room : rules.rooms) {
    for (const std::string& name : room.may_include) {
      const Room* target = FindRoom(rules, absl::EndsWith(name, ".h") ? FolderOf(name) : name);
      if (target == nullptr) {
        violations.push_back(absl::StrCat(room.folder, " names ", name, ", which is no room"));
      } else if (target->level >= room.level) {
        violations.push_back(absl::StrCat(room.folder, " (level ", room.level, ") names ", name,
                                          " (level ", target->level, "), want a lower level"));
      }
    }
  }
  return violations;
}

}  // namespace systole::layers
