// Mistakes of users and failures of machines. Each gives one clear message and an exit code of
// core/process/README.md.
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kDamage = 1;
constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kUnavailable = 4;

class RefusalTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("raw-0.tfrecord", RawShard(0, 96, 784));
    folder_.Write("raw-1.tfrecord", RawShard(96, 96, 784));
  }

  // The flags of a server with this test's shards.
  std::vector<std::string> Dataset() const {
    return {"--dataset", absl::StrCat("raw=", folder_ / "raw-*.tfrecord")};
  }

  Finished Feed(const std::string& server, const std::string& spec,
                const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {
        "feed", "--server", server, "--spec", folder_.Write("spec.textproto", spec), "--digest"};
    args.insert(args.end(), more.begin(), more.end());
    return RunSystole(args);
  }

  const TempFolder folder_;
};

// Starts a server that refuses to start, and returns its error.
Finished StartServer(std::vector<std::string> args) {
  args.insert(args.begin(), ServerProgram());
  return Process(args).Wait();
}

TEST_F(RefusalTest, AValidSpecOfRawRecordsGivesTheBytesOfEachRecordOnce) {
  const auto server = ServerProcess::Start(Dataset());
  ASSERT_THAT(server, IsOk());
  const Finished feed =
      RunSystole({"feed", "--server", (*server)->address(), "--spec",
                  folder_.Write("spec.textproto", RawSpec(784, 2)), "--print", "bytes"});
  EXPECT_EQ(feed.exit_code, 0) << feed.err;
  EXPECT_EQ(Lines(feed.out).size(), 3u * 8);  // Without --steps, `feed` reads one epoch.
  constexpr size_t kHead = 12;  // Of a record in a shard: its length and the length's checksum.
  std::set<std::string> not_seen;
  for (int i = 0; i < 192; ++i) not_seen.insert(RawShard(i, 1, 784).substr(kHead, 784));
  // A line is "STEP CORE ..", with the bytes of 8 records as numbers.
  for (const std::string& line : Lines(feed.out)) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    ASSERT_EQ(words.size(), 2u + 8 * 784);
    for (size_t at = 2; at < words.size(); at += 784) {
      std::string record;
      for (size_t i = 0; i < 784; ++i) {
        int byte = -1;
        ASSERT_TRUE(absl::SimpleAtoi(words[at + i], &byte)) << words[at + i];
        record.push_back(static_cast<char>(byte));
      }
      EXPECT_EQ(not_seen.erase(record), 1u) << line.substr(0, 40);
    }
  }
  EXPECT_EQ(not_seen.size(), 0u);
}

TEST_F(RefusalTest, AGlobThatMatchesNothingStopsTheServerAtStart) {
  const Finished server =
      StartServer({"--listen", "127.0.0.1:0", "--dataset", "raw=" + folder_ / "no-such-*"});
  EXPECT_EQ(server.exit_code, kNotFound);
  EXPECT_THAT(server.err, HasSubstr("no-such-*"));
}

TEST_F(RefusalTest, ADatasetWithoutRecordsStopsTheServerAtStart) {
  folder_.Write("empty.tfrecord", "");
  const Finished server =
      StartServer({"--listen", "127.0.0.1:0", "--dataset", "raw=" + folder_ / "empty.tfrecord"});
  EXPECT_EQ(server.exit_code, kUsage);
  EXPECT_THAT(server.err, AllOf(HasSubstr("raw"), HasSubstr("record")));
}

TEST_F(RefusalTest, AnEmptyShardAmongOthersDoesNotChangeTheFeed) {
  std::string reference;
  {
    const auto server = ServerProcess::Start(Dataset());
    ASSERT_THAT(server, IsOk());
    reference = Feed((*server)->address(), RawSpec(784, 1)).out;
  }
  folder_.Write("raw-00.tfrecord", "");  // Sorts between the two other names.
  const auto server = ServerProcess::Start(Dataset());
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(Feed((*server)->address(), RawSpec(784, 1)).out, reference);
}

TEST_F(RefusalTest, ListeningOnAllInterfacesNeedsTheInsecureFlag) {
  std::vector<std::string> args = Dataset();
  args.insert(args.end(), {"--listen", "0.0.0.0:0"});
  const Finished server = StartServer(args);
  EXPECT_EQ(server.exit_code, kUsage);
  EXPECT_THAT(server.err, HasSubstr("--insecure"));
}

TEST_F(RefusalTest, AnUnknownFieldIsNamedWithLineAndColumn) {
  const auto server = ServerProcess::Start(Dataset());
  ASSERT_THAT(server, IsOk());
  const Finished feed = Feed((*server)->address(), "dataset: \"raw\"\nbatchsize: 8\n");
  EXPECT_EQ(feed.exit_code, kUsage);
  EXPECT_THAT(feed.err, AllOf(HasSubstr("spec.textproto:2:"), HasSubstr("batchsize")));
  EXPECT_EQ(feed.out, "");
}

TEST_F(RefusalTest, ABatchThatTheCoresCannotShareIsRefused) {
  const auto server = ServerProcess::Start(Dataset());
  ASSERT_THAT(server, IsOk());
  const Finished feed =
      Feed((*server)->address(),
           absl::StrReplaceAll(RawSpec(784, 1), {{"global_batch: 64", "global_batch: 60"}}));
  EXPECT_EQ(feed.exit_code, kUsage);
  EXPECT_THAT(feed.err, AllOf(HasSubstr("global_batch"), HasSubstr("60"), HasSubstr("8")));
}

TEST_F(RefusalTest, AFeatureOfTheWrongKindIsRefused) {
  PackFlowers(folder_, 20, 1);
  const auto server = ServerProcess::Start(
      {"--dataset", absl::StrCat("flowers=", folder_ / "flowers-train-*.tfrecord")});
  ASSERT_THAT(server, IsOk());
  const Finished feed =
      Feed((*server)->address(),
           absl::StrReplaceAll(FlowersSpec(), {{"feature: \"image\"", "feature: \"label\""}}));
  EXPECT_EQ(feed.exit_code, kUsage) << feed.err;
  EXPECT_THAT(feed.err, AllOf(HasSubstr("label"), HasSubstr("bytes")));
}

TEST_F(RefusalTest, AnUnknownDatasetIsNotFound) {
  const auto server = ServerProcess::Start(Dataset());
  ASSERT_THAT(server, IsOk());
  const Finished feed =
      Feed((*server)->address(), absl::StrReplaceAll(RawSpec(784, 1), {{"\"raw\"", "\"row\""}}));
  EXPECT_EQ(feed.exit_code, kNotFound);
  EXPECT_THAT(feed.err, HasSubstr("row"));
}

TEST_F(RefusalTest, APathIsNotAcceptedAsADatasetName) {
  const auto server = ServerProcess::Start(Dataset());
  ASSERT_THAT(server, IsOk());
  const std::string path = folder_ / "raw-0.tfrecord";
  const Finished feed = Feed(
      (*server)->address(),
      absl::StrReplaceAll(RawSpec(784, 1), {{"dataset: \"raw\"", "dataset: \"" + path + "\""}}));
  EXPECT_EQ(feed.exit_code, kNotFound) << feed.err;
  EXPECT_EQ(feed.out, "");
}

TEST_F(RefusalTest, AMissingSpecIsNotFound) {
  const Finished feed = RunSystole(
      {"feed", "--server", DeadAddress(), "--spec", folder_ / "none.textproto", "--digest"});
  EXPECT_EQ(feed.exit_code, kNotFound);
  EXPECT_THAT(feed.err, HasSubstr("none.textproto"));
}

TEST_F(RefusalTest, AServerThatIsNotThereIsUnavailableWithinTheConnectTimeout) {
  const std::string nobody = DeadAddress();
  const Finished feed = Feed(nobody, RawSpec(784, 1), {"--connect-timeout", "0.2"});
  EXPECT_EQ(feed.exit_code, kUnavailable) << feed.err;
  EXPECT_THAT(feed.err, AllOf(HasSubstr(nobody), HasSubstr("200ms")));
}

TEST_F(RefusalTest, ATruncatedShardIsDamage) {
  const std::string whole = RawShard(96, 96, 784);
  const std::string path = folder_.Write("raw-1.tfrecord", whole.substr(0, whole.size() - 5));
  const Finished verify = RunSystole({"verify", "--framing-only", path});
  EXPECT_EQ(verify.exit_code, kDamage);
  EXPECT_THAT(verify.out, AllOf(HasSubstr("raw-1.tfrecord"), HasSubstr("record 95")));

  const auto server = ServerProcess::Start(Dataset());
  ASSERT_THAT(server, IsOk());
  const Finished feed = Feed((*server)->address(), RawSpec(784, 1));
  EXPECT_EQ(feed.exit_code, kDamage) << feed.err;
  EXPECT_THAT(feed.err, HasSubstr("raw-1.tfrecord"));
}

TEST_F(RefusalTest, AShardReplacedWhileServedEndsTheFeed) {
  const auto server = ServerProcess::Start(Dataset());
  ASSERT_THAT(server, IsOk());
  ASSERT_EQ(Feed((*server)->address(), RawSpec(784, 1)).exit_code, 0);
  // A new file of the same size takes the old name.
  folder_.Write("new", RawShard(500, 96, 784));
  std::filesystem::rename(folder_ / "new", folder_ / "raw-1.tfrecord");
  const Finished feed = Feed((*server)->address(), RawSpec(784, 1));
  EXPECT_EQ(feed.exit_code, kDamage) << feed.err;
  EXPECT_THAT(feed.err, AllOf(HasSubstr("raw-1.tfrecord"), HasSubstr("replaced")));
}

TEST_F(RefusalTest, WrongUsageExitsWith2AndHelpExitsWith0) {
  EXPECT_EQ(RunSystole({}).exit_code, kUsage);
  EXPECT_EQ(RunSystole({"fed"}).exit_code, kUsage);
  EXPECT_EQ(RunSystole({"feed", "--no-such-option"}).exit_code, kUsage);
  EXPECT_EQ(StartServer({"--no-such-option"}).exit_code, kUsage);
  EXPECT_EQ(StartServer({"--help"}).exit_code, 0);
  for (const char* command :
       {"make-flowers", "pack", "index", "inspect", "verify", "feed", "train"}) {
    const Finished help = RunSystole({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr(absl::StrCat("systole ", command, " "))) << "an example";
  }
}

}  // namespace
}  // namespace systole
