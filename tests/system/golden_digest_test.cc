// The bytes of every shipped spec are those of the golden files in tests/golden/digests/: what
// `systole feed --digest` prints for its first steps. A change of the code that moves them is
// either a bug or raises the content version.
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

// Drawn once and packed several times: more than the largest batch (1,024), quickly.
constexpr int kImages = 130;
constexpr int kCopies = 8;

constexpr char kSteps[] = "2";

std::set<std::string> NamesIn(const std::string& folder, const std::string& extension) {
  std::set<std::string> names;
  const auto path = std::filesystem::path(SYSTOLE_SOURCE_DIR) / folder;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == extension) names.insert(entry.path().stem().string());
  }
  return names;
}

std::string Path(const std::string& relative) {
  return (std::filesystem::path(SYSTOLE_SOURCE_DIR) / relative).string();
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
  // The same records under each name that a shipped spec asks for.
  std::vector<std::string> args;
  for (const std::string name : {"flowers", "flowers-validation", "photos"}) {
    args.insert(args.end(), {"--dataset", absl::StrCat(name, "=", folder / "copy*.tfrecord")});
  }
  const auto server = ServerProcess::Start(args);
  ASSERT_THAT(server, IsOk());

  const std::set<std::string> specs = NamesIn("deploy/specs", ".textproto");
  ASSERT_GE(specs.size(), 4u);
  EXPECT_EQ(NamesIn("tests/golden/digests", ".txt"), specs) << "a golden file for each spec";
  for (const std::string& spec : specs) {
    const Finished feed = RunSystole({"feed", "--server", (*server)->address(), "--spec",
                                      Path(absl::StrCat("deploy/specs/", spec, ".textproto")),
                                      "--digest", "--steps", kSteps});
    EXPECT_EQ(feed.exit_code, 0) << feed.err;
    const std::string golden = absl::StrCat("tests/golden/digests/", spec, ".txt");
    const std::string made = absl::StrCat(testing::TempDir(), spec, ".digests.txt");
    if (feed.out == ReadWholeFile(Path(golden))) continue;
    std::ofstream(made) << feed.out;
    ADD_FAILURE() << spec << " gives other bytes than " << golden
                  << ". If that is meant, raise the content version and copy " << made << " there.";
  }
}

}  // namespace
}  // namespace systole
