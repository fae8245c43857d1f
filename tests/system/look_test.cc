// Tests `systole look` with a real server: the page that the command writes, and its errors.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class LookTest : public testing::Test {
 protected:
  LookTest() { PackFlowers(folder_, 40, 2); }

  void StartServer() {
    auto server = ServerProcess::Start(
        {"--dataset", absl::StrCat("flowers=", folder_ / "flowers-train-*.tfrecord")});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  Finished Look(const std::string& server, const std::vector<std::string>& more,
                const std::string& out = "page.html", const std::string& spec = "") const {
    std::vector<std::string> args = {
        "look",  "--server",   server, "--spec", folder_.Write("spec.textproto", FlowersSpec(spec)),
        "--out", folder_ / out};
    args.insert(args.end(), more.begin(), more.end());
    return RunSystole(args);
  }

  const TempFolder folder_;
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(LookTest, WritesAPageOfTheFirstExamples) {
  StartServer();
  const Finished look = Look(server_->address(), {"--examples", "20"});
  EXPECT_EQ(look.exit_code, 0) << look.err;
  EXPECT_EQ(look.err, "");
  // The feed has two steps of 16 examples.
  EXPECT_THAT(look.out,
              AllOf(StartsWith(absl::StrCat(folder_ / "page.html", ": 20 of 32 examples")),
                    HasSubstr("from step 0 on")));
  const std::string page = ReadWholeFile(folder_ / "page.html");
  EXPECT_EQ(CountOf(page, "<img "), 20);
  EXPECT_THAT(page, AllOf(HasSubstr(server_->address()), HasSubstr("2 × 24 × 32 × 3"),
                          HasSubstr("normalize undone"), HasSubstr("<dd>40</dd>"),
                          HasSubstr("image: fused: decode_jpeg, ")));
  // For each place, the page shows two numbers: the record that the order has at this place
  // ("record N"), and the record id that the feed brought ("id N"). The two must be equal.
  for (int record = 0; record < 40; ++record) {
    EXPECT_EQ(CountOf(page, absl::StrCat("<span>record ", record, "<")),
              CountOf(page, absl::StrCat("<span>id</span> <b>", record, "<")));
  }
  const Finished again = Look(server_->address(), {"--examples", "20"}, "again.html");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(ReadWholeFile(folder_ / "again.html"), page);
}

TEST_F(LookTest, ShowsAndCountsPaddingAndMaskedRecords) {
  const std::string shard = folder_ / "flowers-train-00000-of-00002.tfrecord";
  const std::string bytes = ReadWholeFile(shard);
  ShardBuilder().AddRaw(WithFlippedBit(bytes, bytes.size() / 2 * 8)).WriteTo(shard);
  StartServer();
  // The last step of the epoch has 8 records and 8 places of padding.
  const Finished look = Look(server_->address(), {"--examples", "48", "--json"}, "page.html",
                             "tail: PAD on_corrupt: MASK");
  EXPECT_EQ(look.exit_code, 0) << look.err;
  EXPECT_THAT(look.out, AllOf(HasSubstr("\"steps\":3,\"places\":48,\"places_shown\":48"),
                              HasSubstr("\"masked_examples\":1,\"padded_examples\":8")));
  const std::string page = ReadWholeFile(folder_ / "page.html");
  EXPECT_EQ(CountOf(page, "<b>Masked</b>"), 1);
  EXPECT_EQ(CountOf(page, "<b>Padding</b>"), 8);
  EXPECT_EQ(CountOf(page, "<img "), 39);
  EXPECT_THAT(Look(server_->address(), {}, "page.html", "tail: PAD on_corrupt: MASK").out,
              HasSubstr("note: 1 example is masked"));
}

TEST_F(LookTest, WithoutAServerTheExitCodeIs4) {
  const Finished look = Look(DeadAddress(), {"--connect-timeout", "0.2"});
  EXPECT_EQ(look.exit_code, 4);
  EXPECT_THAT(look.err, HasSubstr("Is systole-server running there"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "page.html"));
}

TEST_F(LookTest, AnUnwritablePageFailsBeforeTheServerIsContacted) {
  const Finished look = Look(DeadAddress(), {}, "missing/page.html");
  EXPECT_EQ(look.exit_code, 3);
  EXPECT_THAT(look.err, AllOf(HasSubstr("missing/page.html"), Not(HasSubstr("server"))));
}

TEST_F(LookTest, InvalidNumbersExitWithCode2) {
  StartServer();
  const struct {
    std::vector<std::string> args;
    const char* message;
  } kCases[] = {
      {{"--examples", "0"}, "--examples 0: want 1 to 1024"},
      {{"--examples", "1025"}, "--examples 1025: want 1 to 1024"},
      {{"--first-step", "-1"}, "--first-step -1: want 0 or more"},
      // The feed has two epochs of two steps.
      {{"--first-step", "4"}, "the feed ends before this step; it has 4 steps"},
      {{"--first-step", "5"}, "the feed has 4 steps"},
  };
  for (const auto& test : kCases) {
    const Finished look = Look(server_->address(), test.args);
    EXPECT_EQ(look.exit_code, 2);
    EXPECT_THAT(look.err, HasSubstr(test.message));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "page.html"));
  }
}

}  // namespace
}  // namespace systole
