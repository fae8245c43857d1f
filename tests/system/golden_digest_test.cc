// For the first steps of every shipped spec, `systole feed --digest` must print what the golden
// files in tests/golden/digests/ say. A change of the code that changes these bytes is a bug,
// unless it raises the content version.
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/example/example_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/folders.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

// The images are drawn once and packed several times. This quickly makes more images than the
// largest batch has (1,024).
constexpr int kImages = 130;
constexpr int kCopies = 8;

constexpr int kSteps = kSanitized ? 1 : 2;  // A sanitizer makes a step take minutes.

// The lines "STEP CORE DIGEST" of the first kSteps steps.
std::string FirstSteps(const std::string& golden) {
  std::string lines;
  for (const absl::string_view line : absl::StrSplit(golden, '\n', absl::SkipEmpty())) {
    int step = 0;
    if (absl::SimpleAtoi(line.substr(0, line.find(' ')), &step) && step < kSteps) {
      absl::StrAppend(&lines, line, "\n");
    }
  }
  return lines;
}

std::set<std::string> NamesIn(const std::string& folder, const std::string& extension) {
  std::set<std::string> names;
  const auto path = std::filesystem::path(SourceFolder()) / folder;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == extension) names.insert(entry.path().stem().string());
  }
  return names;
}

std::string Path(const std::string& relative) {
  return (std::filesystem::path(SourceFolder()) / relative).string();
}

// A shard of tokens and labels, for the specs of the dataset "text". All values follow from the
// record's number.
std::string TextShard() {
  ShardBuilder shard;
  for (int64_t record = 0; record < 100; ++record) {
    std::vector<int64_t> tokens(static_cast<size_t>(record * 37 % 150));
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = (record * 31 + static_cast<int64_t>(i) * 7) % 30'000;
    }
    ExampleBuilder example;
    example.AddInt64s("tokens", tokens);
    if (record % 3 != 0) example.AddInt64s("label", {record % 2});
    shard.Add(example.Serialize());
  }
  return shard.Build();
}

std::string TableShard() {
  ShardBuilder shard;
  for (int record = 0; record < 100; ++record) {
    std::vector<float> row;
    for (int i = 0; i < 16; ++i) row.push_back(static_cast<float>((record * 13 + i * 5) % 64) / 64);
    ExampleBuilder example;
    example.AddFloats("row", row).AddFloats("target", {static_cast<float>(record) / 4});
    if (record % 4 != 0) example.AddFloats("weight", {static_cast<float>(record % 7)});
    shard.Add(example.Serialize());
  }
  return shard.Build();
}

std::string DigitsShard() {
  ShardBuilder shard;
  for (int record = 0; record < 100; ++record) {
    std::string pixels;
    for (int i = 0; i < 28 * 28; ++i) pixels.push_back(static_cast<char>(record * 3 + i * i));
    shard.Add(
        ExampleBuilder().AddBytes("pixels", pixels).AddInt64s("label", {record % 10}).Serialize());
  }
  return shard.Build();
}

// A shard of the scores of pictures `first` .. `end` - 1, with one record for each picture.
std::string TeacherShard(int first, int end) {
  ShardBuilder shard;
  for (int record = first; record < end; ++record) {
    std::vector<float> scores;
    for (int i = 0; i < 5; ++i) {
      scores.push_back(static_cast<float>((record * 17 + i * 11) % 32) / 32);
    }
    shard.Add(
        ExampleBuilder().AddFloats("scores", scores).AddInt64s("label", {record}).Serialize());
  }
  return shard.Build();
}

TEST(GoldenDigestTest, EveryShippedSpecGivesTheBytesOfItsGoldenFile) {
  const TempFolder folder;
  ASSERT_EQ(RunSystole({"make-flowers", folder / "images", "--images", absl::StrCat(kImages),
                        "--seed", "1"})
                .exit_code,
            0);
  for (int copy = 0; copy < kCopies; ++copy) {
    const std::string shards = folder / absl::StrCat("copy", copy);
    ASSERT_EQ(RunSystole({"pack", folder / "images", shards, "--shards", "1"}).exit_code, 0);
  }
  // Shipped specs name several datasets of images. In this test all these datasets have the same
  // records.
  std::vector<std::string> args;
  for (const std::string name : {"flowers", "flowers-validation", "photos", "photos-validation"}) {
    args.insert(args.end(), {"--dataset", absl::StrCat(name, "=", folder / "copy*.tfrecord")});
  }
  folder.Write("text.tfrecord", TextShard());
  folder.Write("table.tfrecord", TableShard());
  folder.Write("digits.tfrecord", DigitsShard());
  for (const std::string name : {"text", "table", "digits"}) {
    const std::string shard = folder / absl::StrCat(name, ".tfrecord");
    args.insert(args.end(), {"--dataset", absl::StrCat(name, "=", shard)});
  }
  // The shards of the scores do not begin at the same records as the shards of the pictures.
  constexpr int kScores = kImages * kCopies;
  folder.Write("teacher-0.tfrecord", TeacherShard(0, kScores / 3));
  folder.Write("teacher-1.tfrecord", TeacherShard(kScores / 3, kScores));
  args.insert(args.end(), {"--dataset", absl::StrCat("teacher=", folder / "teacher-*.tfrecord")});
  const auto server = ServerProcess::Start(args);
  ASSERT_THAT(server, IsOk());

  const std::set<std::string> specs = NamesIn("deploy/specs", ".textproto");
  ASSERT_GE(specs.size(), 13u);
  EXPECT_EQ(NamesIn("tests/golden/digests", ".txt"), specs) << "want a golden file for each spec";
  for (const std::string& spec : specs) {
    const Finished feed = RunSystole({"feed", "--server", (*server)->address(), "--spec",
                                      Path(absl::StrCat("deploy/specs/", spec, ".textproto")),
                                      "--digest", "--steps", absl::StrCat(kSteps)});
    EXPECT_EQ(feed.exit_code, 0) << feed.err;
    const std::string golden = absl::StrCat("tests/golden/digests/", spec, ".txt");
    const std::string made = absl::StrCat(testing::TempDir(), spec, ".digests.txt");
    if (!feed.out.empty() && feed.out == FirstSteps(ReadWholeFile(Path(golden)))) continue;
    std::ofstream(made) << feed.out;
    ADD_FAILURE() << spec << " gives other bytes than " << golden
                  << ". If you meant to change the bytes, raise the content version and copy "
                  << made << " to " << golden << ".";
  }
}

}  // namespace
}  // namespace systole
