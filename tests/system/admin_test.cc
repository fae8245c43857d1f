// Probes of the real server: while it starts, serves and ends.
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/admin/http_client.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

// A server whose shard on the web never answers.
class SystemAdminTest : public testing::Test {
 protected:
  void SetUp() override {
    shard_ = objects_.Put("/a.tfrecord", RawShard(0, 64, 16));
    objects_.SetFault([](const StubRequest&) -> std::optional<StubAnswer> {
      return StubAnswer{.bytes = "", .hangs = true};
    });
  }
  std::vector<std::string> Args(const std::string& dataset) const {
    return {ServerProgram(), "--listen",          "127.0.0.1:0", "--admin",
            "127.0.0.1:0",   "--admin-port-file", PortFile(),    "--index-dir",
            folder_.path(),  "--dataset",         "a=" + dataset};
  }
  std::string PortFile() const { return folder_ / "admin-port"; }
  // The port that the server wrote.
  int Port() const {
    EXPECT_TRUE(WaitUntil([&] { return std::filesystem::exists(PortFile()); }));
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(ReadWholeFile(PortFile()), &port));
    return port;
  }

  const TempFolder folder_;
  StubObjects objects_;
  std::string shard_;
};

TEST_F(SystemAdminTest, AServerThatIsStartingIsLiveButNotReady) {
  Process server(Args(shard_));
  const int port = Port();
  EXPECT_EQ(HttpGet(port, "/livez").status, 200);
  EXPECT_THAT(HttpGet(port, "/readyz").body, HasSubstr("starting"));
  EXPECT_EQ(HttpGet(port, "/readyz").status, 503);
  // A server that is still starting ends at once when it gets a signal.
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait().signal, SIGTERM);
}

TEST_F(SystemAdminTest, AServingServerIsReadyAndDrainsOnSigterm) {
  const std::string file = folder_.Write("a.tfrecord", RawShard(0, 64, 16));
  Process server(Args(file));
  const int port = Port();
  EXPECT_TRUE(WaitUntil([&] { return HttpGet(port, "/readyz").status == 200; }));
  EXPECT_THAT(HttpGet(port, "/metrics").body,
              HasSubstr("systole_server_dataset_records{dataset=\"a\"} 64\n"));
  EXPECT_THAT(HttpGet(port, "/configz").body, HasSubstr("admin: \"127.0.0.1:0\"\n"));
  server.Signal(SIGTERM);
  const Finished finished = server.Wait();
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("drained"));
  EXPECT_THAT(finished.err, HasSubstr("probes and metrics on http://127.0.0.1:"));
}

TEST_F(SystemAdminTest, TheStatusPagesEventStreamEndsWhenTheServerEnds) {
  Process server(Args(folder_.Write("a.tfrecord", RawShard(0, 64, 16))));
  const int port = Port();
  EXPECT_TRUE(WaitUntil([&] { return HttpGet(port, "/readyz").status == 200; }));
  const TestHttpAnswer page = HttpGet(port, "/statusz");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("value=\"64\">64</data>"));
  TestHttpConnection viewer(port);
  ASSERT_TRUE(viewer.Send("GET /statusz/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
  EXPECT_THAT(viewer.ReadUntil("\n\ndata: "), HasSubstr("200 OK"));
  server.Signal(SIGTERM);
  viewer.ReadAll();  // Returns when the server ends the stream of events.
  EXPECT_EQ(server.Wait().exit_code, 0);
}

}  // namespace
}  // namespace systole
