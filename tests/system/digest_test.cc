// A step depends only on data, spec and number: `feed --digest` prints the same lines however many
// threads, servers, restarts and SIMD instruction sets made the bytes.
#include <algorithm>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

constexpr int kImages = 90;        // 5 full steps of 16, and one of 10.
constexpr int kStepsPerEpoch = 6;  // With `pad`.

// An output with the same images in the layout that they have in a TPU's memory. This output is
// added to the outputs of FlowersSpec().
constexpr char kTiled[] = R"pb(
  outputs {
    name: "tiled"
    feature: "image"
    transforms { decode_jpeg {} }
    transforms { random_resized_crop { height: 24 width: 32 } }
    transforms { random_flip {} }
    dtype: BFLOAT16
    layout: HWCN_TILED
  }
)pb";

class DigestTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    PackFlowers(*folder_, kImages, /*shards=*/3);
    spec_ = folder_->Write("spec.textproto", FlowersSpec(absl::StrCat("tail: PAD", kTiled)));
  }
  static void TearDownTestSuite() { delete folder_; }

  static absl::StatusOr<std::unique_ptr<ServerProcess>> Serve(
      const std::vector<std::string>& args = {}, const ProcessOptions& options = {}) {
    std::vector<std::string> all = {
        "--dataset", absl::StrCat("flowers=", *folder_ / "flowers-train-*.tfrecord")};
    all.insert(all.end(), args.begin(), args.end());
    return ServerProcess::Start(all, options);
  }

  // The digests of both epochs, or of the steps that `args` select.
  static std::string Digest(const std::string& servers, const std::vector<std::string>& args = {}) {
    std::vector<std::string> all = {"feed", "--server", servers, "--spec", spec_, "--digest"};
    all.insert(all.end(), args.begin(), args.end());
    if (std::find(args.begin(), args.end(), "--steps") == args.end()) {
      all.insert(all.end(), {"--steps", absl::StrCat(2 * kStepsPerEpoch)});
    }
    const Finished feed = RunSystole(all);
    EXPECT_EQ(feed.exit_code, 0) << feed.err;
    return feed.out;
  }

  // The digests are made once, by one server with one thread.
  static std::string Reference() {
    static const std::string* const reference = [] {
      const auto server = Serve({"--threads", "1"});
      EXPECT_THAT(server, IsOk());
      return new std::string(server.ok() ? Digest((*server)->address()) : "");
    }();
    return *reference;
  }

  static TempFolder* folder_;
  static std::string spec_;
};
TempFolder* DigestTest::folder_ = nullptr;
std::string DigestTest::spec_;

TEST_F(DigestTest, StdoutHoldsStepCoreHexInOrderAndNothingElse) {
  const std::vector<std::string> lines = Lines(Reference());
  ASSERT_EQ(lines.size(), 2u * kStepsPerEpoch * 8);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(
        std::regex_match(lines[i], std::regex(absl::StrCat(i / 8, " ", i % 8, " [0-9a-f]{32}"))))
        << lines[i];
  }
  // If all digests were equal, the comparisons in the other tests would prove nothing.
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), lines.size());
}

TEST_F(DigestTest, EightThreadsServeWhatOneServes) {
  const auto server = Serve({"--threads", "8"});
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(Digest((*server)->address()), Reference());
}

TEST_F(DigestTest, ThreeServersServeWhatOneServes) {
  std::vector<std::unique_ptr<ServerProcess>> servers;
  std::vector<std::string> addresses;
  for (int i = 0; i < 3; ++i) {
    auto server = Serve();
    ASSERT_THAT(server, IsOk());
    addresses.push_back((*server)->address());
    servers.push_back(*std::move(server));
  }
  EXPECT_EQ(Digest(absl::StrJoin(addresses, ",")), Reference());
}

TEST_F(DigestTest, AFeedStartedAtAnyStepGivesTheSameDigests) {
  const auto server = Serve();
  ASSERT_THAT(server, IsOk());
  for (int step = 1; step < 2 * kStepsPerEpoch; ++step) {
    const std::string head = Digest((*server)->address(), {"--steps", absl::StrCat(step)});
    const std::string tail = Digest(
        (*server)->address(),
        {"--first-step", absl::StrCat(step), "--steps", absl::StrCat(2 * kStepsPerEpoch - step)});
    EXPECT_EQ(head + tail, Reference()) << "resumed at step " << step;
  }
}

TEST_F(DigestTest, EachCoreAskedAloneGetsItsSlice) {
  const auto server = Serve();
  ASSERT_THAT(server, IsOk());
  std::string lines;
  for (int core = 0; core < 8; ++core) {
    lines += Digest((*server)->address(), {"--cores", absl::StrCat(core, ":", core + 1)});
  }
  EXPECT_EQ(SortedByStepAndCore(lines), Reference());
}

TEST_F(DigestTest, EverySimdTargetServesTheSameBytes) {
  const std::vector<std::string> targets = SupportedSimdTargets();
  ASSERT_GE(targets.size(), 2u);
  for (const std::string& target : targets) {
    const auto server =
        Serve({}, {.environment = {absl::StrCat(kSimdTargetVariable, "=", target)}});
    ASSERT_THAT(server, IsOk());
    EXPECT_EQ(Digest((*server)->address()), Reference()) << target;
  }
}

TEST_F(DigestTest, AMisspeltSimdTargetIsRefused) {
  EXPECT_THAT(Serve({}, {.environment = {absl::StrCat(kSimdTargetVariable, "=AVX9")}}),
              StatusIs(absl::StatusCode::kUnavailable, testing::HasSubstr("AVX9")));
}

}  // namespace
}  // namespace systole
