// A server reads its config again when it gets SIGHUP.
#include <csignal>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ReloadTest : public testing::Test {
 protected:
  void WriteConfig(const std::string& text) { config_ = folder_.Write("server.textproto", text); }
  std::string Dataset(const std::string& name, const std::string& shards) const {
    return absl::StrCat("datasets { name: '", name, "' shards: '", folder_ / shards, "' }\n");
  }
  int Feed(const std::string& dataset) const {
    const std::string spec = folder_.Write(
        "spec.textproto",
        absl::StrReplaceAll(RawSpec(784, 1), {{"\"raw\"", absl::StrCat("\"", dataset, "\"")}}));
    return RunSystole({"feed", "--server", server_->address(), "--spec", spec}).exit_code;
  }
  testing::AssertionResult HangUpUntilLogged(const std::string& text) {
    server_->process().Signal(SIGHUP);
    return WaitUntil([&] { return absl::StrContains(server_->process().err(), text); });
  }

  const TempFolder folder_;
  std::string config_;
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(ReloadTest, SighupLoadsANewConfigAndAnInvalidOneChangesNothing) {
  folder_.Write("raw.tfrecord", RawShard(0, 64, 784));
  folder_.Write("new.tfrecord", RawShard(64, 64, 784));
  WriteConfig(Dataset("raw", "raw.tfrecord"));
  auto server = ServerProcess::Start({"--config", config_});
  ASSERT_THAT(server, IsOk());
  server_ = *std::move(server);
  EXPECT_EQ(Feed("raw"), 0);
  EXPECT_EQ(Feed("new"), 3);
  WriteConfig("datasets { nam: 'raw' }");
  ASSERT_TRUE(HangUpUntilLogged("the config file has errors; the server goes on as before"));
  EXPECT_THAT(server_->process().err(), HasSubstr("nam"));
  EXPECT_EQ(Feed("raw"), 0);
  WriteConfig(Dataset("new", "new.tfrecord"));
  ASSERT_TRUE(HangUpUntilLogged("the new config is in force; the server serves 1 dataset"));
  EXPECT_EQ(Feed("new"), 0);
  EXPECT_EQ(Feed("raw"), 3);
  server_->process().Signal(SIGTERM);
  const Finished ended = server_->process().Wait();
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("dataset 'raw' was removed; its streams end"), HasSubstr("drained")));
}

}  // namespace
}  // namespace systole
