// The real programs with the shipped specs and models. The tests check which records an epoch
// holds, and what a training with these records reports.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/folders.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr int kImages = 150;  // Two full batches of 64, and one of 22.
constexpr int kBatch = 64;

std::string Shipped(const std::string& name) {
  return (std::filesystem::path(SourceFolder()) / "deploy" / name).string();
}

class OrderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    PackFlowers(*folder_, kImages, /*shards=*/4);
    const std::string glob = *folder_ / "flowers-train-*.tfrecord";
    // The validation set has the same images, because the tests only need the trainer to read it.
    auto server = ServerProcess::Start({"--dataset", absl::StrCat("flowers=", glob), "--dataset",
                                        absl::StrCat("flowers-validation=", glob)});
    ASSERT_THAT(server, IsOk());
    server_ = server->release();
  }
  static void TearDownTestSuite() {
    delete server_;
    delete folder_;
  }

  static Finished Feed(const std::string& spec, const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = {"feed",    "--server", server_->address(), "--spec", spec,
                                     "--print", "id"};
    args.insert(args.end(), more.begin(), more.end());
    return RunSystole(args);
  }

  // The record ids of an epoch in the order of the feed. Padding is "-".
  static std::vector<std::string> Ids(const std::string& spec) {
    const Finished feed = Feed(spec);
    EXPECT_EQ(feed.exit_code, 0) << feed.err;
    return IdsIn(feed);
  }
  static std::vector<std::string> IdsIn(const Finished& feed) {
    std::vector<std::string> ids;
    for (const std::string& line : Lines(feed.out)) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      ids.insert(ids.end(), words.begin() + 2, words.end());  // The line is "STEP CORE ID ID ..".
    }
    return ids;
  }

  static Finished Train(const std::vector<std::string>& args) {
    std::vector<std::string> all = {"train",
                                    "--server",
                                    server_->address(),
                                    "--spec",
                                    Shipped("specs/flowers.textproto"),
                                    "--eval-spec",
                                    Shipped("specs/flowers-eval.textproto"),
                                    "--model",
                                    Shipped("models/flowers-cnn.textproto"),
                                    "--epochs",
                                    "1"};
    all.insert(all.end(), args.begin(), args.end());
    return RunSystole(all);
  }

  static TempFolder* folder_;
  static ServerProcess* server_;
};
TempFolder* OrderTest::folder_ = nullptr;
ServerProcess* OrderTest::server_ = nullptr;

TEST_F(OrderTest, PadFeedsEveryRecordExactlyOnce) {
  std::vector<std::string> ids = Ids(Shipped("specs/record-ids.textproto"));
  ASSERT_EQ(ids.size(), 3u * kBatch);
  std::vector<int> times(kImages, 0);
  for (const std::string& id : ids) {
    int number;
    if (id == "-") continue;
    ASSERT_TRUE(absl::SimpleAtoi(id, &number) && number >= 0 && number < kImages) << id;
    ++times[number];
  }
  EXPECT_EQ(times, std::vector<int>(kImages, 1));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "-"), 3 * kBatch - kImages);
}

TEST_F(OrderTest, DropFeedsNMinusNModBRecordsAtMostOnce) {
  const std::string spec = folder_->Write(
      "drop.textproto", absl::StrReplaceAll(ReadWholeFile(Shipped("specs/record-ids.textproto")),
                                            {{"tail: PAD", "tail: DROP"}}));
  const std::vector<std::string> ids = Ids(spec);
  EXPECT_EQ(ids.size(), size_t{kImages - kImages % kBatch});
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_EQ(std::count(ids.begin(), ids.end(), "-"), 0);
}

TEST_F(OrderTest, ATokenResumesWithAnotherBatchSizeAndReportsTheSkip) {
  const auto spec_of = [](int batch) {
    return folder_->Write(
        "batch.textproto",
        absl::StrCat("dataset: 'flowers' seed: 1 epochs: 1 shuffle { mode: GLOBAL } tail: PAD "
                     "outputs { name: 'id' feature: 'record_id' } global_batch: ",
                     batch));
  };
  const std::vector<std::string> whole = Ids(spec_of(10));
  ASSERT_EQ(whole.size(), size_t{kImages});
  const Finished first = Feed(spec_of(20), {"--steps", "3"});  // 60 examples
  const std::string token = TokenIn(first);
  for (const int batch : {10, 30, 50}) {
    const Finished rest = Feed(spec_of(batch), {"--steps", "0", "--resume", token});
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    const int begin = (60 + batch - 1) / batch * batch;
    EXPECT_EQ(IdsIn(rest), std::vector<std::string>(whole.begin() + begin, whole.end()));
    const std::string skipped = absl::StrCat("warning: examples skipped: ", begin - 60, ".");
    EXPECT_EQ(absl::StrContains(rest.err, "skipped"), begin > 60) << rest.err;
    if (begin > 60) {
      EXPECT_THAT(rest.err, HasSubstr(skipped));
    }
  }
}

TEST_F(OrderTest, TrainingTwiceGivesTheSameLossesToTheLastBit) {
  // The JSON has every digit of a loss.
  const auto losses = [](const std::string& json) {
    std::vector<std::string> found;
    const std::regex pattern("\"(loss|accuracy)\":[0-9][^,}]*");
    for (std::sregex_iterator it(json.begin(), json.end(), pattern), end; it != end; ++it) {
      found.push_back(it->str());
    }
    return found;
  };
  const Finished first = Train({"--json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("\"training_seconds\":"));
  EXPECT_EQ(losses(first.out).size(), 4u) << first.out;  // Two of training, two of validation.
  EXPECT_EQ(losses(first.out), losses(Train({"--json", "--threads", "1"}).out));
}

TEST_F(OrderTest, ATrainingReportEndsWithTheValidationAccuracy) {
  const Finished train = Train({});
  ASSERT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(Lines(train.out).back(), MatchesRegex("validation accuracy [01]\\.[0-9]{3}"));
}

}  // namespace
}  // namespace systole
