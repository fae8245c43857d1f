// Tests Systole as other projects use it: installed and found by find_package(), or as a folder of
// the project.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/folders.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Finished RunToEnd(const std::vector<std::string>& args) { return Process(args).Wait(); }

void RunWell(const std::vector<std::string>& args) {
  const Finished finished = RunToEnd(args);
  ASSERT_EQ(finished.exit_code, 0) << finished.out << finished.err;
}

// Installs this build below `prefix`.
void Install(const std::string& prefix) {
  RunWell({SYSTOLE_CMAKE, "--install", BuildFolder(), "--prefix", prefix});
}

// Configures `project`, a folder of tests/install, with this build's settings.
void Configure(const std::string& project, const std::string& build,
               const std::string& definition) {
  RunWell({SYSTOLE_CMAKE, "-S", absl::StrCat(SourceFolder(), "/tests/install/", project), "-B",
           build, "-G", SYSTOLE_GENERATOR, "-DCMAKE_CXX_COMPILER=" SYSTOLE_COMPILER, definition});
}

TEST(ConfigureTest, TheErrorForAMissingLibraryNamesTheInstallScript) {
  const TempFolder folder;
  // pkg-config looks only in this empty folder, so it finds nothing. libjpeg is the first library
  // that CMake asks pkg-config for.
  const Finished finished =
      RunToEnd({SYSTOLE_CMAKE, "-E", "env", absl::StrCat("PKG_CONFIG_LIBDIR=", folder.path()),
                SYSTOLE_CMAKE, "-S", SourceFolder(), "-B", folder / "build", "-G",
                SYSTOLE_GENERATOR, "-DCMAKE_CXX_COMPILER=" SYSTOLE_COMPILER});
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, testing::AllOf(HasSubstr("does not find libjpeg"),
                                           HasSubstr("deploy/install_dependencies.sh")));
}

TEST(InstallTest, AnOutsideProjectBuildsWithTheInstallationAndReadsAFeed) {
  const TempFolder folder;
  const std::string prefix = folder / "prefix";
  const std::string build = folder / "build";
  ASSERT_NO_FATAL_FAILURE(Install(prefix));
  ASSERT_NO_FATAL_FAILURE(Configure("example", build, "-DCMAKE_PREFIX_PATH=" + prefix));
  ASSERT_NO_FATAL_FAILURE(RunWell({SYSTOLE_CMAKE, "--build", build}));
  PackFlowers(folder, /*images=*/40, /*shards=*/2);
  const auto server = ServerProcess::Start(
      {"--dataset", absl::StrCat("flowers=", folder / "flowers-train-*.tfrecord")});
  ASSERT_THAT(server, IsOk());
  const std::string spec = folder.Write("spec.textproto", FlowersSpec());
  const Finished example = RunToEnd({build + "/example", (*server)->address(), spec});
  EXPECT_EQ(example.exit_code, 0) << example.err;
  // The feed has 2 epochs of 2 steps. A step has 2 examples for each of 8 cores.
  const std::vector<std::string> lines = Lines(example.out);
  ASSERT_EQ(lines.size(), 4u * 8u) << example.out;
  EXPECT_THAT(lines.front(), testing::MatchesRegex("step 0, core 0: [0-4] [0-4]"));
  EXPECT_THAT(lines.back(), testing::MatchesRegex("step 3, core 7: [0-4] [0-4]"));

  const std::string metrics = folder / "metrics.prom";
  ASSERT_NO_FATAL_FAILURE(RunWell({build + "/example", (*server)->address(), spec, metrics}));
  EXPECT_THAT(ReadWholeFile(metrics), HasSubstr("\nsystole_feed_next_step 1\n"));

  const Finished refused = RunToEnd(
      {build + "/example", (*server)->address(), folder.Write("other.textproto", "seed: x")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("other.textproto:1:"));
}

TEST(InstallTest, InstalledProgramsPrintTheProjectVersion) {
  const TempFolder prefix;
  ASSERT_NO_FATAL_FAILURE(Install(prefix.path()));
  for (const std::string program : {"bin/systole", "bin/systole-server"}) {
    const Finished finished = RunToEnd({prefix / program, "--version"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_THAT(finished.out, HasSubstr(SYSTOLE_VERSION)) << program;
  }
}

// In this tree a source can include every header, even without linking the header's target. An
// installation has only the headers of linked targets.
TEST(InstallTest, OwnHeadersThatInstalledHeadersIncludeAreInstalled) {
  const TempFolder prefix;
  ASSERT_NO_FATAL_FAILURE(Install(prefix.path()));
  const fs::path headers = prefix / "include/systole";
  const std::regex include(R"re(\s*#\s*include\s*"([^"]*)".*)re");
  const std::vector<std::string> libraries = {"absl/", "google/protobuf/", "grpc", "hwy/", "jpeg"};
  int found = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(headers)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    std::smatch match;
    for (std::string line; std::getline(in, line);) {
      if (!std::regex_match(line, match, include)) continue;
      const std::string path = match[1];
      const bool foreign = std::any_of(
          libraries.begin(), libraries.end(),
          [&path](const std::string& library) { return absl::StartsWith(path, library); });
      ++found;
      EXPECT_TRUE(foreign || fs::exists(headers / path))
          << entry.path() << " includes " << path << ", which is not installed";
    }
  }
  EXPECT_GT(found, 100);
}

// A trainer decodes no images. It gets batches of finished pixels, or of pixels to normalize.
TEST(InstallTest, TheLibraryHasNoDecoderAndNoOperation) {
  const TempFolder prefix;
  ASSERT_NO_FATAL_FAILURE(Install(prefix.path()));
  int archives = 0;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(prefix / "lib/systole")) {
    const std::string name = entry.path().filename().string();
    ++archives;
    for (const std::string word : {"image", "operations", "plan", "compression"}) {
      EXPECT_FALSE(absl::StrContains(name, word)) << name;
    }
  }
  EXPECT_GT(archives, 10);
  std::ifstream file(prefix / "lib/cmake/Systole/SystoleTargets.cmake");
  const std::string targets((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(targets, HasSubstr("Systole::client_lanes"));
  for (const std::string library : {"JPEG", "jpeg", "SPNG", "spng", "ZSTD", "ZLIB"}) {
    EXPECT_THAT(targets, testing::Not(HasSubstr(library)));
  }
}

TEST(InstallTest, AProjectWithTheSourceTreeAsASubfolderConfigures) {
  const TempFolder build;
  Configure("subproject", build.path(), "-DSYSTOLE_SOURCE_DIR=" + SourceFolder());
}

}  // namespace
}  // namespace systole
