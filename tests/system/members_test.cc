// Feeds of several datasets from servers. The bytes do not depend on the number of servers, and
// clients know the order.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class MembersTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("a.tfrecord", RawShard(0, 100, 784));
    std::string damaged = RawShard(100, 60, 784);
    damaged[damaged.size() / 2] ^= 1;
    folder_.Write("b.tfrecord", damaged);
    folder_.Write(
        "spec.textproto",
        absl::StrReplaceAll(RawSpec(784, 3),
                            {{"dataset: \"raw\"",
                              "mixture { dataset: 'a' weight: 1 select { skip: 4 } } "
                              "mixture { dataset: 'b' weight: 2 } tail: PAD on_corrupt: MASK "}}));
    for (int i = 0; i < 2; ++i) servers_.push_back(Start());
  }

  std::unique_ptr<ServerProcess> Start() {
    absl::StatusOr<std::unique_ptr<ServerProcess>> server =
        ServerProcess::Start({"--dataset", absl::StrCat("a=", folder_ / "a.tfrecord"), "--dataset",
                              absl::StrCat("b=", folder_ / "b.tfrecord")});
    EXPECT_THAT(server, IsOk());
    return *std::move(server);
  }

  Finished Feed(std::vector<std::string> more) const {
    std::vector<std::string> args = {"feed", "--spec", folder_ / "spec.textproto", "--digest"};
    args.insert(args.end(), more.begin(), more.end());
    return RunSystole(args);
  }

  const TempFolder folder_;
  std::vector<std::unique_ptr<ServerProcess>> servers_;
};

TEST_F(MembersTest, AMixtureIsTheSameFromAnyServersAndFromAnyStep) {
  const std::string one = servers_[0]->address();
  const std::string two = absl::StrCat(one, ",", servers_[1]->address());
  const Finished all = Feed({"--server", one, "--steps", "9"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  // 156 records are 3 steps of 64. With 8 cores and 3 epochs this makes 3 * 3 * 8 lines.
  EXPECT_THAT(Lines(all.out), SizeIs(3 * 3 * 8));
  EXPECT_EQ(SortedByStepAndCore(Feed({"--server", two, "--steps", "9"}).out),
            SortedByStepAndCore(all.out));
  const std::string tail = Feed({"--server", two, "--first-step", "5", "--steps", "4"}).out;
  const std::vector<std::string> lines = Lines(SortedByStepAndCore(tail));
  const std::vector<std::string> wanted = Lines(SortedByStepAndCore(all.out));
  EXPECT_EQ(lines, std::vector<std::string>(wanted.begin() + 5 * 8, wanted.end()));
}

TEST_F(MembersTest, PaddingIsToldFromMaskedRecordsOfAMember) {
  const Finished feed = Feed({"--server", servers_[0]->address(), "--steps", "3"});
  // An epoch of 156 examples leaves 36 places empty. Record 30 of b is damaged.
  EXPECT_THAT(feed.err, AllOf(HasSubstr("  padded examples    36\n"), HasSubstr("record_id 130)")));
  EXPECT_THAT(servers_[0]->process().err(), HasSubstr("dataset 'b': record 30 is masked"));
}

TEST_F(MembersTest, AMemberThatIsNotServedIsNamed) {
  folder_.Write("spec.textproto",
                absl::StrReplaceAll(RawSpec(784, 1), {{"dataset: \"raw\"",
                                                       "concatenation { dataset: 'a' } "
                                                       "concatenation { dataset: 'c' }"}}));
  EXPECT_THAT(Feed({"--server", servers_[0]->address()}).err, HasSubstr("'c'"));
}

}  // namespace
}  // namespace systole
