// Feeds with mixup and cutmix through the real programs. Their lines of `feed --digest` do not
// depend on threads, servers, resume points or the number of cores.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using testing::HasSubstr;

constexpr int kImages = 90;  // 5 full steps of 16, and one of 10.
constexpr int kSteps = 12;   // Two epochs with `pad`.

class MixTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    PackFlowers(*folder_, kImages, /*shards=*/3);
  }
  static void TearDownTestSuite() { delete folder_; }

  static absl::StatusOr<std::unique_ptr<ServerProcess>> Serve(int threads) {
    return ServerProcess::Start({"--dataset",
                                 absl::StrCat("flowers=", *folder_ / "flowers-train-*.tfrecord"),
                                 "--threads", absl::StrCat(threads)});
  }

  // Writes a spec of the flowers in groups of two, mixed by `mix`. Returns the file's path.
  static std::string Spec(int cores, const std::string& mix = "mixup { alpha: 0.4 } cutmix {}") {
    std::string spec = FlowersSpec(absl::StrCat(
        "tail: PAD outputs { name: 'one' feature: 'label' dtype: FLOAT32 "
        "transforms { one_hot { depth: 5 } } } ",
        mix.empty() ? ""
                    : absl::StrCat("mix { group: 2 images: 'image' labels: 'one' ", mix, " }")));
    const std::string was = "num_cores: 8";
    spec.replace(spec.find(was), was.size(), absl::StrCat("num_cores: ", cores));
    return folder_->Write(absl::StrCat("spec-", cores, mix.empty() ? "" : "-mixed", ".textproto"),
                          spec);
  }

  static std::string Digest(const std::string& servers, const std::string& spec,
                            const std::vector<std::string>& args = {}) {
    std::vector<std::string> all = {"feed", "--server", servers, "--spec", spec};
    all.insert(all.end(), args.begin(), args.end());
    const Finished feed = RunSystole(all);
    EXPECT_EQ(feed.exit_code, 0) << feed.err;
    return feed.out;
  }

  static TempFolder* folder_;
};
TempFolder* MixTest::folder_ = nullptr;

TEST_F(MixTest, DigestsDoNotDependOnThreadsServersOrResumePoints) {
  const auto one = Serve(1);
  const auto three = Serve(3);
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(three, IsOk());
  const std::string spec = Spec(8);
  const std::string all = absl::StrCat(kSteps);
  const std::string reference = Digest((*one)->address(), spec, {"--digest", "--steps", all});
  EXPECT_EQ(Lines(reference).size(), 8u * kSteps);
  const std::string plain = Digest((*one)->address(), Spec(8, ""), {"--digest", "--steps", all});
  EXPECT_NE(plain, reference);
  EXPECT_EQ(Digest((*three)->address(), spec, {"--digest", "--steps", all}), reference);
  EXPECT_EQ(Digest(absl::StrCat((*one)->address(), ",", (*three)->address()), spec,
                   {"--digest", "--steps", all}),
            reference);
  // In each epoch, the feed is resumed at the last step, which is padded, and at an earlier step.
  for (const int step : {1, 5, 6, 11}) {
    const std::string head =
        Digest((*three)->address(), spec, {"--digest", "--steps", absl::StrCat(step)});
    const std::string tail = Digest(
        (*one)->address(), spec,
        {"--digest", "--first-step", absl::StrCat(step), "--steps", absl::StrCat(kSteps - step)});
    EXPECT_EQ(head + tail, reference) << "resumed at step " << step;
  }
}

TEST_F(MixTest, AnExampleIsTheSameOnAnyNumberOfCores) {
  const auto server = Serve(3);
  ASSERT_THAT(server, IsOk());
  // The digests of the examples, without step, core and place in the core. The digests of all
  // examples that are not padding differ, because each example has its record's number.
  const auto examples = [&](int cores) {
    std::multiset<std::string> digests;
    for (const std::string& line :
         Lines(Digest((*server)->address(), Spec(cores),
                      {"--digest=example", "--steps", absl::StrCat(kSteps)}))) {
      digests.insert(line.substr(line.rfind(' ') + 1));
    }
    return digests;
  };
  const std::multiset<std::string> one = examples(1);
  EXPECT_EQ(one.size(), 16u * kSteps);
  EXPECT_GE(std::set<std::string>(one.begin(), one.end()).size(), 2u * kImages);
  EXPECT_EQ(examples(2), one);
  EXPECT_EQ(examples(8), one);
}

TEST_F(MixTest, AGroupLargerThanACoresShareIsRefusedNamingTheField) {
  const auto server = Serve(1);
  ASSERT_THAT(server, IsOk());
  const Finished feed = RunSystole(
      {"feed", "--server", (*server)->address(), "--spec", Spec(16), "--steps", "1", "--digest"});
  EXPECT_NE(feed.exit_code, 0);
  EXPECT_THAT(feed.err, HasSubstr("mix.group is 2 and a core gets 1 examples of a step"));
}

}  // namespace
}  // namespace systole
