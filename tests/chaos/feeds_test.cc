// Feeds of all kinds: arrays, rows that meet a condition, weights that change. Servers are killed,
// connections are cut, and the trainer ends and goes on with another batch and other cores. The
// trainer must get the examples of a LocalFeed that reads the arrays from memory.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/local/local_feed.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/status_matchers.h"
#include "tests/system/kinds_of_feed.h"

namespace systole {
namespace {

// With this number all steps are full, whatever the batch.
constexpr int kRows = 384;
// A row is about as large as a record of the other tests.
constexpr int kImageWidth = kChaosRecordBytes / 12;

class FeedsTest : public ChaosTest, public testing::WithParamInterface<KindOfFeed> {
 protected:
  void SetUp() override {
    ChaosTest::SetUp();
    const std::string shard = folder_.Write("rows.tfrecord", rows_.Shard());
    ASSERT_EQ(RunSystole({"index", shard, "--columns", "label"}).exit_code, 0);
    for (int i = 0; i < 3; ++i) AddServer({"--dataset", absl::StrCat("rows=", shard)});
  }

  // The digests of the first `examples` examples, from a LocalFeed of the arrays in memory.
  std::vector<std::string> InMemory(int64_t examples) {
    const FeedCut cut = {.global_batch = kFeedUnit};
    absl::StatusOr<std::unique_ptr<LocalFeed>> feed =
        LocalFeed::Create(GetParam().Spec(rows_, cut), rows_.InMemory(GetParam().num_members), {});
    EXPECT_THAT(feed, IsOk());
    return DigestsIn(ExampleLines(**feed, examples / kFeedUnit));
  }

  const RowsOfArrays rows_{kRows, kImageWidth};
};

INSTANTIATE_TEST_SUITE_P(Kinds, FeedsTest, testing::ValuesIn(KindsOfFeed(kRows)),
                         [](const auto& info) { return info.param.name; });

TEST_P(FeedsTest, ExamplesStayTheSameThroughKillsCutsAndChangesOfBatchAndCores) {
  SetAll({.bytes_per_second = 60 << 20, .bytes_per_cut = 16 << 20});
  const int64_t examples = Times(16, 96) * kFeedUnit;  // In each life of the trainer.
  std::string token;
  std::vector<std::string> lines;
  for (int life = 0; life < Times(3, 12); ++life) {
    SCOPED_TRACE(absl::StrCat("life ", life));
    const FeedCut cuts[] = {{.global_batch = 48, .num_cores = 8},
                            {.global_batch = 16, .num_cores = 2},
                            {.global_batch = 24, .num_cores = 3}};
    const FeedCut& cut = cuts[life % 3];
    spec_path_ = folder_.Write("kind.textproto", GetParam().SpecText(rows_, cut));
    // The client reads about three steps ahead. More would be too much: in the quick part the
    // trainer reads only 24 MiB in each life.
    std::vector<std::string> more = {"--prefetch-bytes", "4194304"};
    if (!token.empty()) more.insert(more.end(), {"--resume", token});
    Process feed(FeedArgs(static_cast<int>(examples / cut.global_batch), more),
                 {.stdout_pipe_bytes = 4096});
    std::string printed;
    // Connections are cut, and later servers are killed. Both happen in the first half of the life,
    // so the servers still have steps to send.
    for (const bool kills : {false, true}) {
      for (uint64_t line = 1 + Draw(static_cast<uint64_t>(examples) / 4); line > 0; --line) {
        printed += feed.ReadLine();
      }
      if (kills) {
        Kill(1 + life % 2);
      } else {
        for (int i = 0; i < num_servers(); ++i) proxy(i).CutAll();
      }
    }
    const Finished finished = feed.Wait();
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    token = TokenIn(finished);
    for (std::string& line : Lines(printed + finished.out)) lines.push_back(std::move(line));
  }
  const std::vector<std::string> digests = DigestsIn(lines);
  const std::vector<std::string> wanted = InMemory(Times(3, 12) * examples);
  ASSERT_EQ(digests.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(digests[i], wanted[i]) << "example " << i;
}

}  // namespace
}  // namespace systole
