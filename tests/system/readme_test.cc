// Checks that the programs do what the README files show.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/textproto/message_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/config.pb.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/folders.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

const fs::path kTree = SourceFolder();

// A block of a README: ```LANGUAGE .. ```
struct Block {
  std::string language;
  std::vector<std::string> lines;
};

std::vector<Block> BlocksOf(const fs::path& readme) {
  std::vector<Block> blocks;
  bool inside = false;
  for (absl::string_view line : absl::StrSplit(ReadWholeFile(readme), '\n')) {
    if (absl::ConsumePrefix(&line, "```")) {
      inside = !inside;
      if (inside) blocks.push_back({.language = std::string(line)});
    } else if (inside) {
      blocks.back().lines.emplace_back(line);
    }
  }
  return blocks;
}

std::string TextOf(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return text;
}

// Every README.md, CONTRIBUTING.md and SECURITY.md. CHANGELOG.md is not among them, because it also
// tells of things that no longer exist.
std::vector<fs::path> AllReadmes() {
  std::vector<fs::path> readmes = {kTree / "CONTRIBUTING.md", kTree / "SECURITY.md"};
  fs::recursive_directory_iterator entries(kTree);
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename();
    if (name == "README.md") readmes.push_back(entry.path());
    if (name == "build" || name[0] == '.') entries.disable_recursion_pending();
  }
  return readmes;
}

// The first lines of a script that runs what a README shows. When the script's shell ends, for
// whatever reason, the servers that it has started are killed. A feed waits for a server that is
// still starting.
std::string ShellWithPrograms() {
  return absl::StrCat("set -euo pipefail\nPATH=", fs::path(SystoleProgram()).parent_path().string(),
                      R"sh(:$PATH
systole-server() { exec setpriv --pdeathsig KILL systole-server "$@"; }
systole() {
  if [[ $1 == feed ]]; then set -- "$@" --connect-timeout 100; fi
  command systole "$@"
}
)sh");
}

TEST(ReadmeTest, TheMainReadmesCommandsRunAndPrintTheShownOutput) {
  const TempFolder folder;
  std::string script = ShellWithPrograms();
  // What each block of commands must print, by the file that its stdout goes to.
  std::map<std::string, std::string> wanted;
  std::string output;
  for (const Block& block : BlocksOf(kTree / "README.md")) {
    if (block.language == "text") wanted[output] = TextOf(block.lines);
    if (block.language != "sh") continue;
    output = folder / absl::StrCat("output-", script.size());
    absl::StrAppend(&script, "{\n");
    for (const std::string& line : block.lines) {
      const std::string word = line.substr(0, line.find(' '));
      if (absl::StartsWith(word, "PATH=")) continue;
      if (word == "python3") continue;  // Installs the package, as tests/client/python does.
      if (absl::StartsWith(word, "deploy/") || absl::StartsWith(word, "tests/")) {
        // Such a program takes too long for a test. So only its existence is checked.
        EXPECT_EQ(access((kTree / word).c_str(), X_OK), 0) << line;
        continue;
      }
      // The script uses no file outside of the folder. It uses sockets in the folder instead of
      // ports, because another process may use the same ports.
      absl::StrAppend(&script,
                      absl::StrReplaceAll(
                          line, {{"/tmp/", folder / ""}, {"127.0.0.1:", "unix:" + folder / ""}}),
                      "\n");
    }
    absl::StrAppend(&script, ":\n} >", output, "\n");
  }
  const Finished finished = Process({"/bin/bash", folder.Write("commands.sh", script)}).Wait();
  ASSERT_EQ(finished.exit_code, 0) << script << finished.err;
  EXPECT_THAT(wanted, testing::Not(testing::IsEmpty()));
  for (const auto& [file, text] : wanted) EXPECT_EQ(ReadWholeFile(file), text);
}

// Runs blocks of server/README.md in their order: a config, a token, certificates, a server and a
// feed. Unlike in the README, the server listens on a Unix socket, not on an address that other
// machines reach. The name in its certificate is that of the README.
TEST(ReadmeTest, TheServerReadmesTlsAndTokenExampleRuns) {
  const TempFolder folder;
  fs::create_directory(folder / "data");
  for (const std::string name : {"data/flowers-0.tfrecord", "data/faces-0.tfrecord"}) {
    folder.Write(name, RawShard(0, 64, 16));
  }
  folder.Write("feed.textproto",
               absl::StrReplaceAll(RawSpec(16, /*epochs=*/1), {{"\"raw\"", "\"flowers\""}}));
  std::string script = absl::StrCat(ShellWithPrograms(), "cd ", folder.path(), "\n");
  for (const Block& block : BlocksOf(kTree / "server/README.md")) {
    const std::string text = absl::StrReplaceAll(
        TextOf(block.lines),
        {{"/etc/systole", folder.path()},
         {"deploy/", (kTree / "deploy/").string()},
         {"0.0.0.0:8470", "unix:s"},
         {"feeds.example.com:8470", "unix:s --tls-server-name feeds.example.com"}});
    if (absl::StrContains(text, "access {")) folder.Write("server.textproto", text);
    if (block.language != "sh") continue;
    if (!absl::StrContains(text, "trainer-a.token")) continue;
    for (const std::string& line : Lines(text)) {
      absl::StrAppend(&script, line, absl::StartsWith(line, "systole-server ") ? " &\n" : "\n");
    }
  }
  const Finished finished = Process({"/bin/bash", folder.Write("commands.sh", script)}).Wait();
  EXPECT_EQ(finished.exit_code, 0) << script << finished.err;
  EXPECT_THAT(finished.out, testing::HasSubstr("step"));
}

TEST(ReadmeTest, TheServerReadmesConfigsParse) {
  int configs = 0;
  for (const Block& block : BlocksOf(kTree / "server/README.md")) {
    const std::string text = TextOf(block.lines);
    if (!absl::StartsWith(text, "datasets {")) continue;
    v1::ServerConfig config;
    EXPECT_THAT(ParseTextproto(text, "server/README.md", config), IsOk()) << text;
    ++configs;
  }
  EXPECT_GE(configs, 2);
}

TEST(ReadmeTest, TheFeedReadmesCodeMatchesTheExampleProgram) {
  const std::string example = ReadWholeFile(kTree / "tests/install/example/main.cc");
  const std::vector<std::string> after = absl::StrSplit(example, "// [README]\n");
  ASSERT_EQ(after.size(), 3u);
  std::vector<std::string> quoted;
  for (size_t i = 1; i < after.size(); ++i) {
    const std::vector<std::string> parts = absl::StrSplit(after[i], "// [/README]\n");
    ASSERT_EQ(parts.size(), 2u);
    quoted.push_back(parts[0]);
  }
  std::vector<std::string> shown;
  for (const Block& block : BlocksOf(kTree / "client/feed/README.md")) {
    if (block.language == "cpp") shown.push_back(TextOf(block.lines));
  }
  EXPECT_EQ(shown, quoted);
}

// Each block of CONTRIBUTING.md that is not for a shell begins with a comment that names a file.
// The rest of the block is an excerpt of that file.
TEST(ReadmeTest, ContributingQuotesTheFilesItNamesExactly) {
  int checked = 0;
  for (Block& block : BlocksOf(kTree / "CONTRIBUTING.md")) {
    if (block.language == "sh") continue;
    ASSERT_FALSE(block.lines.empty());
    const std::string first = block.lines.front();
    absl::string_view file = first;
    ASSERT_TRUE(absl::ConsumePrefix(&file, "// ")) << first;
    block.lines.erase(block.lines.begin());
    EXPECT_THAT(ReadWholeFile(kTree / std::string(file)), testing::HasSubstr(TextOf(block.lines)))
        << first;
    ++checked;
  }
  EXPECT_GE(checked, 8);
}

TEST(ReadmeTest, TheMainReadmeHasAtMost130Lines) {
  EXPECT_LE(Lines(ReadWholeFile(kTree / "README.md")).size(), 130u);
}

TEST(ReadmeTest, EveryLinkLeadsToAFile) {
  for (const fs::path& readme : AllReadmes()) {
    const std::vector<std::string> pieces = absl::StrSplit(ReadWholeFile(readme), "](");
    for (size_t i = 1; i < pieces.size(); ++i) {
      const std::string link = pieces[i].substr(0, pieces[i].find_first_of(")#"));
      if (link.empty() || absl::StartsWith(link, "https://")) continue;
      EXPECT_TRUE(fs::exists(readme.parent_path() / link)) << readme << ": " << link;
    }
  }
}

// The tests of this tree: "Suite" and "Suite.Name".
std::set<std::string> TestNames() {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kTree / "tests")) {
    if (entry.path().extension() != ".cc") continue;
    const std::string text = absl::StrCat("\n", ReadWholeFile(entry.path()));
    for (const absl::string_view piece : absl::StrSplit(text, "\nTEST")) {
      // A piece begins with "_F(Suite, Name) {", perhaps on two lines.
      const std::vector<std::string> words = absl::StrSplit(
          piece.substr(0, piece.find(')')), absl::ByAnyChar("(, \n"), absl::SkipEmpty());
      const size_t first = !words.empty() && (words[0] == "_F" || words[0] == "_P") ? 1 : 0;
      if (words.size() != first + 2) continue;
      names.insert(words[first]);
      names.insert(absl::StrCat(words[first], ".", words[first + 1]));
    }
  }
  return names;
}

// A README names tests by `Suite`, by `Suite.Name`, by `.Name` (in the suite that was named last),
// or by the path of their file.
TEST(ReadmeTest, EveryTestThatAReadmeNamesExists) {
  const std::set<std::string> names = TestNames();
  int checked = 0;
  for (const fs::path& readme : AllReadmes()) {
    std::string suite;
    bool inside = true;
    for (const absl::string_view span : absl::StrSplit(ReadWholeFile(readme), '`')) {
      inside = !inside;
      if (!inside || span.empty() || span.find_first_of(" \n<*") != span.npos) continue;
      if (absl::StartsWith(span, "tests/")) {
        EXPECT_TRUE(fs::exists(kTree / std::string(span))) << readme << ": " << span;
        ++checked;
        continue;
      }
      const absl::string_view before_dot = span.substr(0, span.find('.'));
      const bool names_suite = absl::EndsWith(before_dot, "Test");
      const bool of_last = before_dot.empty() && span.size() > 1 && absl::ascii_isupper(span[1]);
      if (!names_suite && !of_last) continue;
      if (names_suite) suite = std::string(before_dot);
      EXPECT_EQ(names.count(of_last ? absl::StrCat(suite, span) : std::string(span)), 1u)
          << readme << ": " << span << " after " << suite;
      ++checked;
    }
  }
  EXPECT_GT(checked, 50);
}

// The options that `systole COMMAND --help` lists, or `systole-server --help` if `command` is "".
std::set<std::string> OptionsOf(const std::string& command) {
  const Finished help = command.empty() ? Process({ServerProgram(), "--help"}).Wait()
                                        : RunSystole({command, "--help"});
  EXPECT_EQ(help.exit_code, 0) << "systole " << command;
  std::set<std::string> options;
  for (const absl::string_view word : absl::StrSplit(help.out, absl::ByAnyChar(" ,={\n"))) {
    if (absl::StartsWith(word, "--")) options.emplace(word);
  }
  return options;
}

// The command lines of a README: in its blocks for a shell, and between single backquotes.
std::string CommandLinesOf(const fs::path& readme) {
  std::string commands;
  for (const Block& block : BlocksOf(readme)) {
    if (block.language == "sh") absl::StrAppend(&commands, TextOf(block.lines));
  }
  bool inside = false;
  for (const absl::string_view span : absl::StrSplit(ReadWholeFile(readme), '`')) {
    if (inside && absl::StartsWith(span, "systole")) {
      absl::StrAppend(&commands, absl::StrReplaceAll(span, {{"\n", " "}}), "\n");
    }
    inside = !inside;
  }
  return absl::StrReplaceAll(commands, {{"\\\n", " "}});
}

TEST(ReadmeTest, EveryOptionThatAReadmeNamesExists) {
  std::map<std::string, std::set<std::string>> options;
  int checked = 0;
  for (const fs::path& readme : AllReadmes()) {
    for (const std::string& line : Lines(CommandLinesOf(readme))) {
      SCOPED_TRACE(absl::StrCat(readme.string(), ": ", line));
      std::optional<std::string> command;  // The command that the next words belong to.
      std::string before;
      for (const std::string& word :
           std::vector<std::string>(absl::StrSplit(line, ' ', absl::SkipEmpty()))) {
        if (word[0] == '#') break;
        if (word == "systole-server") command = "";
        if (before == "systole" && word != "COMMAND" && word[0] != '-') command = word;
        if (word == "&&" || word == "systole") command.reset();
        before = word;
        if (!command.has_value() || !absl::StartsWith(word, "--")) continue;
        if (options.count(*command) == 0) options[*command] = OptionsOf(*command);
        EXPECT_EQ(options[*command].count(word.substr(0, word.find('='))), 1u) << word;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 50);
}

}  // namespace
}  // namespace systole
