// Tests feeds of several datasets from servers. The bytes do not depend on the number of servers,
// nor on the step or token with which a feed begins.
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
  // An epoch of 156 records has 3 steps of 64, the last one with padding. The 9 steps are 3 epochs,
  // and a step has a line for each of its 8 cores.
  EXPECT_THAT(Lines(all.out), SizeIs(3 * 3 * 8));
  EXPECT_EQ(SortedByStepAndCore(Feed({"--server", two, "--steps", "9"}).out),
            SortedByStepAndCore(all.out));
  const std::string tail = Feed({"--server", two, "--first-step", "5", "--steps", "4"}).out;
  const std::vector<std::string> lines = Lines(SortedByStepAndCore(tail));
  const std::vector<std::string> wanted = Lines(SortedByStepAndCore(all.out));
  EXPECT_EQ(lines, std::vector<std::string>(wanted.begin() + 5 * 8, wanted.end()));
}

// Mixtures of three members: the first half of `a`, the second half of `a`, and `b`. The second
// half and `b` begin with weight 0 and get a larger weight later. In the end the first half has
// weight 0.
class ChangingWeightsTest : public MembersTest {
 protected:
  void SetWeights(const std::string& weights) const {
    folder_.Write(
        "spec.textproto",
        absl::StrReplaceAll(RawSpec(784, 0),
                            {{"dataset: \"raw\"",
                              absl::StrCat("mixture { dataset: 'a' weight: 1 select { take: 50 } } "
                                           "mixture { dataset: 'a' weight: 1 select { skip: 50 } } "
                                           "mixture { dataset: 'b' weight: 1 } on_corrupt: MASK ",
                                           weights)}}));
  }
};

constexpr char kTwoChanges[] =
    "weights { from_step: 0 weights: [1, 0, 0] } weights { from_step: 3 weights: [1, 3, 0] } ";

TEST_F(ChangingWeightsTest, TheFeedIsTheSameFromAnyServersAndFromAnyToken) {
  const std::string one = servers_[0]->address();
  const std::string two = absl::StrCat(one, ",", servers_[1]->address());
  SetWeights(absl::StrCat(kTwoChanges, "weights { from_step: 7 weights: [0, 1, 2] }"));
  const Finished all = Feed({"--server", one, "--steps", "12"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  const std::vector<std::string> wanted = Lines(SortedByStepAndCore(all.out));
  ASSERT_THAT(wanted, SizeIs(12 * 8));
  EXPECT_EQ(Lines(SortedByStepAndCore(Feed({"--server", two, "--steps", "12"}).out)), wanted);
  for (const int taken : {1, 2, 3, 4, 7, 9}) {
    SCOPED_TRACE(taken);
    // The spec of this run lacks the changes of weights that come after `taken` steps. For some
    // values of `taken`, its last weights are also multiples of the weights in the whole spec.
    // Neither difference changes the token.
    SetWeights(taken > 7 ? absl::StrCat(kTwoChanges, "weights { from_step: 7 weights: [0, 3, 6] }")
               : taken > 3 ? kTwoChanges
                           : "weights { from_step: 0 weights: [9, 0, 0] } ");
    const Finished head = Feed({"--server", two, "--steps", absl::StrCat(taken)});
    ASSERT_EQ(head.exit_code, 0) << head.err;
    const std::string token = TokenIn(head);
    SetWeights(absl::StrCat(kTwoChanges, "weights { from_step: 7 weights: [0, 1, 2] }"));
    const Finished tail =
        Feed({"--server", two, "--resume", token, "--steps", absl::StrCat(12 - taken)});
    ASSERT_EQ(tail.exit_code, 0) << tail.err;
    EXPECT_EQ(Lines(SortedByStepAndCore(tail.out)),
              std::vector<std::string>(wanted.begin() + taken * 8, wanted.end()));
  }
}

TEST_F(ChangingWeightsTest, ATokenWithOtherPastWeightsIsRefusedNamingTheDifference) {
  SetWeights(kTwoChanges);
  const std::string one = servers_[0]->address();
  const Finished head = Feed({"--server", one, "--steps", "5"});
  ASSERT_EQ(head.exit_code, 0) << head.err;
  const std::string token = TokenIn(head);
  const auto refusal = [&](const std::string& weights) {
    SetWeights(weights);
    const Finished feed = Feed({"--server", one, "--resume", token, "--steps", "1"});
    EXPECT_NE(feed.exit_code, 0);
    return feed.err;
  };
  const std::string first = "weights { from_step: 0 weights: [1, 0, 0] } ";
  EXPECT_THAT(
      refusal(first + "weights { from_step: 3 weights: [1, 1, 0] }"),
      HasSubstr(
          "the past differs from step 3 on: at that place the spec has `weights` other than"));
  EXPECT_THAT(refusal(first + "weights { from_step: 2 weights: [1, 3, 0] }"),
              HasSubstr("the past differs from step 2 on"));
  EXPECT_THAT(
      refusal(absl::StrCat(kTwoChanges, "weights { from_step: 4 weights: [0, 0, 1] }")),
      HasSubstr("the past differs from step 4 on: at that place the spec has `weights` that the "
                "token's feed did not have"));
  EXPECT_THAT(refusal(first), HasSubstr("changed more often (1) than those of the spec (0)"));
  EXPECT_THAT(refusal("weights { from_step: 3 weights: [1, 3, 0] }"),
              HasSubstr("the order's fingerprint differs"));
}

TEST_F(ChangingWeightsTest, AServerRefusesWeightsThatCannotBeApplied) {
  const auto refusal = [&](const std::string& weights) {
    SetWeights(weights);
    return Feed({"--server", servers_[0]->address(), "--steps", "1"}).err;
  };
  EXPECT_THAT(refusal("weights { from_step: 1 weights: [1, 1] }"),
              HasSubstr("weights[0].weights has 2 weights, want 3"));
  EXPECT_THAT(refusal("weights { from_step: -1 weights: [1, 1, 1] }"),
              HasSubstr("weights[0].from_step is -1"));
}

TEST_F(MembersTest, PaddingAndMaskedRecordsOfAMemberAreReportedSeparately) {
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
