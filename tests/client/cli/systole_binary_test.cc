// Runs the real `systole` program (path in $SYSTOLE_BINARY) and checks what a user or a script
// sees.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/image_folder.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/system/process.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

Finished RunSystole(std::vector<std::string> args) {
  const char* binary = std::getenv("SYSTOLE_BINARY");
  SYSTOLE_CHECK(binary != nullptr);
  args.insert(args.begin(), binary);
  return Process(args).Wait();
}

// Flips a bit in the middle of the file.
void Damage(const std::string& path) {
  const std::string bytes = ReadWholeFile(path);
  ShardBuilder().AddRaw(WithFlippedBit(bytes, bytes.size() / 2 * 8)).WriteTo(path);
}

TEST(SystoleBinaryTest, FlowersAreMadePackedIndexedInspectedAndVerified) {
  const TempFolder folder;
  const Finished made =
      RunSystole({"make-flowers", folder / "images", "--images", "25", "--seed", "2"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("daisy 5\n"), HasSubstr("25 images")));
  EXPECT_EQ(made.err, "");  // stderr is no terminal, so there is no progress bar.

  const Finished packed =
      RunSystole({"pack", folder / "images", folder / "packed/flowers", "--shards", "3",
                  "--resize-short", "64", "--validation", "0.2"});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("5 classes, 20 train images, 5 validation images"));

  const Finished indexed = RunSystole({"index", folder / "packed/*"});
  EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
  EXPECT_THAT(indexed.out, AllOf(HasSubstr("flowers-train-00002-of-00003.tfrecord  7 records"),
                                 HasSubstr("4 shards, 25 records")));
  EXPECT_TRUE(std::filesystem::exists(folder / "packed/flowers-train-00000-of-00003.tfrecord.idx"));

  const Finished inspected = RunSystole({"inspect", folder / "packed/flowers-train-*"});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out,
              AllOf(HasSubstr("3 shards, 20 records"), HasSubstr("JPEG 64"), HasSubstr("label")));
  const Finished record =
      RunSystole({"inspect", folder / "packed/flowers-train-*", "--record", "19"});
  EXPECT_EQ(record.exit_code, 0) << record.err;
  EXPECT_THAT(record.out, HasSubstr("train-00002-of-00003.tfrecord: record 6 at byte offset"));

  const Finished verified = RunSystole({"verify", folder / "packed/*"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("25 JPEGs decoded, 0 bad records"));
}

TEST(SystoleBinaryTest, JsonIsOneObjectOnOneLine) {
  const TempFolder folder;
  const std::vector<std::vector<std::string>> command_lines = {
      {"make-flowers", folder / "images", "--images", "5", "--json"},
      {"pack", folder / "images", folder / "p", "--shards", "2", "--json"},
      {"index", folder / "p*", "--json"},
      {"inspect", folder / "p*", "--json"},
      {"inspect", folder / "p*", "--record", "0", "--json"},
      {"verify", folder / "p*", "--json"},
  };
  for (const std::vector<std::string>& args : command_lines) {
    const Finished outcome = RunSystole(args);
    EXPECT_EQ(outcome.exit_code, 0) << args[0] << ": " << outcome.err;
    EXPECT_THAT(outcome.out, MatchesRegex("\\{[^\n]*\\}\n")) << args[0];
  }
}

TEST(SystoleBinaryTest, DamageExitsWithOneAndNamesTheRecord) {
  const TempFolder folder;
  FillImageFolder(folder, {"a"}, 3);
  ASSERT_EQ(RunSystole({"pack", folder.path(), folder / "p", "--shards", "1"}).exit_code, 0);
  const std::string shard = folder / "p-train-00000-of-00001.tfrecord";
  Damage(shard);
  const Finished verified = RunSystole({"verify", shard});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out, StartsWith(absl::StrCat(shard, ": record 1 at byte offset ")));
  EXPECT_THAT(verified.err, HasSubstr("1 of 3 records are damaged"));
  const Finished json = RunSystole({"verify", shard, "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_THAT(json.out, HasSubstr("\"record\":1,\"offset\":"));
  EXPECT_EQ(RunSystole({"inspect", shard, "--record", "1"}).exit_code, 1);
  EXPECT_EQ(RunSystole({"inspect", shard}).exit_code, 1);
  EXPECT_EQ(RunSystole({"inspect", shard, "--record", "0"}).exit_code, 0);

  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 1);
  // `index` reads only the framing. So it finds the cut record 2, but not the damage in record 1.
  const Finished indexed = RunSystole({"index", shard});
  EXPECT_EQ(indexed.exit_code, 1);
  EXPECT_THAT(indexed.out, HasSubstr("record 2 at byte offset"));
}

TEST(SystoleBinaryTest, InspectAndVerifyReportShardsThatDifferFromTheManifest) {
  const TempFolder folder;
  FillImageFolder(folder, {"a"}, 6);
  ASSERT_EQ(RunSystole({"pack", folder.path(), folder / "p", "--shards", "3"}).exit_code, 0);
  std::filesystem::resize_file(folder / "p-train-00001-of-00003.tfrecord", 0);
  std::filesystem::remove(folder / "p-train-00002-of-00003.tfrecord");
  for (const char* command : {"inspect", "verify"}) {
    SCOPED_TRACE(command);
    const Finished told = RunSystole({command, folder / "p-*"});
    EXPECT_EQ(told.exit_code, 1);
    EXPECT_THAT(told.out,
                AllOf(HasSubstr("shard \"p-train-00001-of-00003.tfrecord\" has 0 records in 0 "
                                "bytes, \"p.manifest\" says 2 records in "),
                      HasSubstr("shard \"p-train-00002-of-00003.tfrecord\" is missing")));
    EXPECT_THAT(told.err, HasSubstr("2 shards are not what the manifest beside them says"));
    EXPECT_THAT(RunSystole({command, folder / "p-*", "--json"}).out,
                HasSubstr("\"differences\":[{\"shard\":\"p-train-00001-of-00003.tfrecord\","
                          "\"manifest\":\"p.manifest\",\"missing\":false,"));
    EXPECT_EQ(RunSystole({command, folder / "p-train-00000*"}).exit_code, 0)
        << "shards that the pattern leaves out do not count as missing";
  }
}

TEST(SystoleBinaryTest, InspectAndVerifyReportTheMinimumLossOfATruncatedShard) {
  const TempFolder folder;
  folder.Write("cut", ShardBuilder().Add("abc").Add(std::string(100, 'x')).Build().substr(0, 60));
  const Finished inspected = RunSystole({"inspect", folder / "cut"});
  EXPECT_EQ(inspected.exit_code, 1);
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("1 or more damaged"),
                                   HasSubstr("1 record or more is lost, at least 75 bytes")));
  const Finished verified = RunSystole({"verify", "--framing-only", folder / "cut"});
  EXPECT_THAT(verified.out, HasSubstr("1 record or more is lost, at least 75 bytes"));
  EXPECT_THAT(verified.err, HasSubstr("1 or more of 2 records are damaged"));
}

TEST(SystoleBinaryTest, BrokenImageExitsWithOneUnlessItIsSkipped) {
  const TempFolder folder;
  FillImageFolder(folder, {"a"}, 2);
  folder.Write("a/broken.jpg", "no JPEG");
  const Finished refused = RunSystole({"pack", folder.path(), folder / "p", "--shards", "1"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("a/broken.jpg"));
  const Finished skipped =
      RunSystole({"pack", folder.path(), folder / "p", "--shards", "1", "--skip-bad"});
  EXPECT_EQ(skipped.exit_code, 0);
  EXPECT_THAT(skipped.out, HasSubstr(absl::StrCat("skipped ", folder / "a/broken.jpg: ")));
}

TEST(SystoleBinaryTest, RawAndFramingOnlyOptionsTakeEffect) {
  const TempFolder folder;
  FillImageFolder(folder, {"a", "b"}, 2);
  const Finished packed =
      RunSystole({"pack", folder.path(), folder / "p", "--shards", "1", "--raw"});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  const Finished inspected = RunSystole({"inspect", folder / "p-*"});
  EXPECT_THAT(inspected.out,
              AllOf(HasSubstr("bytes   count 1  bytes 3600\n"),
                    HasSubstr("features of 4 records looked at"), Not(HasSubstr("JPEG"))));

  // A record of 784 bytes that is no tf.train.Example. `verify` reports this record, but not with
  // --framing-only. `inspect` shows the record.
  const std::string digits =
      folder.Write("digits", ShardBuilder().Add(std::string(784, '\x07')).Build());
  const Finished parsed = RunSystole({"verify", digits});
  EXPECT_EQ(parsed.exit_code, 1);
  EXPECT_THAT(parsed.out, StartsWith(absl::StrCat(digits, ": record 0 at byte offset 0: ")));
  EXPECT_EQ(RunSystole({"verify", digits, "--framing-only"}).exit_code, 0);
  const Finished shown = RunSystole({"inspect", digits});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.out, HasSubstr("1 are no tf.train.Example"));
  EXPECT_THAT(RunSystole({"inspect", digits, "--record", "0"}).out,
              AllOf(HasSubstr("784 bytes of payload"), HasSubstr("no tf.train.Example: ")));
}

TEST(SystoleBinaryTest, IndexRemovesWhatAKilledRunLeft) {
  const TempFolder folder;
  const std::string shard = folder.Write("shard", ShardBuilder().Add("a").Build());
  folder.Write(".shard.idx.2147483646.0.tmp", "half");  // No process can have this id.
  EXPECT_EQ(RunSystole({"index", shard}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / ".shard.idx.2147483646.0.tmp"));
}

TEST(SystoleBinaryTest, IndexFilesGoWhereTheyAreAskedTo) {
  const TempFolder folder, index;
  const std::string shard = folder.Write("shard", ShardBuilder().Add("a").Add("bc").Build());
  const Finished indexed = RunSystole({"index", shard, "--index-dir", index.path(), "--json"});
  EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
  EXPECT_THAT(indexed.out, AllOf(HasSubstr("\"records\":2"), HasSubstr("\"damaged\":0"),
                                 HasSubstr(absl::StrCat("\"index\":\"", index.path(), "/shard-"))));
  EXPECT_THAT(folder.List(), testing::ElementsAre("shard"));
  EXPECT_FALSE(index.List().empty());
}

TEST(SystoleBinaryTest, TwoRunsPackTheSameBytes) {
  const TempFolder folder;
  for (const char* name : {"one", "two"}) {
    ASSERT_EQ(RunSystole({"make-flowers", folder / name, "--images", "10", "--seed", "9",
                          "--threads", name[0] == 'o' ? "1" : "3"})
                  .exit_code,
              0);
    ASSERT_EQ(RunSystole({"pack", folder / name, absl::StrCat(folder / name, "-packed/p"),
                          "--shards", "2", "--validation", "0.5", "--seed", "4"})
                  .exit_code,
              0);
  }
  for (const char* shard : {"train-00000-of-00002", "train-00001-of-00002",
                            "validation-00000-of-00002", "validation-00001-of-00002"}) {
    EXPECT_EQ(ReadWholeFile(absl::StrCat(folder / "one-packed/p-", shard, ".tfrecord")),
              ReadWholeFile(absl::StrCat(folder / "two-packed/p-", shard, ".tfrecord")))
        << shard;
  }
}

TEST(SystoleBinaryTest, WrongUsageExitsWithTwo) {
  const TempFolder folder;
  FillImageFolder(folder, {"a"}, 2);
  const std::vector<std::vector<std::string>> command_lines = {
      {},
      {"no-such-command"},
      {"verify"},
      {"verify", "x", "--no-such-option"},
      {"verify", "x", "--threads", "-1"},
      {"make-flowers", folder / "x", "--images", "0"},
      {"make-flowers", folder / "x", "--images", "many"},
      {"pack", folder.path(), folder / "p"},
      {"pack", folder.path(), folder / "p", "--shards", "3"},
      {"pack", folder.path(), folder / "p", "--shards", "1", "--quality", "500"},
      {"pack", folder.path(), folder / "p", "--shards", "1", "--validation", "2"},
      {"inspect", "x", "--record", "first"},
      {"index", folder / "a/0.jpg", "--index-dir", folder / "no such folder"},
      {"inspect", folder.path()},
      {"verify", folder / "*"},
  };
  for (const std::vector<std::string>& args : command_lines) {
    const Finished outcome = RunSystole(args);
    EXPECT_EQ(outcome.exit_code, 2) << testing::PrintToString(args) << outcome.err;
    EXPECT_NE(outcome.err, "") << testing::PrintToString(args);
    EXPECT_EQ(outcome.out, "") << testing::PrintToString(args);
  }
}

TEST(SystoleBinaryTest, MissingInputsAndRecordsExitWithThree) {
  const TempFolder folder;
  const std::string empty = folder.Write("empty.tfrecord", "");
  const std::vector<std::vector<std::string>> command_lines = {
      {"verify", folder / "none-*"},
      {"index", folder / "none-*"},
      {"inspect", folder / "none-*"},
      {"inspect", empty, "--record", "0"},
      {"pack", folder / "none", folder / "p", "--shards", "1"},
  };
  for (const std::vector<std::string>& args : command_lines) {
    const Finished outcome = RunSystole(args);
    EXPECT_EQ(outcome.exit_code, 3) << testing::PrintToString(args) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith(absl::StrCat("systole ", args[0], ": ")));
  }
}

// The names of the subcommands that `systole --help` lists.
std::vector<std::string> CommandsInHelp() {
  const Finished help = RunSystole({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  std::vector<std::string> names;
  bool lists = false;
  for (const absl::string_view line : absl::StrSplit(help.out, '\n')) {
    if (line == "Subcommands:") {
      lists = true;
    } else if (!absl::StartsWith(line, "  ")) {
      lists = false;
    } else if (lists && line[2] != ' ') {  // Other lines go on with the text of a subcommand.
      names.emplace_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return names;
}

TEST(SystoleBinaryTest, HelpOfEverySubcommandHasAnExample) {
  const std::vector<std::string> commands = CommandsInHelp();
  EXPECT_THAT(commands, IsSupersetOf({"make-flowers", "feed", "compile"}));
  for (const std::string& command : commands) {
    const Finished outcome = RunSystole({command, "--help"});
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("--json"),
                      ContainsRegex(absl::StrCat("Example:\n  systole ", command, "[ \n]"))));
  }
  EXPECT_EQ(RunSystole({"--version"}).exit_code, 0);
}

}  // namespace
}  // namespace systole
